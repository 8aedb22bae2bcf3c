"""Results as frames: names and types that stay, and lines that come back."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.frames import (
    FrameError,
    assignments_frame,
    catalogue_of,
    events_frame,
    findings_frame,
    incidents_frame,
    lines_frame,
    lines_of,
    pairs_frame,
    recommendations_frame,
    summaries_frame,
)
from pathbudget.analysis.results import Evaluation
from pathbudget.analysis.routes.model import (
    Cause,
    Estimate,
    Granularity,
    Incident,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    Window,
)
from pathbudget.analysis.routes.route_report import RouteReport
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Tier

START = 1_772_323_200_000_000_000
TIER = Tier("chat", "Chat", 800.0, {"network": 45.0}, 95.0, "warm", 4000, {"warm": 1.0})
REGIONS = pd.DataFrame(
    {"name": ["eu", "us"], "latitude": [50.1, 32.8], "longitude": [8.7, -96.8], "weight": [2, 1]}
)
SITES = pd.DataFrame({"name": ["fra", "ams"], "latitude": [50.1, 52.4], "longitude": [8.7, 4.9]})


def evaluation() -> Evaluation:
    lost = Failure(FailureKind.TIMEOUT, Stage.WAIT)
    rng = np.random.default_rng(3)
    measurements = [
        Measurement(
            id=f"{region}-{site}",
            vantage=Vantage(f"{region}-1", region),
            target=Target(f"{site}-edge", "edge.example", site),
            probe="icmp",
            started_unix_ns=START,
            address="192.0.2.1",
            family=AddressFamily.IPV4,
            samples=tuple(
                Sample(i, "rtt", START + i * 10**9, value)
                if i % every
                else Sample(i, "rtt", START + i * 10**9, failure=lost)
                for i, value in enumerate((rng.gamma(4, 1e6, 400) + 1e7).astype(int).tolist())
            ),
        )
        for region, site, every in (("eu", "fra", 300), ("us", "fra", 3), ("eu", "ams", 300))
    ]
    catalogue = catalogue_of(REGIONS, SITES, {"chat": TIER})
    return evaluate(measurements, catalogue, EvaluationOptions(choose=(1,)))


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return evaluation()


def test_lines_have_stable_columns(found: Evaluation) -> None:
    lines = lines_frame(found)
    texts = (
        "region",
        "site",
        "tier",
        "direction",
        "mode",
        "method",
        "verdict",
        "reason",
        "target",
        "family",
        "round_trips_from",
        "transport",
        "upload",
    )
    numbers = ("percentile", "value_ms", "low_ms", "high_ms", "n_effective", "allowance_ms")
    expected = dict.fromkeys(texts, "string") | dict.fromkeys(numbers, "float64")
    expected |= dict.fromkeys(("n", "losses", "prompt_bytes"), "int64") | {"headline": "bool"}
    assert {str(name): str(kind) for name, kind in lines.dtypes.items()} == expected
    assert len(lines) == len(found.lines)


def test_unbounded_and_unmeasured_are_told_apart(found: Evaluation) -> None:
    lines = lines_frame(found)
    here = lines[lines.headline].set_index(["region", "site"])
    assert math.isfinite(here["value_ms"].loc[("eu", "fra")])
    assert here["value_ms"].loc[("us", "fra")] == math.inf
    assert math.isnan(here["value_ms"].loc[("us", "ams")])


def test_lines_come_back(found: Evaluation) -> None:
    lines = lines_frame(found)
    assert lines_of(lines) == found.lines
    some = lines[lines.headline]
    assert lines_of(some) == tuple(line for line in found.lines if line.headline)
    with pytest.raises(FrameError, match=r"^verdict: missing"):
        lines_of(lines.drop(columns="verdict"))
    with pytest.raises(FrameError, match=r"row 0: .*verdict"):
        lines_of(lines.assign(verdict="perhaps"))


def test_summaries_have_their_quantiles(found: Evaluation) -> None:
    frame = summaries_frame(found)
    assert list(frame["p95_ms"]) == [
        math.inf if (value := one.quantiles[2].value_ms) is None else value
        for one in found.summaries
    ]
    assert str(frame["p99_high_ms"].dtype) == "float64"


def test_choices_and_pairs(found: Evaluation) -> None:
    choices = recommendations_frame(found)
    assert list(choices["sites"]) == [", ".join(one.sites) for one in found.recommendations]
    assigned = assignments_frame(found)
    assert len(assigned) == sum(len(one.assignments) for one in found.recommendations)
    assert set(assigned["k"]) == {1}
    assert len(pairs_frame(found)) == 4
    assert list(findings_frame(found).columns) == ["kind", "region", "site", "text"]


def test_nothing_keeps_its_columns(found: Evaluation) -> None:
    nothing = evaluate([], Catalogue(tiers={"chat": TIER}))
    for make in (lines_frame, pairs_frame, summaries_frame, findings_frame, recommendations_frame):
        full, empty = make(found), make(nothing)
        assert list(full.columns) == list(empty.columns)
        assert list(map(str, full.dtypes)) == list(map(str, empty.dtypes))


SERIES = PathSeries("eu-1", "eu", "fra", "edge", "192.0.2.1", AddressFamily.IPV4)


def report() -> RouteReport:
    window = Window(START, START + 60 * 10**9)
    event = RouteEvent(
        RouteEventKind.SHIFT,
        SERIES,
        window,
        Granularity.ROUTER,
        frozenset({("a", "b")}),
        frozenset({("a", "c"), ("a", "d")}),
        ("64500",),
        ("64501", "64502"),
    )
    cost = Estimate(4e6, 3e6, 5e6)
    incident = Incident(next(iter(Cause)), window, (SERIES,), cost, "AS64501", "A carrier moved.")
    return RouteReport((), (), (event,), (incident,), (), ())


def test_events_and_incidents_of_routes() -> None:
    events = events_frame(report())
    assert events.loc[0, "region"] == "eu"
    assert events.loc[0, "after"] == pd.Timestamp("2026-03-01", tz="UTC")
    assert events.loc[0, "paths_after"] == 2
    assert events.loc[0, "as_after"] == "64501 64502"
    assert str(events["by"].dtype) == "datetime64[ns, UTC]"
    incidents = incidents_frame(report())
    assert list(incidents.loc[0, ["cost_ms", "cost_low_ms", "cost_high_ms"]]) == [4.0, 3.0, 5.0]
    assert incidents["over_by"].isna().all()
    nothing = RouteReport((), (), (), (), (), ())
    assert list(events_frame(nothing).columns) != []
    assert len(incidents_frame(nothing)) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latitude": [50.0, 95.0]}, "regions.latitude: row 1: 95.0 is out of range; expected"),
        ({"latitude": ["x", 1]}, 'regions.latitude: row 0: "x" is no number; expected'),
        ({"longitude": [None, 1]}, "regions.longitude: row 0 has none"),
        ({"name": ["eu", "eu"]}, "regions.name: row 1 repeats 'eu'"),
        ({"name": ["eu", pd.NaT]}, "regions.name: row 1 has none"),
        ({"name": ["eu", " "]}, 'regions.name: row 1: " " is not usable; expected text'),
        ({"name": ["eu", b"us"]}, "regions.name: row 1: b'us' is no text; expected text"),
        ({"weight": [1, 10**400]}, "regions.weight: row 1: a huge integer is out of range"),
        ({"weight": [1, float("inf")]}, "regions.weight: row 1: inf is out of range"),
        ({"country": ["DE", "Germany"]}, 'regions.country: row 1: "Germany" is'),
        ({"weigh_": [1, 1]}, "regions.weigh_: unknown column; known: name, latitude"),
        ({"weight": [1, -1]}, "regions.weight: row 1: -1 is out of range; expected"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value.split(":")[0],
)
def test_places_that_are_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FrameError) as raised:
        catalogue_of(REGIONS.assign(**change), SITES, {})
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("given", [None, [1], {"name": ["eu"]}], ids=["none", "list", "dict"])
def test_what_is_no_frame(given: Any) -> None:
    with pytest.raises(FrameError, match=r"^regions: a \w+; a data frame of pandas is expected"):
        catalogue_of(given, SITES, {})
    with pytest.raises(FrameError, match=r"^lines: a \w+; a data frame"):
        lines_of(given)


def test_places_of_any_dtype() -> None:
    expected = catalogue_of(REGIONS, SITES, {})
    regions, sites = (one.convert_dtypes(dtype_backend="pyarrow") for one in (REGIONS, SITES))
    assert catalogue_of(regions, sites, {}) == expected
    categories = REGIONS.assign(name=pd.Categorical(REGIONS.name))
    assert catalogue_of(categories, SITES, {}) == expected
    numbered = catalogue_of(REGIONS.assign(name=[1, 2]), SITES, {})
    assert list(numbered.regions) == ["1", "2"]


def test_places_need_their_columns() -> None:
    with pytest.raises(FrameError, match=r"^sites\.latitude: missing"):
        catalogue_of(REGIONS, SITES.drop(columns="latitude"), {})
