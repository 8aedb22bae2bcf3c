"""From measurements to a report: lines that moved, what is kept, what is said of the data."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.route_changes.conftest import MS

from pathbudget.analysis.routes.evaluate import RouteOptions, evaluate_routes
from pathbudget.analysis.routes.incidents import JoinOptions, join
from pathbudget.analysis.routes.level_shifts import WATCH
from pathbudget.analysis.routes.model import Cause, Evidence, Incident
from pathbudget.analysis.routes.monitor import RouteMonitor
from pathbudget.analysis.routes.route_report import RouteReport
from pathbudget.probes.errors import ConfigError
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
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.shipped import shipped_catalogue

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
LENGTH = 1200
CATALOGUE = Catalogue(
    {"tokyo": Region("tokyo", 35.6, 139.7)},
    {"dallas": Site("dallas", 32.8, -96.8)},
    shipped_catalogue().tiers,
)


def measurement(
    values_ms: list[float | None],
    *,
    probe: str = "icmp",
    first: int = 0,
    options: dict[str, str | int | float | bool | None] | None = None,
    flags: tuple[str, ...] = (),
    failure: FailureKind = FailureKind.TIMEOUT,
) -> Measurement:
    samples = tuple(
        Sample(
            seq=first + n,
            metric=Metric.RTT,
            sent_unix_ns=START + (first + n) * SECOND,
            value_ns=None if one is None else round(one * MS),
            failure=Failure(failure, Stage.WAIT) if one is None else None,
            flags=() if one is None else flags,
        )
        for n, one in enumerate(values_ms)
    )
    return Measurement(
        id=f"{probe}-{first}-{options}",
        vantage=Vantage(name="v", region="tokyo"),
        target=Target(name="t", host="192.0.2.1", site="dallas"),
        probe=probe,
        started_unix_ns=START + first * SECOND,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        options=options or {},
    )


def round_trips(seed: int, base: float = 20.0, n: int = LENGTH) -> "list[float | None]":
    noise = 0.3 * np.random.default_rng(seed).gamma(0.7, 1, n)
    return [base + float(one) for one in noise]


def moved(by_ms: float = 40.0) -> "list[float | None]":
    values = round_trips(1)
    return [
        None if one is None else one + by_ms * (n >= LENGTH // 2) for n, one in enumerate(values)
    ]


def report(*measurements: Measurement) -> RouteReport:
    return evaluate_routes(measurements, catalogue=CATALOGUE)


def test_budget_lines_that_an_incident_moved_are_named_with_both_verdicts() -> None:
    (incident,) = report(measurement(moved())).incidents
    assert incident.cause is Cause.LEVEL
    lines = {line.tier: line for line in incident.lines}
    assert set(lines) == set(CATALOGUE.tiers)
    for line in lines.values():
        assert (line.region, line.site) == ("tokyo", "dallas")
        assert line.after_ms - line.before_ms >= 39
    assert {line.verdict_after for line in lines.values()} >= {"fail"}


def test_what_another_incident_did_is_no_part_of_a_line_that_moved() -> None:
    """20 ms, then 32, then 90 for a while on top of it, then 32 again, then 34 for good."""
    steps = ((0, 0.0), (300, 12.0), (600, 70.0), (900, 12.0), (1_050, 14.0))
    values = [
        one + [more for first, more in steps if n >= first][-1]
        for n, one in enumerate(round_trips(4))
        if one is not None
    ]
    first, second, third = report(measurement([*values])).incidents
    voice = [
        next((line for line in one.lines if line.tier == "voice-ai"), None)
        for one in (first, second, third)
    ]
    assert voice[0] is not None
    assert voice[0].before_ms == pytest.approx(21, abs=1)
    assert voice[0].after_ms == pytest.approx(33, abs=1)
    assert voice[1] is not None
    assert (voice[1].before_ms, voice[1].after_ms) == pytest.approx((33, 91), abs=1)
    assert voice[2] is not None
    assert voice[2].before_ms == pytest.approx(33, abs=1)
    assert voice[2].after_ms == pytest.approx(35, abs=1)


def test_chosen_tiers_alone_are_looked_at_and_unknown_ones_named() -> None:
    name = next(iter(CATALOGUE.tiers))
    found = evaluate_routes([measurement(moved())], catalogue=CATALOGUE, tiers=(name,))
    assert {line.tier for line in found.incidents[0].lines} == {name}
    with pytest.raises(ConfigError, match="nowhere"):
        evaluate_routes([], catalogue=CATALOGUE, tiers=("nowhere",))


def test_nothing_measured_is_an_empty_report() -> None:
    found = evaluate_routes([])
    assert (found.incidents, found.timelines, found.stability, found.feeds) == ((), (), (), ())


def test_a_record_that_comes_twice_counts_once_and_is_said() -> None:
    one = measurement(moved())
    found = report(one, one)
    assert len(found.incidents) == 1
    assert found.timelines[0].n == report(one).timelines[0].n
    assert any("twice" in caution for caution in found.cautions)


def test_timelines_have_quantiles_and_losses_of_every_bucket() -> None:
    values = round_trips(2)
    values[100:110] = [None] * 10
    (line,) = report(measurement(values)).timelines
    assert sum(line.n) == LENGTH
    assert sum(n * loss for n, loss in zip(line.n, line.loss, strict=True)) == pytest.approx(10)
    assert all(one is None or 19 * MS < one < 24 * MS for one in line.p50_ns)


def test_round_trips_of_traces_count_only_where_nothing_else_looks() -> None:
    trace, icmp = measurement(moved(), probe="trace"), measurement(round_trips(3))
    assert len(report(trace).incidents) == 1
    assert report(trace, icmp).incidents == ()
    assert [line.series.protocol for line in report(trace, icmp).timelines] == ["icmp"]


def test_a_host_that_was_busy_says_nothing_of_the_path() -> None:
    calm, busy = round_trips(4, n=600), round_trips(5, 60.0, n=60)
    rows = [
        measurement(calm),
        measurement(busy, first=600, flags=(Flag.HOST_BUSY,)),
        measurement(round_trips(6, n=600), first=660),
    ]
    assert report(*rows).incidents == ()
    plain = [rows[0], measurement(busy, first=600), rows[2]]
    assert [one.cause for one in report(*plain).incidents] == [Cause.LEVEL]


@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.NO_ROUTE])
def test_an_outage_is_one_even_where_the_host_itself_has_no_route(kind: FailureKind) -> None:
    rows = [
        measurement(round_trips(7, n=400)),
        measurement([None] * 40, first=400, failure=kind),
        measurement(round_trips(8, n=400), first=440),
    ]
    (incident,) = report(*rows).incidents
    assert (incident.cause, incident.cost) == (Cause.OUTAGE, None)
    assert incident.window.by_unix_ns == START + 400 * SECOND
    assert incident.over is not None
    assert incident.over.by_unix_ns == START + 440 * SECOND


def test_large_packets_that_vanish_are_a_black_hole_and_no_outage() -> None:
    size: dict[str, str | int | float | bool | None] = {"payload_bytes": 1400}
    large: list[float | None] = [*round_trips(9, n=300), *[None] * 300]
    rows = [measurement(round_trips(10, n=600)), measurement(large, options=size)]
    rows[0] = measurement(round_trips(10, n=600), options={"payload_bytes": 56})
    (incident,) = report(*rows).incidents
    assert incident.cause is Cause.BLACK_HOLE
    assert "1428 do not" in incident.reason


def pieces(values: "list[float | None]") -> Iterator[Measurement]:
    for first in range(0, len(values), 50):
        yield measurement(values[first : first + 50], first=first)


def test_a_monitor_names_the_lines_too() -> None:
    monitor = RouteMonitor(
        catalogue=CATALOGUE, options=RouteOptions(join=JoinOptions().scaled(0.2))
    )
    told = [one for piece in pieces(moved()) for one in monitor.see(piece)]
    (incident,) = told
    assert incident.over is None
    assert incident.lines
    assert monitor.incidents()[0].window == incident.window


def over_flows(values_ms: Sequence[float | None], first: int, interval_ns: int) -> Measurement:
    """Packets over 16 flows in turn."""
    samples = tuple(
        Sample(
            seq=first + n,
            metric=Metric.RTT,
            sent_unix_ns=START + (first + n) * interval_ns,
            value_ns=None if one is None else round(one * MS),
            failure=Failure(FailureKind.TIMEOUT, Stage.WAIT) if one is None else None,
            flow=50_000 + (first + n) % 16,
        )
        for n, one in enumerate(values_ms)
    )
    return msgspec.structs.replace(measurement([]), id=f"flows-{first}", samples=samples)


def test_flows_on_other_ways_do_not_fall_ill_when_the_move_is_long_past() -> None:
    """The path moved by 6 ms, two flows by 4 ms more, and back 5 minutes later but for these: one
    incident, in a batch and in a monitor, however long it watches.
    """
    rng = np.random.default_rng(1)
    rows = [
        over_flows(
            [
                20 + rng.exponential(0.03) + 6 * (4_000 <= n < 7_000)
                + 4 * (n % 16 in (3, 11) and n >= 4_000)
                for n in range(first, first + 500)
            ],
            first,
            SECOND // 10,
        )
        for first in range(0, 20_000, 500)
    ]  # fmt: skip
    rules = JoinOptions().scaled(0.3)  # what is over is forgotten after a quarter of an hour
    batch = evaluate_routes(rows, options=RouteOptions(join=rules)).incidents
    assert [one.cause for one in batch] == [Cause.LEVEL]
    monitor = RouteMonitor(options=RouteOptions(join=rules, shifts=WATCH))
    told = [one for row in rows for one in monitor.see(row)]
    told += monitor.finish()
    assert {one.cause for one in told} == {Cause.LEVEL}


def test_many_series_that_fail_in_one_second_are_joined_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not once for each: that would be as many times as much as there are of them."""
    times: list[int] = []

    def counted(rows: Iterable[Evidence], *args: Any, **options: Any) -> list[Incident]:
        times.append(len(found := list(rows)))
        return join(found, *args, **options)

    monkeypatch.setattr("pathbudget.analysis.routes.monitor.join", counted)
    monitor = RouteMonitor()
    rows = [
        msgspec.structs.replace(
            measurement([20.0] * 60 + [None] * 30), id=f"m-{n}", address=f"192.0.2.{n}"
        )
        for n in range(100)
    ]
    told = [one for row in rows for one in monitor.see(row)]
    told += monitor.finish()
    assert [one.cause for one in told] == [Cause.OUTAGE]
    assert len(told[0].series) == 100
    assert len(times) < 5
