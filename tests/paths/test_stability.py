"""Prevalence, persistence and rates of change, by hand and out of real series."""

import math
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.importers.ripe_atlas import read_results
from pathbudget.analysis.proportion import clopper_pearson
from pathbudget.analysis.routes.model import Granularity, PathObservation, RouteEventKind
from pathbudget.analysis.routes.observations import observe
from pathbudget.analysis.routes.route_events import route_events
from pathbudget.analysis.routes.stability import changes_per_day, stability_of
from pathbudget.sites.prefix_table import Prefix, PrefixTable

SECOND, GAP_S = 10**9, 3600
DAY_S = 86_400


def chained(sim: Any, *plan: tuple[str, int]) -> list[PathObservation]:
    """So many traces of each chain of hops, one an hour."""
    order = [sim.Network([sim.chain(*hops.split())]) for hops, count in plan for _ in range(count)]
    return [network.trace(index * GAP_S, (1,)) for index, network in enumerate(order)]


def test_two_routes_by_hand(simulated: Any) -> None:
    stability = stability_of(chained(simulated, ("a b", 6), ("a c", 2), ("a b", 2)))
    home, away = stability.routes
    assert home.paths == {("a", "b", "dst")}
    assert (home.observations, home.prevalence, home.sojourns) == (8, 0.8, 2)
    assert (home.low, home.high) == clopper_pearson(8, 10)
    assert home.mean_sojourn_ns == (5 + 1) / 2 * GAP_S * SECOND
    assert (away.prevalence, away.sojourns, away.mean_sojourn_ns) == (0.2, 1, GAP_S * SECOND)
    assert stability.entropy_bits == pytest.approx(-0.8 * math.log2(0.8) - 0.2 * math.log2(0.2))
    assert (stability.observations, stability.changes, stability.flutters) == (10, 2, 0)
    assert stability.gap_ns == GAP_S * SECOND
    assert stability.changes_per_day == pytest.approx(-math.log(1 - 2 / 9) * 24)
    low, high = clopper_pearson(2, 9)
    assert stability.changes_low == pytest.approx(-math.log(1 - low) * 24)
    assert stability.changes_high == pytest.approx(-math.log(1 - high) * 24)


def test_one_route_has_no_entropy_and_an_upper_bound_of_changes(simulated: Any) -> None:
    stability = stability_of(chained(simulated, ("a b", 30)))
    (route,) = stability.routes
    assert (route.prevalence, route.high, stability.entropy_bits) == (1, 1, 0)
    assert (stability.changes, stability.changes_per_day, stability.changes_low) == (0, 0, 0)
    assert 0 < stability.changes_high < 24


def test_silent_hops_are_of_the_route_that_they_can_be_of(simulated: Any) -> None:
    stability = stability_of(chained(simulated, ("a b c", 5), ("a - c", 3), ("a b -", 2)))
    (route,) = stability.routes
    assert route.paths == {("a", "b", "c", "dst")}
    assert route.observations == 10


def test_a_balancer_is_one_route_and_its_flutter_is_counted(simulated: Any) -> None:
    """Compared by sets, where a comparison of single paths sees a flapping route."""
    ways = simulated.ways("p", "q", by_packet=True)
    network = simulated.Network([simulated.chain("a"), ways])
    observations = [network.trace(index * GAP_S) for index in range(20)]
    stability = stability_of(observations)
    (route,) = stability.routes
    assert route.paths == {("a", "p", "dst"), ("a", "q", "dst")}
    assert stability.changes == 0
    assert stability.flutters > 10


def test_traces_that_reach_nobody_are_left_out_once_one_has(simulated: Any) -> None:
    network = simulated.Network([simulated.chain("a", "b")])
    observations = [network.trace(i * GAP_S, (1,), reached=i not in (3, 4)) for i in range(8)]
    assert stability_of(observations).observations == 6
    never = [network.trace(i * GAP_S, (1,), reached=False) for i in range(8)]
    stability = stability_of(never)
    assert stability.observations == 8
    assert stability.routes[0].paths == {("a", "b", "...")}


@pytest.mark.parametrize(
    ("changes", "gaps", "rate"),
    [(0, 0, 0.0), (0, 10, 0.0), (10, 10, math.inf), (5, 10, -math.log(0.5) * 24)],
)
def test_rates_at_the_edges(changes: int, gaps: int, rate: float) -> None:
    found, low, high = changes_per_day(changes, gaps, GAP_S * SECOND)
    assert found == pytest.approx(rate)
    assert low <= found <= high
    assert changes_per_day(0, 0, 0.0)[0] == 0.0


def test_poisson_changes_give_their_rate_back(simulated: Any) -> None:
    """The interval covers the true rate of changes, those within a gap included."""
    import random

    covered = 0
    for seed in range(40):
        rng, now, route, observations = random.Random(seed), 0.0, 0, list[PathObservation]()
        change_s = rng.expovariate(6 / DAY_S)
        while len(observations) < 48:
            while change_s <= now:
                route += 1
                change_s += rng.expovariate(6 / DAY_S)
            network = simulated.Network([simulated.chain(f"r{route}")])
            observations.append(network.trace(now, (1,)))
            now += GAP_S
        stability = stability_of(observations)
        covered += stability.changes_low <= 6 <= stability.changes_high
    assert covered >= 35


def test_stability_is_that_of_one_series(simulated: Any) -> None:
    with pytest.raises(ValueError, match="one series"):
        stability_of([])
    with pytest.raises(ValueError, match="prefixes"):
        stability_of(chained(simulated, ("a", 2)), Granularity.AS)


@pytest.fixture(scope="session")
def beacon(shared_data: Path) -> list[PathObservation]:
    """A probe traces a RIPE beacon every five minutes while its prefix comes back."""
    return list(observe(read_results([shared_data / "warts" / "atlas.jsonl"])))


@pytest.mark.needs("data")
def test_a_real_beacon_is_found_when_its_prefix_is_announced_and_moves_once(
    beacon: list[PathObservation],
) -> None:
    assert len(beacon) == 14
    found, shift = route_events(beacon)
    assert (found.kind, shift.kind) == (RouteEventKind.FOUND, RouteEventKind.SHIFT)
    assert [time // SECOND for time in found.window] == [1619121404, 1619121638]
    assert [time // SECOND for time in shift.window] == [1619121638, 1619121944]
    assert shift.first_difference == 5
    ((*_, destination),) = shift.after
    assert destination == "84.205.77.1"
    assert {len(path) for path in shift.before} == {9}
    assert {len(path) for path in shift.after} == {7}


@pytest.mark.needs("data")
def test_prevalence_of_a_real_series_with_its_ases(beacon: list[PathObservation]) -> None:
    table = PrefixTable(
        [
            Prefix(4, 0xB2D00500, 24, (31515,)),
            Prefix(4, 0xB2D00B00, 24, (31515,)),
            Prefix(4, 0x2531EC00, 23, (), "exchange"),
            Prefix(4, 0x54CD4D00, 24, (12654,)),
        ]
    )
    stability = stability_of(beacon, origins=table)
    assert (stability.observations, stability.changes) == (14, 1)
    assert [route.observations for route in stability.routes] == [11, 3]
    assert [round(route.prevalence, 3) for route in stability.routes] == [0.786, 0.214]
    assert stability.as_paths[1] == ("*", "AS12654")
    assert 299 < stability.gap_ns / SECOND < 309


@pytest.mark.needs("data")
def test_real_pairs_traced_twice_with_two_flows_make_no_event(shared_data: Path) -> None:
    """Paris number 1, then 2, fifteen minutes later: another path is another flow, no change."""
    file = shared_data / "ripe_atlas" / "fetchmesh_ping_2000.ndjson"
    observations = list(observe(read_results([file])))
    series = {one.series for one in observations}
    assert (len(observations), len(series)) == (500, 393)
    twice = [one for one in series if sum(other.series == one for other in observations) == 2]
    assert len(twice) == 107
    kinds = {event.kind for event in route_events(observations)}
    assert kinds <= {RouteEventKind.FLUTTER}
