"""The search for the path MTU against paths that are a few lines long."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.path_mtu import (
    MOST_PROBES,
    MtuProbe,
    MtuVerdict,
    PathMtu,
    PathMtuSearch,
)

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
ROUTER = "192.0.2.1"


class Path:
    """`mtu` behind the router at `hop`, which says so, or says 0, or nothing."""

    def __init__(
        self, mtu: int, says: int | None, *, loss: float = 0.0, hop: int = 3, own: int = 1_500
    ) -> None:
        self.mtu, self.says, self.loss, self.hop, self.own = mtu, says, loss, hop, own
        self.rng = random.Random(mtu)

    def search(self, family: AddressFamily = V4, hops: Sequence[int] = ()) -> PathMtu:
        search = PathMtuSearch(family, 1_500, hops)
        while (probe := search.next()) is not None:
            self.carry(search, probe)
        return search.result()

    def carry(self, search: PathMtuSearch, probe: MtuProbe) -> None:
        beyond = probe.hop_limit is None or probe.hop_limit > self.hop
        if probe.size > self.own:
            search.refused(probe)
        elif self.rng.random() < self.loss:
            search.lost(probe)
        elif probe.size <= self.mtu or not beyond:
            search.answered(probe)
        elif self.says is None:
            search.lost(probe)
        else:
            search.too_big(probe, self.says, ROUTER)


def test_a_path_that_takes_all_costs_one_packet() -> None:
    found = Path(1_500, None).search()
    assert found == PathMtu(MtuVerdict.FOUND, 1_500, None, False, None, 1_500, 1)


@pytest.mark.parametrize("mtu", [1_499, 1_492, 1_437, 1_280, 576, 300])
def test_a_router_that_says_what_fits_is_asked_once(mtu: int) -> None:
    found = Path(mtu, mtu).search()
    assert found == PathMtu(MtuVerdict.FOUND, mtu, ROUTER, False, None, 1_500, 2)


@given(st.integers(128, 1_500), st.sampled_from([0, None]))
@settings(max_examples=40)
def test_any_size_is_found_whether_routers_say_nothing_or_zero(mtu: int, says: int | None) -> None:
    found = Path(mtu, says).search()
    assert (found.verdict, found.mtu) == (MtuVerdict.FOUND, mtu)
    assert found.black_hole is (says is None and mtu < 1_500)
    assert found.narrowed_by == (ROUTER if says == 0 and mtu < 1_500 else None)
    assert found.probes <= (80 if says is None else 25)


def test_the_hole_is_placed_behind_the_last_router_that_got_long_packets() -> None:
    for hop in range(6):
        found = Path(1_400, None, hop=hop).search(hops=(1, 2, 4, 5))
        assert (found.mtu, found.black_hole) == (1_400, True)
        assert found.last_reached == max((one for one in (1, 2, 4, 5) if one <= hop), default=0)


@pytest.mark.parametrize("loss", [0.02, 0.1])
def test_loss_is_no_black_hole(loss: float) -> None:
    right = 0
    for mtu in range(1_300, 1_500, 2):
        path = Path(1_500, None, loss=loss)
        path.rng = random.Random(mtu)
        assert path.search().black_hole is False
        found = Path(mtu, None, loss=loss).search()
        right += found.verdict is MtuVerdict.FOUND and found.mtu == mtu
    assert right >= 97


def test_where_nobody_answers_nothing_is_claimed() -> None:
    found = Path(100, None).search()
    assert (found.verdict, found.mtu, found.black_hole) == (MtuVerdict.UNANSWERED, None, False)
    assert found.probes <= 20


def test_a_path_that_dies_during_the_search_is_no_black_hole() -> None:
    search, path = PathMtuSearch(V4, 1_500), Path(1_400, None)
    while (probe := search.next()) is not None:
        if search.result().probes > 12:
            search.lost(probe)
        else:
            path.carry(search, probe)
    assert search.result().verdict is MtuVerdict.UNSURE


def test_a_silent_destination_behind_a_router_that_speaks_has_an_upper_bound() -> None:
    search = PathMtuSearch(V4, 1_500)
    while (probe := search.next()) is not None:
        if probe.size > 1_400:
            search.too_big(probe, 1_400, ROUTER)
        else:
            search.lost(probe)
    found = search.result()
    assert (found.verdict, found.mtu, found.narrowed_by) == (MtuVerdict.UNANSWERED, 1_400, ROUTER)


def test_the_own_link_is_the_first_bound() -> None:
    found = Path(1_500, None, own=1_300).search()
    assert (found.verdict, found.mtu, found.largest) == (MtuVerdict.FOUND, 1_300, 1_300)
    assert found.black_hole is False


def test_impossible_words_of_routers_are_not_believed() -> None:
    """Larger than what was refused, or smaller than any link may have."""
    for family, says in ((V4, 9_000), (V4, 20), (V6, 600)):
        found = Path(1_400, says).search(family)
        assert (found.verdict, found.mtu) == (MtuVerdict.FOUND, 1_400)


@given(st.lists(st.integers(0, 3), min_size=MOST_PROBES, max_size=MOST_PROBES), st.booleans())
@settings(max_examples=40)
def test_whatever_comes_it_ends_and_contradicts_no_arrival(words: list[int], v4: bool) -> None:
    search = PathMtuSearch(V4 if v4 else V6, 1_500, (1, 2, 3))
    arrived = 0
    for word in words:
        probe = search.next()
        if probe is None:
            break
        if word == 0:
            search.answered(probe)
            arrived = max(arrived, probe.size if probe.hop_limit is None else 0)
        elif word == 1:
            search.lost(probe)
        else:
            search.too_big(probe, None if word == 2 else probe.size - 8, ROUTER)
    assert search.next() is None
    assert search.result().mtu is None or (search.result().mtu or 0) >= arrived
