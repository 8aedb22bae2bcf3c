"""A region that was never measured in the evening is told, and may be kept from passing."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.intervals.campaigns import MIDNIGHT, track_of

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.intervals.busy_hours import covers_busy_hours, hours_of, spans
from pathbudget.analysis.results import Verdict
from pathbudget.probes.record import Measurement, Metric, Sample, Target, Vantage
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

HOUR = 3_600_000_000_000
Make = Callable[[int], tuple[Measurement, ...]]


@pytest.fixture
def places() -> Catalogue:
    """A region at 90 degrees east, six hours before UTC."""
    tier = Tier("voice", "", 400.0, {"network": 25.0}, 95.0, "warm", 800, {"warm": 1.0})
    return Catalogue({"east": Region("east", 0, 90)}, {"s": Site("s", 1, 90)}, {"voice": tier})


@pytest.fixture
def measured() -> Make:
    """200 quick round trips within an hour that begins at an hour of UTC."""

    def make(hour: int) -> tuple[Measurement, ...]:
        start = MIDNIGHT + hour * HOUR
        samples = tuple(
            Sample(i, Metric.RTT, start + i * 15_000_000_000, 5_000_000 + (i * 7919) % 1000)
            for i in range(200)
        )
        return (
            Measurement(
                f"m{hour}",
                Vantage("e-1", "east"),
                Target("t", "t.example", "s"),
                "icmp",
                start,
                samples,
            ),
        )

    return make


def verdict_and_findings(
    measured: tuple[Measurement, ...], places: Catalogue, *, required: bool
) -> tuple[Verdict, list[str]]:
    found = evaluate(measured, places, EvaluationOptions(require_busy_hours=required))
    (line,) = (line for line in found.lines if line.headline)
    texts = [one.text for one in found.findings if one.kind is FindingKind.BUSY_HOURS_MISSING]
    return line.verdict, texts


def test_a_night_is_told(places: Catalogue, measured: Make) -> None:
    verdict, (text,) = verdict_and_findings(measured(21), places, required=False)  # 3 at night
    assert verdict is Verdict.PASS
    assert text == (
        "east was measured only from 3:00 to 4:00 local time and never in the evening "
        "(18:00 to 23:00), when paths are fullest: the lines say nothing of it."
    )


def test_where_the_evening_is_required_a_night_does_not_pass(
    places: Catalogue, measured: Make
) -> None:
    assert verdict_and_findings(measured(21), places, required=True)[0] is Verdict.UNDECIDED
    assert verdict_and_findings(measured(13), places, required=True) == (Verdict.PASS, [])


def test_hours_are_local() -> None:
    track = track_of(np.ones(360))  # an hour from midnight UTC
    assert hours_of([track])[0] == hours_of([track], 90.0)[6] == 360
    assert covers_busy_hours(hours_of([track], -75.0))  # 19:00
    assert not covers_busy_hours(hours_of([track], 75.0))


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ([3], "from 3:00 to 4:00"),
        ([1, 2, 3, 9], "from 1:00 to 4:00 and from 9:00 to 10:00"),
        ([23, 0, 1], "from 23:00 to 2:00"),
    ],
)
def test_spans_of_hours(hours: list[int], words: str) -> None:
    assert spans(hours) == words
