"""What routers on the way answer is no delay and no loss of the path, and is judged for itself."""

from typing import Any

import msgspec
import pytest

from pathbudget.analysis.evaluate import evaluate
from pathbudget.analysis.hop_loss import HopVerdict, hop_verdicts
from pathbudget.analysis.routes.model import FlowPath, PathObservation, PathSeries
from pathbudget.probes.arrow_schema import failures
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

START = 1_790_000_000 * 10**9
MS = 1_000_000
SILENT = Failure(FailureKind.TIMEOUT, Stage.WAIT)
SERIES = PathSeries("v", "r", "s", "t", "192.0.2.1", None)


@pytest.fixture
def catalogue() -> Catalogue:
    tier = Tier("chat", "", 800.0, {"network": 45.0}, 95.0, "warm", 4000, {"warm": 1.0})
    return Catalogue(
        regions={"region": Region("region", 50.1, 8.7)},
        sites={"site": Site("site", 52.5, 13.4)},
        tiers={"chat": tier},
    )


def measured(probe: str, samples: list[Sample]) -> Measurement:
    return Measurement(
        id=f"m-{probe}",
        vantage=Vantage(name="v", region="region"),
        target=Target(name="t", host="192.0.2.1", site="site"),
        probe=probe,
        started_unix_ns=START,
        samples=tuple(samples),
        address="192.0.2.1",
        family=AddressFamily.IPV4,
    )


def round_trips(metric: str, count: int, value_ms: float) -> list[Sample]:
    return [
        Sample(
            seq=index,
            metric=metric,
            sent_unix_ns=START + index * 100 * MS,
            value_ns=round((value_ms + index % 7) * MS),
        )
        for index in range(count)
    ]


def hops(count: int) -> list[Sample]:
    """Far below light, mostly silent, at 500 ms like a timer, with odd flags."""
    return [
        Sample(
            seq=index,
            metric=Metric.HOP_RTT,
            sent_unix_ns=START + index * 9 * MS,
            value_ns=None if index % 3 else (500 * MS if index % 2 else 1),
            failure=SILENT if index % 3 else None,
            responder=None if index % 3 else "198.51.100.1",
            flags=() if index % 3 else (Flag.HOST_BUSY, Flag.DUPLICATED),
            part=1 + index % 9,
            flow=7,
        )
        for index in range(count)
    ]


def test_an_evaluation_is_the_same_with_and_without_hops(catalogue: Catalogue) -> None:
    """Budget lines, distributions, losses, findings, timer artefacts, provenance: everything."""
    plain = measured("trace", round_trips(Metric.RTT, 90, 20.0))
    with_hops = measured("trace", [*plain.samples, *hops(900)])
    without, beside = evaluate([plain], catalogue), evaluate([with_hops], catalogue)
    assert without.lines
    assert without.summaries
    assert without == beside


def test_a_trace_stands_for_a_path_only_where_nothing_else_was_measured(
    catalogue: Catalogue,
) -> None:
    trace = measured("trace", round_trips(Metric.RTT, 20, 90.0))
    connects = measured("tcp", round_trips(Metric.CONNECT, 90, 20.0))
    stamps = measured("stamp", round_trips(Metric.RTT, 90, 20.0))
    for other in (connects, stamps):
        alone, both = evaluate([other], catalogue), evaluate([other, trace], catalogue)
        assert both.lines == alone.lines
    (headline, *_) = [line for line in evaluate([trace], catalogue).lines if line.headline]
    assert headline.value_ms is not None
    assert headline.value_ms > 40


def test_silent_routers_are_no_failures_in_the_listing_of_a_store() -> None:
    one = measured("trace", [*round_trips(Metric.RTT, 2, 20.0), *hops(9)])
    lost = msgspec.structs.replace(one.samples[0], value_ns=None, failure=SILENT)
    assert failures(one) == 0
    assert failures(measured("trace", [lost, *hops(9)])) == 1


def observation(time: int, *rows: tuple[int, int], length: int | None = None) -> PathObservation:
    """(sent, answered) at each hop limit."""
    hops = tuple(frozenset({f"r{limit}"}) for limit in range(len(rows)))
    sent, answered = (tuple(column) for column in zip(*rows, strict=True))
    reached = rows[-1][1] > 0
    path = FlowPath(1, hops, reached, sent=sent, answered=answered)
    return PathObservation(SERIES, time, time, (path,))


def verdicts(*observations: PathObservation) -> list[tuple[int | None, list[HopVerdict]]]:
    return [
        (one.destination, [hop.verdict for hop in one.hops]) for one in hop_verdicts(observations)
    ]


def test_a_rate_limited_responder_is_not_loss_and_loss_persists_to_the_destination() -> None:
    """Others report the limit of the second hop as loss of half of all packets."""
    clean, limited, silent, loss = (
        HopVerdict.CLEAN,
        HopVerdict.RATE_LIMITED,
        HopVerdict.SILENT,
        HopVerdict.LOSS,
    )
    rows = ((30, 30), (30, 15), (30, 0), (30, 30), (30, 30))
    assert verdicts(*(observation(t, *rows) for t in range(5))) == [
        (5, [clean, limited, silent, clean, clean])
    ]
    lossy = ((30, 30), (30, 24), (30, 24), (30, 23))
    assert verdicts(*(observation(t, *lossy) for t in range(5))) == [(4, [clean, loss, loss, loss])]


def test_a_destination_that_moved_away_did_not_lose_what_dies_before_it() -> None:
    """The way grew by a hop: what is sent with the old hop limit is answered by a router."""
    short = [observation(t, (9, 9), (9, 9), (9, 9)) for t in range(4)]
    long = [observation(t, (9, 9), (9, 9), (9, 9), (9, 9)) for t in range(4, 8)]
    found = verdicts(*short, *long)
    assert [destination for destination, _ in found] == [3, 4]
    assert {verdict for _, each in found for verdict in each} == {HopVerdict.CLEAN}


def test_traces_that_reach_nobody_count_as_losses_of_the_destination_before() -> None:
    reached = [observation(t, (9, 9), (9, 9)) for t in range(9)]
    lost = [observation(t, (9, 9), (9, 0)) for t in range(9, 12)]
    assert verdicts(*reached, *lost) == [(2, [HopVerdict.CLEAN, HopVerdict.LOSS])]


def test_without_counts_there_is_nothing_to_judge() -> None:
    path = FlowPath(1, (frozenset({"a"}),), True)
    assert verdicts(PathObservation(SERIES, 0, 0, (path,))) == [(1, [])]


def simulated_limits(sim: Any) -> list[PathObservation]:
    network = sim.Network([sim.chain("a", "b?", "c")])
    return [network.trace(index * 300) for index in range(40)]


def test_every_hop_of_a_simulated_network_is_judged_right(simulated: Any) -> None:
    (judged,) = hop_verdicts(simulated_limits(simulated))
    assert [hop.verdict for hop in judged.hops] == [
        HopVerdict.CLEAN, HopVerdict.RATE_LIMITED, HopVerdict.CLEAN, HopVerdict.CLEAN,
    ]  # fmt: skip
