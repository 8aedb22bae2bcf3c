"""Every fuzz target runs, on a bounded number of inputs; ``make fuzz`` gives it minutes."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

FUZZING = Path(__file__).resolve().parents[1] / "fuzzing.py"
INPUTS = 300


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("fuzzing", FUZZING)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = _module().targets()


def test_every_codec_has_a_target() -> None:
    assert len(TARGETS) >= 1


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_garbage_of_any_length_breaks_nothing(name: str) -> None:
    rng = random.Random(name)
    for number in range(INPUTS):
        TARGETS[name](rng.randbytes(number))
