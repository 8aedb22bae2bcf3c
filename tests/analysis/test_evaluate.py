"""From measurements to an evaluation."""

import random
from collections.abc import Callable

import msgspec
import pytest

from pathbudget.agents.evaluation import evaluate_store
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Evaluation, Finding, Mode, Objective, Verdict
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
    SyncState,
)
from pathbudget.sites.catalogue import Catalogue

MakePath = Callable[..., list[Measurement]]
MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]
OPTIONS = EvaluationOptions(generated_unix_ns=1, title="Test")


@pytest.fixture
def campaign(make_path: MakePath) -> list[Measurement]:
    """Each region near one of the two sites."""
    return [
        *make_path("west", "alpha", 4.0),
        *make_path("west", "beta", 60.0),
        *make_path("east", "alpha", 62.0),
        *make_path("east", "beta", 9.0),
    ]


def found(evaluation: Evaluation, kind: FindingKind) -> list[Finding]:
    return [finding for finding in evaluation.findings if finding.kind is kind]


def test_the_whole_way(campaign: list[Measurement], catalogue: Catalogue) -> None:
    evaluation = evaluate(campaign, catalogue, OPTIONS)
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
    minute_is_no_day = FindingKind.BUSY_HOURS_MISSING
    assert [(one.kind, one.region, one.site) for one in evaluation.findings] == [
        (minute_is_no_day, "west", ""),
        (minute_is_no_day, "east", ""),
    ]
    assert not evaluation.alternatives
    chosen = {(r.tier, r.objective, r.k): r for r in evaluation.recommendations}
    assert len(chosen) == 2 * 2 * 2
    assert chosen["voice-ai", Objective.P_MEDIAN, 1].sites == ("alpha",)
    assert chosen["voice-ai", Objective.COVERING, 2].value == 1.0
    assert evaluation.provenance.samples == sum(len(m.samples) for m in campaign)
    assert len(evaluation.pairs) == 4
    assert all(pair.inflation is not None and pair.inflation > 1 for pair in evaluation.pairs)
    assert len(evaluation.lines) == 4 * 2 * 4 * 3 * 3


def test_the_report_is_plain_json(campaign: list[Measurement], catalogue: Catalogue) -> None:
    evaluation = evaluate(campaign[:3], catalogue, OPTIONS)
    encoded = msgspec.json.encode(evaluation)
    assert msgspec.json.decode(encoded, type=Evaluation) == evaluation
    for word in (b"NaN", b"Infinity"):
        assert word not in encoded


def without_count(evaluation: Evaluation) -> Evaluation:
    provenance = msgspec.structs.replace(evaluation.provenance, measurements=0)
    return msgspec.structs.replace(evaluation, provenance=provenance)


@pytest.mark.parametrize("seed", [1, 2])
def test_order_and_splitting_change_nothing(
    make_path: MakePath, catalogue: Catalogue, seed: int
) -> None:
    rng = random.Random(seed)
    whole = [*make_path("west", "alpha", 4.0, n=90), *make_path("east", "beta", 9.0, n=90)]
    pieces: list[Measurement] = []
    for measurement in whole:
        samples = list(measurement.samples)
        rng.shuffle(samples)
        cut = rng.randrange(1, len(samples))
        for number, part in enumerate((samples[:cut], samples[cut:])):
            name = f"{measurement.id}-{number}"
            pieces.append(msgspec.structs.replace(measurement, id=name, samples=tuple(part)))
    rng.shuffle(pieces)
    expected = without_count(evaluate(whole, catalogue, OPTIONS))
    assert without_count(evaluate(iter(pieces), catalogue, OPTIONS)) == expected


def test_a_record_that_comes_twice_counts_once(
    campaign: list[Measurement], catalogue: Catalogue
) -> None:
    once = evaluate(campaign[:2], catalogue, OPTIONS)
    twice = evaluate([*campaign[:2], campaign[0]], catalogue, OPTIONS)
    assert twice.lines == once.lines
    (exclusion,) = twice.exclusions
    assert exclusion.n == len(campaign[0].samples)


def test_a_name_that_is_not_found_is_not_measured_and_no_failure_of_the_network(
    make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    failure = Failure(FailureKind.NAME_NOT_FOUND, Stage.RESOLVE, "no such name")
    samples = tuple(Sample(i, Metric.RTT, i, failure=failure) for i in range(130))
    evaluation = evaluate([make_measurement(samples, family=None, address="")], catalogue, OPTIONS)
    lines = [line for line in evaluation.lines if line.n == 0 and "name not found" in line.reason]
    assert len(lines) == len(evaluation.tiers)
    for line in lines:
        assert (line.verdict, line.losses) == (Verdict.NOT_MEASURED, 0)
        assert line.reason == "name not found, nothing was sent."
    (finding,) = found(evaluation, FindingKind.NAME_NOT_FOUND)
    assert "was not found 130 times" in finding.text
    assert not found(evaluation, FindingKind.UNREACHABLE)


def test_nothing_measured_is_an_answer_too(catalogue: Catalogue) -> None:
    evaluation = evaluate([], catalogue, OPTIONS)
    assert evaluation.provenance.samples == 0
    assert {line.verdict for line in evaluation.lines} == {Verdict.NOT_MEASURED}
    (finding,) = found(evaluation, FindingKind.UNMEASURED)
    assert finding.text.startswith("4 of 4 pairs of a region and a site were not measured: west to")
    assert all(r.sites == () for r in evaluation.recommendations)
    assert "no site was measured" in evaluation.recommendations[0].reasons[0]


def test_an_empty_catalogue_still_summarises(campaign: list[Measurement]) -> None:
    evaluation = evaluate(campaign, Catalogue(), OPTIONS)
    assert evaluation.summaries
    assert not evaluation.lines
    assert len(found(evaluation, FindingKind.UNKNOWN_PLACE)) == 2


def test_places_the_catalogue_does_not_know_are_kept(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    samples = make_samples([5.0] * 100)
    measurement = make_measurement(samples, region="north", site="gamma")
    evaluation = evaluate([measurement], catalogue, OPTIONS)
    north = evaluation.regions[-1]
    assert (north.name, north.weight, north.latitude) == ("north", 1.0, None)
    assert (evaluation.sites[-1].name, evaluation.sites[-1].latitude) == ("gamma", None)
    texts = [finding.text for finding in found(evaluation, FindingKind.UNKNOWN_PLACE)]
    assert texts == [
        "region north is not in the catalogue: weight taken as 1.",
        "site gamma is not in the catalogue: no coordinates, no price.",
    ]
    assert found(evaluation, FindingKind.UNMEASURED)[0].text.startswith("8 of 9 pairs")


def test_a_target_without_site_or_region_is_its_own_place(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    plain = make_measurement(
        make_samples([5.0] * 9), region="", vantage="laptop", site="", target="host"
    )
    evaluation = evaluate([plain], catalogue, OPTIONS)
    assert (evaluation.summaries[0].region, evaluation.summaries[0].site) == ("laptop", "host")


def test_both_families_are_shown_and_one_stands_for_the_site(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    four = make_measurement(make_samples([5.0] * 100))
    six = make_measurement(
        make_samples([9.0] * 100), family=AddressFamily.IPV6, address="2001:db8::1"
    )
    evaluation = evaluate([six, four], catalogue, OPTIONS)
    assert {line.family for line in evaluation.lines if line.n} == {"ipv4"}
    voice = [line for line in evaluation.alternatives if line.tier == "voice-ai"]
    assert [(line.family, line.value_ms) for line in voice] == [("ipv4", 5.0), ("ipv6", 9.0)]


def test_findings_about_the_samples(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    connects = make_samples([1005.0], Metric.CONNECT, flags=("syn_retransmitted",))
    refused = Failure(FailureKind.NOT_RESUMED, Stage.HANDSHAKE)
    full = [Sample(seq, Metric.SETUP, 1, failure=refused) for seq in range(3)]
    evaluation = evaluate(
        [
            make_measurement(make_samples([5.0] * 9, clock_source=ClockSource.USER)),
            make_measurement(make_samples([5.0] * 9), address="192.0.2.9"),
            make_measurement(connects, probe="tcp"),
            make_measurement(full, probe="tls"),
            make_measurement(make_samples([None] * 30), site="beta"),
        ],
        catalogue,
        OPTIONS,
    )
    kinds = {finding.kind: finding.text for finding in evaluation.findings}
    assert "9 of 18 round trips were stamped in user space" in kinds[FindingKind.USER_CLOCK]
    assert "1 TCP connect lost a SYN" in kinds[FindingKind.SYN_RETRANSMITTED]
    assert "192.0.2.1, 192.0.2.9" in kinds[FindingKind.ADDRESS_CHANGED]
    assert "full handshake 3 times although a ticket" in kinds[FindingKind.NOT_RESUMED]
    assert "beta-edge over ipv4 answered none of 30 probes" in kinds[FindingKind.UNREACHABLE]


def test_vantages_show_the_worst_of_their_clocks(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    good = ClockQuality(SyncState.SYNCHRONISED, "chrony", 1_000_000)
    bad = ClockQuality(SyncState.UNSYNCHRONISED, "adjtimex", None, 1, -3_600_000_000_000)
    one = make_measurement(make_samples([5.0] * 9), floor_ns=10_000)
    two = make_measurement(make_samples([5.0] * 9), floor_ns=90_000)
    evaluation = evaluate(
        [msgspec.structs.replace(one, clock=good), msgspec.structs.replace(two, clock=bad)],
        catalogue,
        OPTIONS,
    )
    (vantage,) = evaluation.vantages
    assert vantage.sync_state == "unsynchronised"
    assert vantage.offset_bound_ms == 1.0
    assert (vantage.clock_steps, vantage.largest_step_ms) == (1, 3_600_000.0)
    assert vantage.noise_floor_ms == 0.09
    assert vantage.lateness_p99_ms == pytest.approx(0.001008)
    assert "stepped once" in found(evaluation, FindingKind.CLOCK_STEP)[0].text


def test_set_ups_without_round_trips_of_their_vantage_are_excluded_by_name(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    tls = [
        *make_samples([30.0] * 50, Metric.SETUP, "cold"),
    ]
    evaluation = evaluate(
        [
            make_measurement(make_samples([5.0] * 50), vantage="one"),
            make_measurement(tls, vantage="one", probe="tls"),
            make_measurement(tls, vantage="two", probe="tls"),
        ],
        catalogue,
        OPTIONS,
    )
    (exclusion,) = evaluation.exclusions
    assert (exclusion.n, exclusion.what) == (50, "set-up samples in no network line")


def test_tiers_are_picked_by_name(campaign: list[Measurement], catalogue: Catalogue) -> None:
    options = EvaluationOptions(tiers=("rag",), generated_unix_ns=1)
    evaluation = evaluate(campaign[:1], catalogue, options)
    assert [tier.name for tier in evaluation.tiers] == ["rag"]
    with pytest.raises(ConfigError, match="tiers: nonsense: no such tier; expected one of: voice"):
        evaluate([], catalogue, EvaluationOptions(tiers=("nonsense",)))


@pytest.mark.parametrize(
    "wrong",
    [{"confidence": 1.0}, {"confidence": 0.99999}, {"percentiles": (100.0,)}, {"choose": (0,)}],
)
def test_senseless_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        EvaluationOptions(**wrong)  # type: ignore[arg-type]


def test_a_resumed_connection_takes_as_many_round_trips_as_a_cold_one(
    campaign: list[Measurement], catalogue: Catalogue
) -> None:
    evaluation = evaluate(campaign, catalogue, OPTIONS)
    by_mode = {
        line.mode: line.value_ms
        for line in evaluation.lines
        if (line.region, line.site, line.percentile) == ("west", "beta", 50.0)
        and line.allowance_ms == 25.0
    }
    assert by_mode[Mode.RESUMED] == pytest.approx(by_mode[Mode.COLD], rel=0.05)


class OneCampaign:
    """A store that holds what it was given and remembers what it was asked."""

    def __init__(self, measurements: list[Measurement]) -> None:
        self.held = measurements
        self.asked: list[tuple[str | None, int | None]] = []

    def measurements(
        self, *, campaign: str | None = None, since_unix_ns: int | None = None
    ) -> list[Measurement]:
        self.asked.append((campaign, since_unix_ns))
        return self.held


def test_a_store_is_evaluated(campaign: list[Measurement], catalogue: Catalogue) -> None:
    store = OneCampaign(campaign[:2])
    evaluation = evaluate_store(
        store, catalogue, campaign="synthetic", since_unix_ns=7, title="T", generated_unix_ns=1
    )
    assert store.asked == [("synthetic", 7)]
    assert evaluation == evaluate(
        campaign[:2], catalogue, EvaluationOptions(title="T", generated_unix_ns=1)
    )


def test_a_host_that_answers_pings_and_refuses_connections_is_named(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    echo = make_measurement(make_samples([5.0] * 100))
    refused = make_samples([None] * 20, Metric.SETUP, ConnectionMode.COLD)
    evaluation = evaluate([echo, make_measurement(refused, probe="tls")], catalogue, OPTIONS)
    texts = [finding.text for finding in found(evaluation, FindingKind.UNREACHABLE)]
    assert len(texts) == 1
    assert texts[0].startswith("not one of 20 connections to")
