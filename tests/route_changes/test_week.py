"""A simulated week with every kind of trouble: each told once, in time, by name, with its cost.

Twenty seeds and the same in the lab: benchmarks/route_week.py, docs/accuracy.md.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import msgspec
from tests.route_changes.scoring import score
from tests.route_changes.week import COMPRESSED, EVERY, SECOND, START, Week

from pathbudget.analysis.routes.evaluate import evaluate_routes
from pathbudget.analysis.routes.level_shifts import WATCH
from pathbudget.analysis.routes.model import Incident, RouteEventKind
from pathbudget.analysis.routes.monitor import RouteMonitor
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement

INTERVAL = round(EVERY * SECOND)


def stream(week: Week, seconds: float = 5.0) -> Iterator[Measurement | RouteUpdate]:
    """Everything in the order of time, measurements in pieces as a journal has them."""
    rows: list[tuple[int, int, str, Measurement | RouteUpdate]] = []
    for one in week.measurements():
        for slot, group in itertools.groupby(
            one.samples, lambda sample: (sample.sent_unix_ns - START) // round(seconds * SECOND)
        ):
            piece = msgspec.structs.replace(one, samples=tuple(group))
            rows.append((START + (slot + 1) * round(seconds * SECOND), 1, one.id, piece))
    rows += [(one.arrived_unix_ns, 0, one.id, one) for one in week.updates()]
    return (row[3] for row in sorted(rows, key=lambda row: row[:3]))


def test_everything_is_told_once_and_nothing_else() -> None:
    week = Week(1)
    report = evaluate_routes(week.measurements(), week.updates(), options=COMPRESSED)
    result = score(week.injected(), report.incidents, INTERVAL)
    assert result.is_perfect, result
    assert (result.precision, result.recall) == (1, 1)
    kinds = {event.kind for event in report.events}
    assert RouteEventKind.SHIFT in kinds
    assert len(report.stability) == 4
    assert sum(timeline.n[0] for timeline in report.timelines) > 0


def test_a_quiet_week_has_no_incident() -> None:
    """An ICMP rate limit and a load balancer at work are all there is."""
    week = Week(5, ("rate_limit", "flutter"))
    report = evaluate_routes(week.measurements(), week.updates(), options=COMPRESSED)
    assert report.incidents == ()


def test_the_monitor_tells_each_once_as_it_begins_and_once_as_it_is_over() -> None:
    kinds = ("shift", "withdraw", "feed")
    week = Week(2, kinds)
    monitor = RouteMonitor(options=replace(COMPRESSED, shifts=WATCH))
    told: list[Incident] = []
    for one in stream(week):
        told += monitor.hear(one) if isinstance(one, RouteUpdate) else monitor.see(one)
    told += monitor.finish()
    begun = [one for one in told if one.over is None]
    over = [one for one in told if one.over is not None]
    assert len(over) == len({one.window for one in over}) == 3
    assert len({one.window for one in begun}) == len(begun) <= 3
    same = Week(2, kinds)
    batch = evaluate_routes(same.measurements(), same.updates(), options=COMPRESSED).incidents
    last = {one.cause: one for one in over}
    assert set(last) == {one.cause for one in batch}
    for known in batch:
        off = abs(last[known.cause].window.by_unix_ns - known.window.by_unix_ns)
        assert off <= 10 * SECOND, known.cause
    assert score(week.injected(), [*last.values()], INTERVAL).recall == 1
