"""A refused connect: a round trip of the network, never a connection, never a healthy site."""

from collections.abc import Callable, Sequence

import msgspec

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Evaluation, Summary, Verdict
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.record import Failure, Flag, Measurement, Metric, Sample
from pathbudget.sites.catalogue import Catalogue

MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]


def connects(make_samples: MakeSamples, marks: Sequence[tuple[str, ...]]) -> tuple[Sample, ...]:
    """Connects of 5 ms each, with these flags."""
    plain = make_samples([5.0] * len(marks), Metric.CONNECT)
    return tuple(
        msgspec.structs.replace(one, flags=flags) for one, flags in zip(plain, marks, strict=True)
    )


def summary(evaluation: Evaluation, metric: str) -> Summary:
    (found,) = [one for one in evaluation.summaries if one.metric == metric]
    return found


def judged(evaluation: Evaluation) -> set[Verdict]:
    return {line.verdict for line in evaluation.lines if line.headline and line.n}


def test_it_is_a_lost_connection_and_a_round_trip(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    marks = [(Flag.REFUSED,)] * 10 + [()] * 90
    measurement = make_measurement(connects(make_samples, marks), probe="tcp")
    evaluation = evaluate([measurement], catalogue, EvaluationOptions())
    accepted, refused = summary(evaluation, "connect"), summary(evaluation, "connect_refused")
    assert (accepted.n, accepted.losses) == (100, 10)
    assert accepted.failures == {"refused/connect": 10}
    assert accepted.clock_sources == {"kernel": 90}
    assert (refused.n, refused.losses, refused.minimum_ms) == (10, 0, 5.0)
    (finding,) = [one for one in evaluation.findings if one.kind is FindingKind.REFUSED]
    assert "refused 10 of 100 TCP connects" in finding.text


def test_a_site_that_refuses_everybody_passes_no_line(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    """Its pings are quick, and a service is not there."""
    echo = make_measurement(make_samples([5.0] * 400))
    open_port = make_measurement(connects(make_samples, [()] * 100), probe="tcp")
    closed = make_measurement(connects(make_samples, [(Flag.REFUSED,)] * 100), probe="tcp")
    assert Verdict.PASS in judged(evaluate([echo, open_port], catalogue, EvaluationOptions()))
    evaluation = evaluate([echo, closed], catalogue, EvaluationOptions())
    assert Verdict.PASS not in {line.verdict for line in evaluation.lines}
    assert any("refused every one of 100" in line.reason for line in evaluation.lines)
    assert any(one.kind is FindingKind.REFUSED for one in evaluation.findings)


def test_without_pings_it_is_refused_and_not_unreachable(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    closed = make_measurement(connects(make_samples, [(Flag.REFUSED,)] * 100), probe="tcp")
    evaluation = evaluate([closed], catalogue, EvaluationOptions())
    kinds = {finding.kind for finding in evaluation.findings}
    assert FindingKind.REFUSED in kinds
    assert FindingKind.UNREACHABLE not in kinds
    assert judged(evaluation) <= {Verdict.FAIL, Verdict.UNDECIDED}
    assert [one.minimum_rtt_ms for one in evaluation.pairs if one.minimum_rtt_ms] == [5.0]


def test_the_bound_on_half_open_connects_is_no_loss_of_the_network(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    bound = HalfOpen(per_target=1)
    assert bound.enter(("192.0.2.1", 443)) is None
    failure = bound.enter(("192.0.2.1", 443))
    assert isinstance(failure, Failure)
    first, second = connects(make_samples, [(), ()])
    held = msgspec.structs.replace(second, value_ns=None, failure=failure)
    evaluation = evaluate(
        [make_measurement((first, held), probe="tcp")], catalogue, EvaluationOptions()
    )
    found = summary(evaluation, "connect")
    assert (found.n, found.losses) == (1, 0)
    assert [one.n for one in evaluation.exclusions if "local/connect" in one.what] == [1]
