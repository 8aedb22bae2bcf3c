"""Names of measurements: unique, and sorted by time."""

import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.probes.identifiers import new_id

NOON = 1_764_590_400_000_000_000


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    name = uuid.UUID(new_id(NOON, random.Random(1)))
    assert name.version == 7
    assert name.variant == uuid.RFC_4122
    assert name.int >> 80 == NOON // 1_000_000


@given(st.integers(0, 2**62), st.integers(250, 2**61), st.randoms())
def test_ids_sort_as_text_in_the_order_of_time(
    early: int, later_by: int, rng: random.Random
) -> None:
    assert new_id(early, rng) < new_id(early + later_by, rng)


def test_many_ids_of_one_instant_are_different() -> None:
    rng = random.SystemRandom()
    assert len({new_id(NOON, rng) for _ in range(10_000)}) == 10_000


def test_one_seed_gives_one_name() -> None:
    assert new_id(NOON, random.Random(7)) == new_id(NOON, random.Random(7))
    assert new_id(NOON, random.Random(7)) != new_id(NOON, random.Random(8))


@pytest.mark.parametrize("moment", [-1, 1 << 70])
def test_a_time_that_does_not_fit_is_refused(moment: int) -> None:
    with pytest.raises(ValueError, match="no time between"):
        new_id(moment, random.Random(1))
