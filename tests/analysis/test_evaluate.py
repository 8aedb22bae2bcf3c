"""From measurements to an evaluation."""

from collections.abc import Callable

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.results import Verdict
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue

MakePath = Callable[..., list[Measurement]]
OPTIONS = EvaluationOptions(generated_unix_ns=1)


def test_the_whole_way(make_path: MakePath, catalogue: Catalogue) -> None:
    measurements = [
        *make_path("west", "alpha", 4.0),
        *make_path("west", "beta", 60.0),
        *make_path("east", "alpha", 62.0),
        *make_path("east", "beta", 9.0),
    ]
    evaluation = evaluate(measurements, catalogue, OPTIONS)
    headline = {
        (line.region, line.site): line.verdict
        for line in evaluation.lines
        if line.headline and line.tier == "voice-ai"
    }
    assert headline == {
        ("west", "alpha"): Verdict.PASS,
        ("west", "beta"): Verdict.FAIL,
        ("east", "alpha"): Verdict.FAIL,
        ("east", "beta"): Verdict.PASS,
    }
    assert not evaluation.exclusions
