"""What a report says where the data is weak: the cause first, and no cost without its share."""

import io

import msgspec
import pytest
from rich.console import Console
from tests.report.evaluation_parts import make_lines, make_summary

from pathbudget.agents.demo.show import show
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.report.answer import answer_section
from pathbudget.analysis.report.cautions import cautions
from pathbudget.analysis.report.chart_distributions import distributions
from pathbudget.analysis.report.document import Facts, Table
from pathbudget.analysis.report.html import render_html
from pathbudget.analysis.report.lookup import Lookup, site_title
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.report.method import finding_section
from pathbudget.analysis.report.verdicts import line_cell
from pathbudget.analysis.results import Evaluation, Finding, Recommendation, Summary, Verdict

replace = msgspec.structs.replace


def on_terminal(evaluation: Evaluation) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False, emoji=False)
    show(evaluation, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def without_limits(evaluation: Evaluation) -> Evaluation:
    lines = tuple(
        line
        if line.verdict is Verdict.FAIL
        else replace(line, high_ms=None, verdict=Verdict.UNDECIDED)
        for line in evaluation.lines
    )
    return replace(evaluation, lines=lines)


def partly(evaluation: Evaluation, **changes: object) -> Evaluation:
    """All recommendations serve a quarter of the traffic, the next best ones all of it."""
    shares = {"served_share": 0.25, "next_best_served_share": 1.0, "margin": None}
    choices = tuple(replace(one, **(shares | changes)) for one in evaluation.recommendations)
    return replace(evaluation, recommendations=choices)


def shown(evaluation: Evaluation) -> tuple[Table, Facts]:
    """The table at a glance and the first card."""
    blocks = answer_section(Lookup(evaluation)).blocks
    table, card = blocks[0], blocks[1]
    assert isinstance(table, Table)
    assert isinstance(card, Facts)
    return table, card


def words_of(table: Table) -> str:
    cells = [cell for row in table.rows for cell in row]
    return " | ".join(c if isinstance(c, str) else " ".join((c.text, *c.details)) for c in cells)


def test_nothing_weak_needs_no_banner(evaluation: Evaluation) -> None:
    assert cautions(evaluation) == ()
    assert "Before you read on" not in render_markdown(evaluation)


def test_lines_without_limit_are_said_above_the_answer_and_explained(
    evaluation: Evaluation,
) -> None:
    weak = without_limits(evaluation)
    (text,) = cautions(weak)
    assert "headline lines have no upper limit (“no limit”): so many probes were lost" in text
    page = render_markdown(weak)
    assert page.index("Before you read on") < page.index("The answer")
    assert "Caution: " in on_terminal(weak)


def test_a_cost_says_of_which_part_of_the_traffic_it_is_the_mean(evaluation: Evaluation) -> None:
    partial = partly(evaluation)
    table, card = shown(partial)
    assert "mean of the 25 % served" in words_of(table)
    assert "not comparable" in words_of(table)
    facts = dict(card.pairs)
    assert "mean of the 25 % served" in facts["Cost of this choice"]
    assert "serves 100 % of the traffic, not 25 %" in facts["Margin"]
    assert "no other choice" not in words_of(table) + facts["Margin"]
    printed = on_terminal(partial)
    assert "ms of the 25 % served, not comparable with" in printed


def test_a_decision_on_a_part_of_the_traffic_says_so(evaluation: Evaluation) -> None:
    partial = partly(evaluation, served_share=0.6, measured_share=0.6, decided=True)
    table, card = shown(partial)
    assert "yes, for the 60 % measured" in words_of(table)
    assert card.answer.endswith(", for the 60 % measured.")
    assert "decided, for the 60 % measured" in " ".join(on_terminal(partial).split())


def test_no_recommendation_gives_its_reason_and_no_cost(evaluation: Evaluation) -> None:
    why = "5 of 6 regions have no upper limit: measure longer, or from a quieter host."

    def emptied(one: Recommendation) -> Recommendation:
        return replace(one, sites=(), value=None, margin=None, assignments=(), reasons=(why,))

    none = replace(evaluation, recommendations=tuple(map(emptied, evaluation.recommendations)))
    table, card = shown(none)
    assert "no recommendation 5 of 6 regions have no upper limit" in words_of(table)
    assert card.answer == f"No recommendation: {why}"
    printed = " ".join(on_terminal(none).split())
    assert f"no recommendation: {why}" in printed
    assert "mean " not in printed


def test_findings_of_one_kind_take_one_row(evaluation: Evaluation) -> None:
    busy = tuple(
        Finding(kind=FindingKind.HOST_BUSY, region=region.name, site=site.name, text="late.")
        for region in evaluation.regions
        for site in evaluation.sites
    )
    grouped, every = finding_section(
        Lookup(replace(evaluation, findings=evaluation.findings + busy))
    ).blocks
    assert isinstance(grouped, Table)
    assert isinstance(every, Table)
    assert [row[1] for row in grouped.rows] == ["1", "24"]
    assert "and 21 more" in words_of(grouped)
    assert (len(every.rows), every.folded) == (25, True)


def test_charts_show_the_series_that_the_budget_lines_are_from(evaluation: Evaluation) -> None:
    """More samples of another probe must not stand for a pair whose lines are from ICMP."""
    icmp = make_summary("us-south", "dallas", 1.0, 100, 0, "icmp")
    stamp = replace(icmp, probe="stamp", n=9000)
    tcp = replace(icmp, probe="tcp", metric="connect", n=50)
    series = (stamp, tcp, icmp)
    for source, expected in (("icmp", icmp), ("stamp", stamp), ("connect", tcp)):
        lines = tuple(
            replace(line, target=icmp.target, family=icmp.family, round_trips_from=source)
            for line in make_lines(icmp, evaluation.tiers[0])
        )
        lookup = Lookup(replace(evaluation, summaries=series, lines=lines))
        assert lookup.series("us-south", "dallas") is expected


def narrow(summary: Summary, low: float, high: float) -> Summary:
    curve = tuple((p / 50, low + (high - low) * p / 50) for p in range(51))
    return replace(summary, quantile_curve=curve)


@pytest.mark.parametrize(("high", "kind"), [(25.0, None), (300.0, "log")])
def test_a_range_below_a_decade_has_a_linear_axis(
    evaluation: Evaluation, high: float, kind: str | None
) -> None:
    summaries = tuple(narrow(summary, 20.0, high) for summary in evaluation.summaries)
    chart = distributions(Lookup(replace(evaluation, summaries=summaries)))
    assert chart.views[0].layout["xaxis"].get("type") == kind


def test_regions_without_a_curve_are_named_with_the_reason(evaluation: Evaluation) -> None:
    def cut(one: Recommendation) -> Recommendation:
        first, *others = one.assignments
        return replace(one, assignments=(replace(first, site=""), *others))

    partial = replace(evaluation, recommendations=tuple(map(cut, evaluation.recommendations)))
    assert "no site with an upper limit serves Texas" in distributions(Lookup(partial)).note


def test_a_pair_without_a_sample_is_not_measured_and_says_why(evaluation: Evaluation) -> None:
    empty = replace(
        evaluation.lines[0],
        n=0,
        value_ms=None,
        low_ms=None,
        high_ms=None,
        verdict=Verdict.NOT_MEASURED,
        reason="name not found, nothing was sent.",
    )
    cell = line_cell(empty)
    assert (cell.text, cell.details[0]) == ("not measured", "name not found, nothing was sent.")


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("dallas", "Dallas, 1950 Stemmons", "Dallas, 1950 Stemmons"),
        ("us-a", "Chicago", "Chicago (us-a)"),
        ("texas", "Texas", "Texas (texas)"),
        ("edge", "", "edge"),
        ("edge", "edge", "edge"),
    ],
)
def test_a_site_that_reads_like_a_place_has_its_key_beside_it(
    evaluation: Evaluation, name: str, title: str, expected: str
) -> None:
    site = replace(evaluation.sites[0], name=name, title=title)
    assert site_title(site, {"texas"}) == expected


def test_a_report_without_title_has_the_default_one(evaluation: Evaluation) -> None:
    untitled = replace(evaluation, title="")
    assert render_markdown(untitled).startswith("# pathbudget report\n")
    assert "<title>pathbudget report</title>" in render_html(untitled)


def test_one_row_is_one_row(evaluation: Evaluation) -> None:
    page = render_html(replace(evaluation, summaries=evaluation.summaries[:1]))
    assert "1 rows" not in page
    assert ">1 row<" in page


def test_no_word_is_broken_in_a_terminal_of_eighty_columns(evaluation: Evaluation) -> None:
    lines = tuple(
        replace(line, value_ms=113.6, low_ms=113.6, high_ms=None, n=9999)
        for line in evaluation.lines
    )
    printed = on_terminal(replace(evaluation, lines=lines))
    assert max(map(len, printed.splitlines())) <= 80
    words = set(printed.split())
    assert {"113.6..∞", "n=9999", "undecided"} <= words
    assert "∞: no limit: so many" in printed
