"""The report as text: fits 80 columns, says what an incident is, keeps flutter apart."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pathbudget.agents.routes.table import incident_lines, report_lines, summary_words
from pathbudget.analysis.report.route_words import incident_cost, line_words
from pathbudget.analysis.routes.model import (
    Cause,
    Estimate,
    Incident,
    LevelShift,
    MovedLine,
    PathSeries,
    Window,
)
from pathbudget.analysis.routes.route_report import RouteReport

NOTHING = RouteReport((), (), (), (), (), ())


def texts(report: RouteReport, width: int = 80, *, paths: bool = False) -> list[str]:
    return [line.plain for line in report_lines(report, width, paths=paths)]


def joined(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(report: RouteReport, width: int) -> None:
    lines = texts(report, width, paths=True)
    assert max(map(len, lines)) <= width


def test_an_incident_says_when_what_cost_whom_why_and_which_line(report: RouteReport) -> None:
    moved = next(one for one in report.incidents if one.cause == "path_moved")
    lines = [line.plain for line in incident_lines(moved, 100)]
    assert lines[0] == (
        "2025-12-03 05:58:00 to 06:00:00  path moved, +12.1 ms (11.8 to 12.4), over by 12-04 12:00"
    )
    text = joined(lines)
    assert "tokyo > frankfurt (10.3.0.9), tokyo > london (10.3.1.9), osaka > frankfurt" in text
    assert "Blamed: AS65013. The path sets differ from hop 2 on" in text
    assert (
        "budget: Voice AI, tokyo > frankfurt, network p95: 21.1 > 33.2 ms of 25: pass > fail"
        in text
    )
    assert "3 of 4 peers changed the AS path of 10.3.0.0/16" in text


def test_the_cost_of_what_never_came_back_is_not_made_up(report: RouteReport) -> None:
    gone = next(one for one in report.incidents if one.cause == "withdrawn")
    head = next(incident_lines(gone, 100)).plain
    assert "ms" not in head
    assert "us" not in head


def test_flutter_is_counted_apart(report: RouteReport) -> None:
    assert summary_words(report) == (
        "4 series, 2025-12-01 00:00 to 2025-12-08 00:00 UTC: 16 changes of route, 932 flutters; "
        "6 incidents, 4 still so."
    )


def test_incidents_come_in_the_order_of_time(report: RouteReport) -> None:
    heads = [
        line for line in texts(replace(report, incidents=report.incidents[::-1])) if "12-0" in line
    ]
    days = [head[:19] for head in heads if head.startswith("2025")]
    assert days == sorted(days)
    assert len(days) == 6


def test_stability_has_its_interval_and_says_what_it_cannot_see(report: RouteReport) -> None:
    text = joined(texts(report))
    assert "96.7% 2d 6h 0.57 (0.16-1.46) 0.21 233" in text
    assert "What left and came back within 5 min is unseen." in text


def test_all_routes_on_request(report: RouteReport) -> None:
    assert "AS65010 AS65013 AS65020" not in joined(texts(report)).split("Stability", 1)[1]
    assert "3.3% 66 times [AS65010 AS65013 AS65020]" in joined(texts(report, paths=True))


def test_nothing_is_said_as_such() -> None:
    assert texts(NOTHING) == [
        "0 series: 0 changes of route, 0 flutters; 0 incidents, 0 still so.",
        "No incident.",
    ]


def test_a_stale_feed_is_said(report: RouteReport) -> None:
    assert "ris (ris_live): stale, last message 20 min ago, 3 of 24 peers" in joined(texts(report))


def _rise(site: str, cost_ms: float) -> LevelShift:
    """Of a path that became longer by `cost_ms`, known to 0.01 ms."""
    before, after, cost = (
        Estimate(value * 1e6, (value - 0.01) * 1e6, (value + 0.01) * 1e6, 0.95)
        for value in (20.0, 20.0 + cost_ms, cost_ms)
    )
    series = PathSeries("v", "east", site, "t", f"192.0.2.{len(site)}", None, "icmp")
    return LevelShift(series, "rtt", "rtt", Window(10, 20), before, after, cost, 1e-6)


@pytest.mark.parametrize(
    ("rises", "words"),
    [
        ([("tokyo", 9.99), ("dallas", 74.0)], "+9.99 ms to +74.0 ms by path"),
        ([("tokyo", 1.01), ("dallas", -24.0)], "-24.0 ms to +1.01 ms by path"),
        ([("tokyo", 9.99), ("dallas", 10.0)], "+9.99 ms (9.98 to 10.0)"),
    ],
)
def test_a_cost_that_paths_do_not_share_is_said_of_all(
    rises: list[tuple[str, float]], words: str
) -> None:
    """What one path felt is not what the incident cost the others."""
    evidence = [_rise(*one) for one in rises]
    series = tuple(one.series for one in evidence)
    incident = Incident(
        Cause.PATH_MOVED,
        Window(10, 20),
        series,
        evidence[0].cost,
        "",
        "",
        None,
        (),
        tuple(evidence),
    )
    assert incident_cost(incident) == words


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause.OUTAGE, "nothing came back"),
        (Cause.FEED, "none"),
        (Cause.MEMBER, "on some flows only"),
        (Cause.LEVEL, "not known"),
    ],
)
def test_no_cost_is_not_an_unknown_one(cause: Cause, words: str) -> None:
    incident = Incident(cause, Window(10, 20), (), None, "", "")
    assert incident_cost(incident) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (21.1, 33.2, "21.1 > 33.2 ms of 25"),
        (21.1, math.inf, "21.1 ms > lost, of 25 ms"),
        (math.inf, 21.1, "lost > 21.1 ms, of 25 ms"),
    ],
)
def test_lost_is_no_number_of_ms(before: float, after: float, words: str) -> None:
    line = MovedLine("east", "tokyo", "chat", "network p95", before, after, 25.0, "pass", "fail")
    assert f": {words}: " in line_words(line)
