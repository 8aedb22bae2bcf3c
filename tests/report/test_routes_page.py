"""The route section: graphs that are true, numbers that agree with the table, nothing hostile."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
from tests.routes_command.week import MS, make_report, make_series, only

from pathbudget.analysis.report.chart import as_json
from pathbudget.analysis.report.chart_route_timeline import in_order, route_timeline
from pathbudget.analysis.report.content import sections
from pathbudget.analysis.report.document import Cell, Drawings, Table
from pathbudget.analysis.report.html import render_routes_html
from pathbudget.analysis.report.json_report import render_json
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.report.route_graph import Mark, path_graph
from pathbudget.analysis.report.route_json import render_routes_json, routes_schema
from pathbudget.analysis.report.route_svg import path_svg
from pathbudget.analysis.report.route_words import (
    breached,
    cost_words,
    lasting,
    window_words,
)
from pathbudget.analysis.report.routes import route_section, route_sections
from pathbudget.analysis.results import Evaluation
from pathbudget.analysis.routes.model import (
    Estimate,
    FlowPath,
    Granularity,
    PathObservation,
    RouteEvent,
    RouteEventKind,
    Window,
)
from pathbudget.analysis.routes.route_report import RouteReport

DOCS = Path(__file__).resolve().parents[2] / "docs"
SERIES = make_series(0)
NOTHING = RouteReport((), (), (), (), (), ())


def observed(*paths: tuple[str, ...]) -> PathObservation:
    """One flow per path; all arrive."""
    flows = tuple(FlowPath(n, only(*path), True) for n, path in enumerate(paths))
    return PathObservation(SERIES, 0, 1, flows)


def changed(before: set[tuple[str, ...]], after: set[tuple[str, ...]]) -> RouteEvent:
    return RouteEvent(
        RouteEventKind.SHIFT,
        SERIES,
        Window(1, 2),
        Granularity.ADDRESS,
        frozenset(before),
        frozenset(after),
    )


def test_the_graph_has_every_node_and_link_of_the_flows_and_no_other() -> None:
    graph = path_graph(observed(("a", "b", "d"), ("a", "c", "d"), ("a", "b", "d")))
    assert {(one.limit, one.address, one.flows) for one in graph.nodes} == {
        (1, "a", 3),
        (2, "b", 2),
        (2, "c", 1),
        (3, "d", 3),
    }
    assert {(one.limit, one.start, one.end, one.flows) for one in graph.links} == {
        (1, "a", "b", 2),
        (1, "a", "c", 1),
        (2, "b", "d", 2),
        (2, "c", "d", 1),
    }
    assert (graph.rows, graph.columns, graph.changed_unix_ns) == (3, 2, None)


def test_silence_is_a_node_of_its_own_and_ends_after_one() -> None:
    graph = path_graph(observed(("a", "", "c"), ("a", "b", "c")))
    assert [one.wild for one in graph.nodes if one.limit == 2] == [True, False]
    endless = path_graph(observed(("a", "", "", "", "")))
    assert endless.rows == 2


def test_a_change_marks_what_is_new_and_draws_what_is_gone() -> None:
    event = changed({("a", "b", "d")}, {("a", "c", "d")})
    graph = path_graph(observed(("a", "c", "d")), [event])
    assert {one.address: one.mark for one in graph.nodes} == {
        "a": Mark.KEPT,
        "b": Mark.GONE,
        "c": Mark.NEW,
        "d": Mark.KEPT,
    }
    marks = {(one.start, one.end): one.mark for one in graph.links}
    assert marks["a", "b"] is marks["b", "d"] is Mark.GONE
    assert marks["a", "c"] is marks["c", "d"] is Mark.NEW


@pytest.mark.parametrize("unseen", [("a", "*", "d"), ("a", "...", "d"), ("a", "b|c", "d")])
def test_what_nobody_saw_is_neither_new_nor_gone(unseen: tuple[str, ...]) -> None:
    event = changed({unseen}, {("a", "b", "d"), ("a", "c", "d")})
    graph = path_graph(observed(("a", "", "d")), [event])
    assert {one.mark for one in graph.nodes} == {Mark.KEPT}


def test_flutter_and_changes_of_other_series_mark_nothing() -> None:
    event = changed({("a", "b")}, {("a", "c")})
    for other in (
        replace(event, kind=RouteEventKind.FLUTTER),
        replace(event, series=make_series(1)),
        replace(event, granularity=Granularity.AS),
        replace(event, back=Window(3, 4)),
    ):
        assert path_graph(observed(("a", "c")), [other]).changed_unix_ns is None


def test_the_drawing_is_well_formed_and_shows_every_address_whatever_its_name() -> None:
    hostile = '"><script>alert(1)</script>'
    graph = path_graph(observed(("a", hostile, "d"), ("a", "", "d")))
    svg, width = path_svg(graph, {"a": "AS1 <b>"}, hostile)
    root = ET.fromstring(svg)
    texts = {"".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")}
    assert {"a", hostile, "d", "no answer", "AS1 <b>"} <= texts
    assert root.get("width") == str(width)
    assert not [one for one in root.iter() if one.tag.endswith("script")]


def test_nothing_of_a_drawing_lies_outside_of_it() -> None:
    six = "2001:db8:1234:5678:9abc:def0:1234:"
    paths = [(f"{six}1", f"{six}{n:x}", f"{six}2") for n in range(16, 24)]
    svg, width = path_svg(path_graph(observed(*paths)), {}, "wide")
    root = ET.fromstring(svg)
    xs = [float(one.get("x", 0)) for one in root.iter() if one.get("class") == "address"]
    assert len(xs) == 10
    assert max(xs) + 6 * len(f"{six}10") <= width


def test_numbers_of_incidents_on_the_timeline_are_those_of_the_table() -> None:
    report = make_report()
    views = {view.label: view for view in route_timeline(report).views}
    assert list(views) == sorted(views)
    layout = views["tokyo &gt; frankfurt 10.3.0.9"].layout
    tagged = {one["text"]: one["hovertext"] for one in layout["annotations"]}
    (table,) = [
        block
        for section in route_sections(report)
        for block in section.blocks
        if isinstance(block, Table) and block.caption == "Incidents"
    ]
    heads = [cell.text for row in table.rows if isinstance(cell := row[0], Cell)]
    assert heads == sorted(heads)
    assert {f"{number}. {name}" for number, name in tagged.items()} == set(heads[:5])


def test_a_gap_in_the_data_is_a_gap_in_the_chart() -> None:
    view = route_timeline(make_report(1)).views[0]
    p50 = view.data[1]["y"]
    assert None in p50
    assert None in view.data[0]["x"]
    assert max(view.data[2]["y"]) == 100


def test_a_line_is_drawn_over_a_short_time_in_which_nobody_looked_and_no_longer_one() -> None:
    (one,) = make_report(1).timelines
    n = list(one.n)
    n[10:12] = [0, 0]
    n[30:40] = [0] * 10
    p50 = [None if count == 0 else 1e6 for count in n]
    idle = replace(one, n=tuple(n), p50_ns=tuple(p50), p95_ns=tuple(p50))
    report = replace(make_report(1), timelines=(idle,))
    drawn = route_timeline(report).views[0].data[1]["y"]
    assert None not in drawn[:28]
    assert drawn[28:38] == [None] * 10
    assert len(drawn) == len(n) - 2


def test_a_report_without_traces_has_no_route_section(evaluation: Evaluation) -> None:
    assert route_section(None) == route_section(NOTHING) == ()
    keys = [one.key for one in sections(Lookup(evaluation))]
    assert "routes" not in keys
    assert "routes" in [one.key for one in sections(Lookup(evaluation, make_report()))]


def test_markdown_has_the_hops_that_html_draws(evaluation: Evaluation) -> None:
    text = render_markdown(evaluation, make_report())
    assert "## Routes" in text
    assert "| tokyo \\> frankfurt; 10.3.0.9 | 1 | 10.0.0.1 | AS65010 access | 6 of 6 |" in text
    assert "path moved" in text


def test_json_has_routes_beside_the_evaluation_and_fits_its_schema(
    evaluation_of: Callable[..., Evaluation],
) -> None:
    content = json.loads(render_json(evaluation_of(1, 1, 1), make_report(1)))
    schema = json.loads((DOCS / "report-schema.json").read_bytes())
    jsonschema.validate(content, schema)
    assert len(content["routes"]["incidents"]) == 6
    content["routes"]["incidents"][0]["cause"] = "magic"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)


@pytest.mark.parametrize("report", [make_report(1), NOTHING], ids=["week", "nothing"])
def test_routes_as_json_fit_the_published_schema(report: RouteReport) -> None:
    schema = json.loads((DOCS / "routes-schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    content = json.loads(render_routes_json(report))
    jsonschema.validate(content, schema)
    assert len(content["paths"]) == len(report.paths)


def test_the_published_schema_of_routes_is_up_to_date() -> None:
    published = json.loads((DOCS / "routes-schema.json").read_bytes())
    assert published == json.loads(msgspec.json.encode(routes_schema())), (
        "run: python -m pathbudget.analysis.report.route_json > docs/routes-schema.json"
    )


def test_no_name_can_act_on_the_page_of_routes() -> None:
    hostile = "</script><img src=http://evil.example/a onerror=alert(1)>"
    series = make_series(0)._replace(region=hostile, site=hostile)
    report = make_report(1)
    report = replace(
        report,
        timelines=tuple(replace(one, series=series) for one in report.timelines),
        paths=tuple(replace(one, series=series) for one in report.paths),
        hop_names={"10.0.0.1": hostile},
    )
    page = render_routes_html(report, hostile)
    assert "<img src=http" not in page
    chart = as_json(route_timeline(report))
    assert not re.search("[<>&]", chart)


def test_many_paths_are_drawn_in_part_and_the_page_says_so() -> None:
    report = make_report(30, incidents=False)
    (drawings,) = [
        block
        for section in route_sections(report)
        for block in section.blocks
        if isinstance(block, Drawings)
    ]
    assert len(drawings.drawings) == 24
    assert "6 more paths" in drawings.note
    assert len(route_timeline(report).views) == 24


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Estimate(12.1 * MS, 11.8 * MS, 12.4 * MS), "+12.1 ms (11.8 to 12.4)"),
        (Estimate(-3.0 * MS, -3.5 * MS, -2.5 * MS), "-3.00 ms (-3.50 to -2.50)"),
        (Estimate(40_000, 10_000, 70_000), "+40 us (10 to 70)"),
        (None, "cost not known"),
    ],
)
def test_costs_in_words(cost: Estimate | None, words: str) -> None:
    assert cost_words(cost) == words


def test_times_in_words() -> None:
    day = 1_764_547_200_000_000_000
    assert window_words(Window(day, day + 120_000_000_000)) == "2025-12-01 00:00:00 to 00:02:00"
    assert window_words(Window(day, day)) == "2025-12-01 00:00:00"
    assert window_words(Window(0, day)) == "before 2025-12-01 00:00:00"
    assert [lasting(n * 1e9) for n in (3, 90, 7_200, 180_000)] == [
        "3 s",
        "1 min 30 s",
        "2 h",
        "2 d 2 h",
    ]


def test_only_lines_that_still_fail_are_breaches() -> None:
    report = make_report()
    assert [(one.cause, line.line) for one, line in breached(report)] == [("member", "network p99")]
    assert in_order(report.incidents)[0].cause == "queue"
