"""Sick members of groups of parallel links, found and not invented."""

import numpy as np
import pytest
from tests.link_health.paths import INTERVAL, MS, SERIES, START, sample, sweep

from pathbudget.analysis.routes.flow_groups import two_groups
from pathbudget.analysis.routes.members import (
    MemberOptions,
    MemberSurvey,
    micro,
    sick_members,
    survey_members,
    survey_sweep,
)
from pathbudget.analysis.routes.sweeps import Sweep, sweep_of
from pathbudget.probes.record import Failure, FailureKind, Stage

EIGHT = tuple(range(3, 64, 8))


def survey(found: Sweep, **options: float) -> MemberSurvey:
    chosen = MemberOptions(floor_ns=int(options.get("floor_ns", 0)))
    return survey_sweep(SERIES, found, chosen)


def test_flows_of_one_sick_member_are_one_finding() -> None:
    """3 % of loss on one of eight members, that an average over all flows hides."""
    found = survey(sweep(np.random.default_rng(11), sick=EIGHT, more=0.03))
    (finding,) = found.findings
    assert finding.what == "loss"
    assert len(set(finding.flows) & set(EIGHT)) >= 7
    assert len(set(finding.flows) - set(EIGHT)) <= 1
    assert finding.low <= 0.03 <= finding.high
    assert finding.group < 0.003
    assert finding.p_value < finding.alpha
    assert finding.window.after_unix_ns == START
    assert not found.healthy


def test_flows_that_are_well_again_rule_their_finding_out() -> None:
    """Long before the sweep could have found a sick member that nobody knew of."""
    (finding,) = survey(sweep(np.random.default_rng(11), sick=EIGHT, more=0.03)).findings
    well = survey(sweep(np.random.default_rng(21), per_flow=60))
    assert not well.healthy
    assert well.rules_out(finding)
    assert not survey(sweep(np.random.default_rng(21), per_flow=12)).rules_out(finding)
    ill = survey(sweep(np.random.default_rng(22), per_flow=60, sick=EIGHT, more=0.03))
    assert not ill.rules_out(finding)


def test_a_dead_member_is_found() -> None:
    (finding,) = survey(sweep(np.random.default_rng(12), sick=EIGHT, more=1.0)).findings
    assert finding.flows == EIGHT
    assert finding.value == 1.0


def test_the_slow_member_in_microseconds_against_the_noise_floor() -> None:
    path = sweep(np.random.default_rng(13), sick=(5, 9), longer_ns=40_000)
    (finding,) = survey(path, floor_ns=15_000).findings
    assert (finding.what, finding.flows) == ("rtt", (5, 9))
    assert finding.low <= 40_000 <= finding.high
    refused = survey(path, floor_ns=60_000)
    assert refused.findings == ()
    assert "us, and the noise floor is 60.0 us" in refused.undecided[0]
    assert not refused.healthy


def test_ways_of_unequal_length_are_no_fault_once_known() -> None:
    usual = sweep(np.random.default_rng(14), sick=(5, 9), longer_ns=40_000)
    again = sweep(np.random.default_rng(15), sick=(5, 9), longer_ns=40_000)
    assert survey_sweep(SERIES, again, MemberOptions(), usual).findings == ()
    slower = sweep(np.random.default_rng(15), sick=(5, 9), longer_ns=90_000)
    (finding,) = survey_sweep(SERIES, slower, MemberOptions(), usual).findings
    assert finding.flows == (5, 9)
    assert finding.low <= 50_000 <= finding.high


@pytest.mark.parametrize(
    ("flows", "per_flow", "loss", "bursts"),
    [(256, 60, 0.01, 0), (64, 100, 0.0005, 30), (64, 100, 0.03, 0)],
)
def test_healthy_groups_raise_no_more_alarms_than_stated(
    flows: int, per_flow: int, loss: float, bursts: int
) -> None:
    """At 1 % a kind and 12 sweeps, 3 and more alarms have a chance of 0.2 %."""
    alarms = 0
    for seed in range(12):
        path = sweep(np.random.default_rng((seed, 5)), flows, per_flow, loss=loss, bursts=bursts)
        alarms += len(survey_sweep(SERIES, path, MemberOptions(0.01, seed=seed)).findings)
    assert alarms <= 2


def test_one_burst_on_neighbouring_flows_is_nothing() -> None:
    """All losses in one moment: whoever was sent just then."""
    lost = np.zeros((40, 32))
    lost[7, 4:12] = 1
    split = two_groups(lost, np.ones_like(lost), np.random.default_rng(1), 300, counts=True)
    assert split.p_value > 0.5
    often = np.zeros((40, 32))
    often[::3, 4:12] = 1
    split = two_groups(often, np.ones_like(often), np.random.default_rng(1), 300, counts=True)
    assert split.p_value < 0.01
    assert split.upper == tuple(range(4, 12))


def test_too_little_is_undecided_and_not_healthy() -> None:
    few = survey(sweep(np.random.default_rng(16), 64, 30))
    assert few.findings == ()
    assert few.undecided[0].startswith("30 packets a flow show a loss of ")
    assert not few.healthy
    enough = survey(sweep(np.random.default_rng(16), 64, 400))
    assert enough.healthy
    assert enough.smallest_loss is not None
    assert enough.smallest_loss < 0.03
    three = survey(sweep(np.random.default_rng(16), 3, 400))
    assert three.undecided == ("3 flows; at least 8 tell members apart",)
    tiny = survey(sweep(np.random.default_rng(16), 8, 5))
    assert tiny.undecided == ("5 packets a flow; at least 10 tell anything",)


def test_flows_asked_one_after_the_other_tell_times_apart() -> None:
    samples = [sample(seq, flow=40_000 + seq // 50) for seq in range(1_000)]
    found = survey_members(SERIES, samples)
    assert found.undecided == ("flows were asked one after the other, not in turn",)


def test_samples_are_sorted_into_a_sweep() -> None:
    local = Failure(FailureKind.LOCAL, Stage.SEND)
    samples = [
        sample(seq, None if seq % 40 == 3 else (5 + seq % 8) * MS, flow=40_000 + seq % 8)
        for seq in range(800)
    ]
    ours = [sample(900, None, failure=local, flow=40_000)]
    unnamed = [sample(901)]
    found = sweep_of([*reversed(samples), *ours, *unnamed])
    assert found.flows == tuple(range(40_000, 40_008))
    assert found.sent.sum() == 800
    assert found.lost.sum(axis=0).tolist() == [0, 0, 0, 20, 0, 0, 0, 0]
    assert found.per_flow == 100
    assert np.nanmedian(found.rtt_ns, axis=0).tolist() == [(5 + flow) * MS for flow in range(8)]
    assert found.last_unix_ns == START + 799 * INTERVAL
    finding = sick_members(SERIES, samples)[0]
    assert (finding.what, finding.flows, finding.value) == ("loss", (40_003,), 0.2)


def test_nothing_is_undecided() -> None:
    assert not survey_members(SERIES, []).healthy


def test_differences_in_words() -> None:
    assert micro(12_340) == "12.3 us"
    assert micro(12_340_000) == "12.34 ms"
