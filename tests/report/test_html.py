"""The HTML is one file that loads nothing, runs nothing foreign, and says everything."""

import base64
import hashlib
import itertools
import re
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
import pytest

from pathbudget.analysis.report.html import render_html
from pathbudget.analysis.results import Evaluation, Failover

EvaluationFactory = Callable[..., Evaluation]


class Page(HTMLParser):
    """What a browser would see: elements with attributes, visible text, script and style text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in self.raw else ""
        if self._inside:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside][-1] += data
        else:
            self.texts.append(data)

    @property
    def visible(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_every_section_is_there_in_order(evaluation: Evaluation) -> None:
    page = Page(render_html(evaluation))
    titles = [
        "The answer",
        "Who keeps the budget from where",
        "Round-trip times",
        "Variation and loss by direction",
        "What the network leaves of the whole budget",
        "Where they are",
        "Findings",
        "How it was measured",
        "What was left out",
        "All numbers",
        "What the words mean",
    ]
    heads = re.findall(r"<h2[^>]*>([^<]*)</h2>", render_html(evaluation))
    assert heads == titles
    assert "Take Dallas, 1950 Stemmons; Ashburn; and Frankfurt am Main." in page.visible


def network_loads(page: Page) -> list[str]:
    """Everything that would make a browser fetch something."""
    loads: list[str] = []
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
            value = attributes.get(name)
            if value and not value.startswith(("#", "data:,")):
                loads.append(f"{tag} {name}={value}")
        if re.search(r"url\(|@import", attributes.get("style") or ""):
            loads.append(f"{tag} style")
    loads += re.findall(r"@import|url\([^)]*\)", "".join(page.raw["style"]))
    return loads


@pytest.mark.parametrize("name", ["evaluation", "hostile"])
def test_nothing_is_loaded_from_anywhere(name: str, request: pytest.FixtureRequest) -> None:
    page = Page(render_html(request.getfixturevalue(name)))
    assert network_loads(page) == []


def test_the_check_for_loads_finds_one() -> None:
    page = Page("<img src='http://a.example/b.png'><style>@import 'x'; a{b:url(c)}</style>")
    assert len(network_loads(page)) == 3


def test_hostile_names_stay_text(hostile: Evaluation) -> None:
    page = Page(render_html(hostile))
    executable = [a for tag, a in page.elements if tag == "script" and "type" not in a]
    assert len(executable) == 2
    assert not [a for tag, a in page.elements if tag == "img"]
    assert not [name for _, a in page.elements for name in a if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.visible
    assert "{{ 7*7 }}" in page.visible


def test_data_of_the_charts_cannot_end_its_element(hostile: Evaluation) -> None:
    source = render_html(hostile)
    for block in re.findall(r'type="application/json"[^>]*>(.*?)</script>', source, re.DOTALL):
        assert not re.search(r"[<>&]", block)
        assert "<script" not in block.encode().decode("unicode_escape")


def test_the_policy_allows_exactly_our_two_scripts(evaluation: Evaluation) -> None:
    page = Page(render_html(evaluation))
    policy = next(
        a["content"] or "" for tag, a in page.elements if tag == "meta" and "http-equiv" in a
    )
    hashes = set(re.findall(r"'(sha256-[^']+)'", policy))
    kinds = [a.get("type") for tag, a in page.elements if tag == "script"]
    ours = [text for text, kind in zip(page.raw["script"], kinds, strict=True) if kind is None]
    digests = (hashlib.sha256(text.encode()).digest() for text in ours)
    assert hashes == {f"sha256-{base64.b64encode(digest).decode()}" for digest in digests}
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_it_can_be_read_without_eyes(evaluation: Evaluation) -> None:
    page = Page(render_html(evaluation))
    assert ("html", {"lang": "en"}) in page.elements
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all("scope" in a for tag, a in page.elements if tag == "th")
    charts = [a for _, a in page.elements if a.get("role") == "img"]
    assert len(charts) == 4
    assert all(len(chart["aria-label"] or "") > 40 for chart in charts)
    assert all("aria-label" in a for tag, a in page.elements if tag == "table")


@pytest.mark.parametrize(
    ("regions", "sites", "tiers"),
    [(6, 4, 3), (1, 1, 1), (0, 0, 0), (3, 0, 1), (0, 2, 2), (2, 2, 0)],
)
def test_every_shape_renders_and_never_shows_a_machine_word(
    regions: int, sites: int, tiers: int, evaluation_of: EvaluationFactory
) -> None:
    page = Page(render_html(evaluation_of(regions, sites, tiers)))
    assert not re.search(r"\b(inf|nan|NaN|None|null|undefined)\b", page.visible)


def test_a_pair_that_never_answers_has_no_limit(evaluation: Evaluation) -> None:
    page = Page(render_html(evaluation))
    assert "no limit" in page.visible
    assert "unbounded" not in page.visible.lower()
    assert "no reply" in page.visible


def test_verdicts_are_not_told_by_colour_alone(evaluation: Evaluation) -> None:
    visible = Page(render_html(evaluation)).visible
    for words in ("✓ pass", "✕ fail", "? undecided"):
        assert words in visible


def test_imported_measurements_say_that_their_clock_is_not_known(
    evaluation_of: EvaluationFactory,
) -> None:
    visible = Page(render_html(evaluation_of(2, 2, 1, imported=True))).visible
    assert "atlas-results.json.gz" in visible
    assert "unknown not known 0 foreign not known" in visible


def test_it_never_says_that_resumption_saves_a_round_trip(evaluation: Evaluation) -> None:
    visible = Page(render_html(evaluation)).visible
    assert "saves certificate bytes and computing but takes as many round trips" in visible


@pytest.mark.parametrize("shape", [(60, 20, 3), (300, 1, 1)])
def test_large_ones_stay_small_and_say_what_they_leave_out(
    shape: tuple[int, int, int], evaluation_of: EvaluationFactory
) -> None:
    source = render_html(evaluation_of(*shape, n=60))
    visible = Page(source).visible
    assert len(source.encode()) < 10_000_000
    assert "lighter regions are not drawn" in visible
    if shape[1] > 1:
        assert "more lines are left out here" in visible


def test_times_name_their_zone(evaluation: Evaluation) -> None:
    visible = Page(render_html(evaluation)).visible
    stamps = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: \w+)?", visible)
    assert stamps
    assert all(stamp.endswith(" UTC") for stamp in stamps)


def test_no_recommendable_site_is_said(evaluation: Evaluation) -> None:
    none = tuple(
        msgspec.structs.replace(
            choice, sites=(), assignments=(), value=None, margin=None, next_best_sites=()
        )
        for choice in evaluation.recommendations
    )
    page = Page(render_html(msgspec.structs.replace(evaluation, recommendations=none)))
    assert "No recommendation: Smallest weighted mean" in page.visible
    assert "Take " not in page.visible.replace("Take Cost", "").replace("Tier Take", "")


def test_what_happens_when_a_site_is_down(evaluation: Evaluation) -> None:
    lost = Failover(lost_site="dallas", value=61.2, unserved=("ap-ne",))
    kept = Failover(lost_site="ashburn", value=40.0, unserved=())
    choices = tuple(
        msgspec.structs.replace(choice, failover=(lost, kept))
        for choice in evaluation.recommendations
    )
    visible = Page(
        render_html(msgspec.structs.replace(evaluation, recommendations=choices))
    ).visible
    assert "Without Dallas, 1950 Stemmons 61.2 ms, mean of the 88 % served" in visible
    assert "not served: Tōkyō 東京" in visible
    assert "every region is still served" in visible
