"""Simulated networks for tests of paths."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def simulated() -> ModuleType:
    """`simulated.py` beside this file."""
    name = "simulated_paths"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("simulated.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
