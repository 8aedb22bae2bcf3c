"""While samples may decide a verdict a look goes on; when they have not, it says what would."""

from collections.abc import Sequence

import pytest

from pathbudget.agents.quick.hosts import parse_host
from pathbudget.agents.quick.look import LONGEST_NS, Trust, look, places_as_catalogue
from pathbudget.agents.quick.open_verdicts import advice, more_would_help
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.results import Evaluation
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)

HOST = "192.0.2.1:443"


def evaluated(values_ms: Sequence[float], lost: int = 0) -> Evaluation:
    numbers = [
        Sample(
            seq=number,
            metric="rtt",
            sent_unix_ns=number * 30_000_000 + 1,
            value_ns=round(value * 1e6),
            clock_source=ClockSource.KERNEL,
        )
        for number, value in enumerate(values_ms)
    ]
    losses = [
        Sample(
            seq=len(numbers) + number,
            metric="rtt",
            sent_unix_ns=(len(numbers) + number) * 30_000_000 + 1,
            failure=Failure(FailureKind.TIMEOUT, Stage.WAIT),
        )
        for number in range(lost)
    ]
    measurement = Measurement(
        id="one",
        vantage=Vantage(name="here", region="here"),
        target=Target(name=HOST, host="192.0.2.1", site=HOST),
        probe="icmp",
        started_unix_ns=1,
        samples=(*numbers, *losses),
        address="192.0.2.1",
        family=AddressFamily.IPV4,
    )
    options = EvaluationOptions(title="test", generated_unix_ns=1)
    return evaluate([measurement], places_as_catalogue([parse_host(HOST, 443)], None), options)


@pytest.mark.parametrize(
    ("values", "lost", "helps"),
    [
        ([5.0 + 0.01 * (n * 37 % 100) for n in range(60)], 0, True),  # too few for a p95
        ([5.0 + 0.01 * (n * 37 % 100) for n in range(400)], 0, False),  # pass
        ([500.0 + 0.01 * (n * 37 % 100) for n in range(60)], 0, False),  # fail, few as they are
        ([5.0], 300, False),  # fail: lost
    ],
)
def test_more_samples_help_where_the_interval_is_too_wide(
    values: list[float], lost: int, helps: bool
) -> None:
    evaluation = evaluated(values, lost)
    assert more_would_help(evaluation) is helps
    told = advice(evaluation, [HOST], 15)
    expected = f"More time may decide it: pathbudget check {HOST} --duration 60s"
    assert told == (expected if helps else "")


def test_the_advice_grows_with_what_was_tried_and_ends_at_a_campaign() -> None:
    evaluation = evaluated([5.0 + 0.01 * (n * 37 % 100) for n in range(60)])
    assert "--duration 300s" in advice(evaluation, [HOST], 60)
    assert "campaign" in advice(evaluation, [HOST], 600)


def test_a_look_goes_on_until_it_is_decided_and_samples_what_decides() -> None:
    asked: list[int] = []

    def decided(found: Sequence[Measurement]) -> bool:
        asked.append(len(found))
        return len(asked) > 1

    host = parse_host("127.0.9.3:9", 443)
    looked = look([host], family=AddressFamily.IPV4, trust=Trust(verify=False), decided=decided)
    assert len(asked) == 2
    added = looked.measurements[asked[0] :]
    assert {one.probe for one in added} in ({"icmp"}, {"tcp"})
    assert sum(len(one.samples) for one in added) > 60
    started = [one.started_unix_ns for one in looked.measurements]
    assert max(started) - min(started) < LONGEST_NS
