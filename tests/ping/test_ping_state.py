"""What is remembered of one host: figures, failures, directions, outages, load."""

import math
import random

from pathbudget.agents.ping.directions import ENOUGH, Directions, slope_below
from pathbudget.agents.ping.figures import figures, load_figures
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.phases import SETTLES_NS, Phase, Phases
from pathbudget.analysis.outage_rule import FEWEST, OutageWatch
from pathbudget.probes.record import (
    Direction,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
)

MS = 1_000_000
SECOND = 1_000 * MS


def state(*, flows: bool = False) -> HostState:
    return HostState(
        host="site",
        probe="icmp",
        address="192.0.2.1",
        start_unix_ns=0,
        column_ns=10 * SECOND,
        timeout_ns=SECOND,
        flows=flows,
    )


def answer(seq: int, value_ns: int, flow: int | None = None) -> Sample:
    return Sample(seq, "rtt", seq * SECOND, value_ns=value_ns, flow=flow)


def knows_directions(host: HostState) -> bool:
    return host.directions.figures() is not None


def loss(seq: int, kind: FailureKind = FailureKind.TIMEOUT) -> Sample:
    stage = Stage.SEND if kind is FailureKind.LOCAL else Stage.WAIT
    return Sample(seq, "rtt", seq * SECOND, failure=Failure(kind, stage))


def fed(samples: list[Sample], *, flows: bool = False) -> HostState:
    host = state(flows=flows)
    for sample in samples:
        host.take(sample, "rtt")
    return host


def test_percentiles_wait_for_packets_enough() -> None:
    few = figures(fed([answer(n, n * MS) for n in range(1, 20)]))
    assert few.minimum_ns == MS
    assert (few.p50_ns, few.p95_ns, few.pdv_p99_ns, few.ipdv_p95_ns) == (None,) * 4
    more = figures(fed([answer(n, n * MS) for n in range(1, 21)]))
    assert (more.p50_ns, more.p95_ns, more.pdv_p99_ns) == (10 * MS, 19 * MS, None)
    most = figures(fed([answer(n, n * MS) for n in range(1, 101)]))
    assert most.pdv_p99_ns == 98 * MS  # p99 above the least (RFC 5481)


def test_losses_push_percentiles_to_infinity() -> None:
    host = fed([answer(n, MS) for n in range(18)] + [loss(n) for n in range(18, 20)])
    assert figures(host).p50_ns == MS
    assert figures(host).p95_ns == math.inf
    assert host.loss_ratio == 0.1


def test_what_this_host_could_not_send_is_no_loss() -> None:
    host = fed([answer(0, MS), loss(1, FailureKind.LOCAL), loss(2, FailureKind.NO_ROUTE)])
    assert (host.sent, host.lost, host.not_sent) == (1, 0, 2)


def test_ipdv_is_of_successive_packets_and_a_loss_breaks_the_pair() -> None:
    """Not of disjoint pairs, not across a loss, and not in the order of arrival."""
    host = state()
    values: dict[int, int | None] = {0: 10, 1: 13, 2: None, 3: 20, 4: 21, 5: 20}
    for seq in (1, 0, 3, 5, 4, 2):  # the loss is known last
        value = values[seq]
        host.take(loss(seq) if value is None else answer(seq, value * MS), "rtt")
    assert host.ipdv.n == 3
    assert host.ipdv.maximum == 3 * MS
    assert host.ipdv.minimum == 1 * MS


def test_ipdv_compares_packets_of_one_flow_and_the_spread_is_a_term_of_its_own() -> None:
    samples = [answer(n, (10 + 5 * (n % 2)) * MS, flow=n % 2) for n in range(60)]
    host = fed(samples, flows=True)
    assert host.ipdv.maximum == 0
    assert figures(host).ecmp_spread_ns == 5 * MS
    unasked = fed(samples)  # a new source port for each packet is no flow
    assert unasked.ipdv.minimum == 5 * MS
    assert unasked.flows == {}


def test_a_retransmitted_syn_is_a_loss_and_no_round_trip() -> None:
    sample = Sample(0, "connect", 0, value_ns=SECOND, flags=(str(Flag.SYN_RETRANSMITTED),))
    host = state()
    host.take(sample, "connect")
    assert (host.sent, host.lost, host.answers.n) == (1, 1, 0)


def test_an_outage_is_told_when_it_begins_and_ends_with_its_windows() -> None:
    watch = OutageWatch()
    sent = iter(range(0, 10**6, 10))
    for _ in range(1_000):
        assert watch.feed(next(sent), lost=False) is None
    assert watch.needed() == FEWEST
    begun = [watch.feed(next(sent), lost=True) for _ in range(5)]
    assert [one is not None for one in begun] == [False, False, True, False, False]
    assert watch.ongoing is not None
    over = watch.feed(next(sent), lost=False)
    assert over is not None
    assert over.over
    assert (over.last_good_unix_ns, over.first_lost_unix_ns) == (9_990, 10_000)
    assert (over.last_lost_unix_ns, over.first_good_unix_ns, over.lost) == (10_040, 10_050, 5)
    assert watch.count == 1


def test_a_late_series_tells_its_outages_and_ipdv_from_the_start() -> None:
    """A name that did not resolve for the first 10 s: the state of its address begins at 10."""
    host = state()
    news = [
        host.take(loss(seq) if 500 <= seq < 600 else answer(seq, 20 * MS + seq % 7 * 1_000), "rtt")
        for seq in range(10, 2_010)
    ]
    assert [one.over for one in news if one] == [False, True]
    assert host.watch.count == 1
    assert host.ipdv.n == 489 + 1_409


def test_a_short_late_series_is_complete_at_its_end() -> None:
    host = state()
    for seq in range(10, 40):
        sample = Sample(seq, "rtt", seq * MS, value_ns=(20 + seq % 2) * MS)
        assert host.take(sample, "rtt") is None
    host.finish()
    assert host.ipdv.n == 29


def test_losses_beside_our_own_load_are_no_outage_of_the_path() -> None:
    host = state()
    for seq in range(300):
        under = Phase.RAMPING if 100 <= seq < 150 else Phase.IDLE
        host.take(loss(seq) if 120 <= seq < 150 else answer(seq, MS), "rtt", under)
    assert (host.watch.count, host.lost) == (0, 30)
    assert host.phases[Phase.RAMPING].loss_ratio == 0.6
    for seq in range(300, 350):  # it goes on without a load: that is one
        host.take(loss(seq), "rtt", Phase.IDLE)
    assert host.watch.count == 1


def test_unplaced_losses_are_a_bound_and_the_way_back_counts_what_arrived() -> None:
    """200 answered and 200 lost, of which the reflector has told nothing yet."""
    host = HostState(
        host="site",
        probe="stamp",
        address="192.0.2.1",
        start_unix_ns=0,
        column_ns=SECOND,
        timeout_ns=SECOND,
    )
    for seq in range(400):
        host.take(loss(seq) if seq >= 200 else answer(seq, MS), "rtt")
    placed = host.lost_by_direction
    assert placed is not None
    assert placed.bounds(Direction.FORWARD) == (0.0, 0.5)
    assert placed.bounds(Direction.REVERSE) == (0.0, 0.5)
    for _ in range(100):
        host.count("lost_forward")
        host.count("lost_reverse")
    placed = host.lost_by_direction
    assert placed is not None
    assert placed.bounds(Direction.FORWARD) == (0.25, 0.25)
    assert placed.bounds(Direction.REVERSE) == (1 / 3, 1 / 3)


def test_random_loss_is_no_outage() -> None:
    """20 % of random loss over 50,000 packets; the analysis uses the same rule."""
    rng = random.Random(5)
    watch = OutageWatch()
    for number in range(50_000):
        watch.feed(number, lost=number > 100 and rng.random() < 0.2)
    assert watch.count == 0


def test_an_outage_does_not_excuse_the_next_one() -> None:
    watch = OutageWatch()
    for number in range(1_000):
        watch.feed(number, lost=False)
    for number in range(1_000, 1_500):
        watch.feed(number, lost=True)
    watch.feed(1_500, lost=False)
    assert watch.needed() == FEWEST


def test_each_direction_by_itself_although_the_clocks_drift_apart() -> None:
    """80 ppm of drift, hours of offset, and a millisecond of variation on the way there alone."""
    rng = random.Random(2)
    both = Directions()
    for seq in range(400):
        sent = seq * SECOND
        offset = 10**13 + seq * 80_000
        forward = 30 * MS + int(rng.expovariate(1 / (MS / 4)))
        reverse = 20 * MS + rng.randrange(2_000)
        both.add(seq, Metric.TRANSIT_FORWARD, sent, forward + offset)
        both.add(seq, Metric.TRANSIT_REVERSE, sent, reverse - offset)
    found = both.figures()
    assert found is not None
    there, back = found
    assert 70 < there.drift_ppm < 90
    assert 0.7 * MS < there.pdv_p99_ns < 1.8 * MS  # 1.15 ms in theory
    assert back.pdv_p99_ns < 40_000
    assert back.ipdv_p95_ns is not None
    assert back.ipdv_p95_ns < 4_000


def test_directions_wait_for_packets_enough_and_for_both_halves() -> None:
    both = Directions()
    for seq in range(ENOUGH * 2):
        both.add(seq, Metric.TRANSIT_FORWARD, seq, 5)
    assert both.figures() is None
    for seq in range(ENOUGH):
        both.add(seq, Metric.TRANSIT_REVERSE, seq, 5)
    assert both.figures() is not None
    both.clear()
    both.add(0, Metric.TRANSIT_FORWARD, 0, 5)
    again = both.figures()
    assert again is None


def test_the_line_below_all_points_follows_the_least() -> None:
    points = [(when, 3 * when + (7 if when % 4 else 0)) for when in range(100)]
    assert slope_below(points) == 3.0
    assert slope_below([(0, 5)]) == 0.0
    assert slope_below([(0, 5), (0, 4)]) == 0.0


def test_a_clock_step_makes_the_directions_start_anew() -> None:
    host = state()
    for seq in range(ENOUGH):
        for metric in (Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE):
            host.take(Sample(seq, metric, seq, value_ns=5), "rtt")
    assert knows_directions(host)
    stepped = Sample(1_000, Metric.TRANSIT_FORWARD, 1, value_ns=5, flags=(str(Flag.CLOCK_STEP),))
    host.take(stepped, "rtt")
    assert not knows_directions(host)


def test_a_clock_step_at_the_far_end_is_noticed_when_it_exceeds_the_round_trip() -> None:
    both = Directions()
    for seq in range(ENOUGH * 2):
        step = 60 * MS if seq >= ENOUGH + 50 else 0
        both.add(seq, Metric.TRANSIT_FORWARD, seq * SECOND, 30 * MS + step)
        both.add(seq, Metric.TRANSIT_REVERSE, seq * SECOND, 20 * MS - step)
    assert both.figures() is None  # 50 packets since the step
    quiet = Directions()
    for seq in range(ENOUGH * 2):  # a path that changed, as far as anybody can tell
        shift = 20 * MS if seq >= ENOUGH + 50 else 0
        quiet.add(seq, Metric.TRANSIT_FORWARD, seq * SECOND, 30 * MS + shift)
        quiet.add(seq, Metric.TRANSIT_REVERSE, seq * SECOND, 20 * MS - shift)
    assert quiet.figures() is not None


def test_loaded_and_idle_are_kept_apart_and_what_drains_is_neither() -> None:
    phases = Phases()
    phases.begin(100 * SECOND)
    phases.end(200 * SECOND)
    times = (99 * SECOND, 100 * SECOND, 200 * SECOND, 200 * SECOND + SETTLES_NS)
    found_phases = [phases.phase_at(one) for one in times]
    assert found_phases == [Phase.IDLE, Phase.LOADED, Phase.SETTLING, Phase.IDLE]
    host = state()
    for seq in range(300):
        value = 50 * MS if 100 <= seq <= 200 else 10 * MS
        host.take(answer(seq, value), "rtt", phases.phase_at(seq * SECOND))
    assert load_figures(host) == ((10 * MS,) * 2, (50 * MS,) * 2, (40 * MS,) * 2)
    assert host.phases[Phase.IDLE].answers.n + host.phases[Phase.LOADED].answers.n == 299
    assert load_figures(fed([answer(0, MS)])) is None
