"""The fuzz targets with random octets; a coverage-guided fuzzer goes further with the same ones."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def load() -> ModuleType:
    path = Path(__file__).with_name("fuzz_targets.py")
    spec = importlib.util.spec_from_file_location("stamp_fuzz_targets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load()
NAMES = [
    "fuzz_one_wire",
    "fuzz_one_tlvs",
    "fuzz_one_authentication",
    "fuzz_one_reflector",
    "fuzz_one_sender",
]
TLV_LIKE = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 9), st.binary(max_size=20)), max_size=6
).map(
    lambda listed: b"".join(
        bytes([flags, kind, 0, len(value)]) + value for flags, kind, value in listed
    )
)
OCTETS = st.one_of(
    st.binary(max_size=300),
    TLV_LIKE,
    st.tuples(st.sampled_from([bytes(44), bytes(112), bytes(28)]), TLV_LIKE).map(b"".join),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=OCTETS)
def test_what_must_always_hold(name: str, data: bytes) -> None:
    getattr(TARGETS, name)(data)
