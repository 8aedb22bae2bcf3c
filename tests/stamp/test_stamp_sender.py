"""The sender against the reflector, without a network: numbers, losses, clocks."""

from collections.abc import Callable

import pytest

from pathbudget.probes.channels import Datagram, DatagramBatch
from pathbudget.probes.record import ClockSource, Direction, FailureKind, Flag, Metric
from pathbudget.probes.stamp import wire
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.fake_pair import (
    FAR,
    FORWARD_NS,
    MS,
    NEAR,
    PORT,
    RESIDENCE_NS,
    REVERSE_NS,
    SEND_CALL_NS,
    FakePair,
)
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.timestamps import encode_error

MakePair = Callable[..., FakePair]


def test_four_numbers_of_one_packet_by_kernel_stamps_alone(pair: FakePair) -> None:
    for _ in range(3):
        pair.step()
    pair.end()
    rtt, forward, reverse, residence = (
        pair.of(metric)[0]
        for metric in (
            Metric.RTT,
            Metric.TRANSIT_FORWARD,
            Metric.TRANSIT_REVERSE,
            Metric.RESIDENCE,
        )
    )
    assert rtt.value_ns == FORWARD_NS + REVERSE_NS
    assert forward.value_ns == FORWARD_NS
    assert reverse.value_ns == REVERSE_NS
    assert residence.value_ns == RESIDENCE_NS + SEND_CALL_NS
    for sample in (rtt, forward, reverse, residence):
        assert sample.clock_source is ClockSource.KERNEL
        assert (sample.flow, sample.ttl, sample.responder) == (40_000, 55, None)
        assert sample.error_ns is None
        assert sample.lateness_ns == SEND_CALL_NS
        stamps = sample.stamps
        assert stamps is not None
        assert stamps.due_ns == stamps.user_sent_ns == -SEND_CALL_NS
        assert stamps.kernel_sent_ns == 0
        assert stamps.kernel_received_ns is not None
        assert stamps.user_received_ns == stamps.kernel_received_ns + 50_000


def test_the_last_packet_waits_until_its_deadline_and_says_which_t3_it_has(pair: FakePair) -> None:
    pair.step()
    assert not pair.samples
    pair.end()
    (rtt,), (reverse,), (residence,) = (
        pair.of(metric) for metric in (Metric.RTT, Metric.TRANSIT_REVERSE, Metric.RESIDENCE)
    )
    # T3 was read before the send call: the reflector seems faster and the way longer by the call.
    assert residence.value_ns == RESIDENCE_NS
    assert reverse.value_ns == REVERSE_NS + SEND_CALL_NS
    assert rtt.value_ns == FORWARD_NS + REVERSE_NS + SEND_CALL_NS
    assert rtt.clock_source is ClockSource.KERNEL_RECEIVE
    assert residence.clock_source is ClockSource.KERNEL_RECEIVE


def test_without_follow_up_nothing_waits(make_pair: MakePair) -> None:
    pair = make_pair(follow_up=False)
    pair.step()
    assert len(pair.samples) == 4
    assert pair.of(Metric.RTT)[0].clock_source is ClockSource.KERNEL_RECEIVE


def test_a_reflector_that_knows_no_follow_up_is_not_waited_for(pair: FakePair) -> None:
    pair.reflector = ReflectorSession(ReflectorPolicy(PORT, stateful=False))
    pair.step()
    assert len(pair.samples) == 4
    assert pair.counts["stateless_reflector"] == 1
    pair.step()
    assert pair.counts["stateless_reflector"] == 1


def test_every_shot_has_exactly_one_rtt_sample_or_failure(pair: FakePair) -> None:
    for number in range(40):
        pair.step(forward=number % 5 != 3, reverse=number % 7 != 4)
    pair.end()
    assert [sample.seq for sample in pair.of(Metric.RTT)] == list(range(40))
    assert pair.sender.under_way == 0
    assert pair.sender.next_deadline_ns() is None


def test_losses_are_told_apart(pair: FakePair) -> None:
    there, back = {5, 6, 20}, {10, 11, 25}
    for number in range(40):
        pair.step(forward=number not in there, reverse=number not in back)
    pair.end()
    directions = {
        sample.seq: sample.failure.direction for sample in pair.failures() if sample.failure
    }
    assert directions == {
        **dict.fromkeys(there, Direction.FORWARD),
        **dict.fromkeys(back, Direction.REVERSE),
    }
    assert (pair.counts["lost_forward"], pair.counts["lost_reverse"]) == (3, 3)
    assert pair.counts["lost_direction_unknown"] == 0


def test_of_a_mixed_gap_the_counts_are_certain_and_the_packets_are_not(pair: FakePair) -> None:
    for number in range(12):
        pair.step(forward=number not in (4, 6), reverse=number != 5)
    pair.end()
    assert [sample.failure.direction for sample in pair.failures() if sample.failure] == [None] * 3
    assert (pair.counts["lost_forward"], pair.counts["lost_reverse"]) == (2, 1)


def test_losses_without_an_answer_after_them_have_no_direction(pair: FakePair) -> None:
    for number in range(10):
        pair.step(forward=number < 7)
    pair.end()
    assert len(pair.failures()) == 3
    assert all(one.failure and one.failure.direction is None for one in pair.failures())
    assert pair.counts["lost_direction_unknown"] == 3


def test_when_the_answer_after_a_loss_is_late_the_counts_still_come(pair: FakePair) -> None:
    pair.step()
    pair.step(reverse=False)
    pair.pass_time(1_000 * MS)
    (lost,) = pair.failures()
    assert lost.failure is not None
    assert lost.failure.direction is None
    pair.step()
    assert pair.counts["lost_reverse"] == 1


def test_of_a_stateless_reflector_no_direction_is_believed(make_pair: MakePair) -> None:
    pair = make_pair(policy=ReflectorPolicy(PORT, stateful=False))
    for number in range(10):
        pair.step(reverse=number != 4)
    pair.end()
    assert pair.counts["lost_direction_unknown"] == 1
    assert pair.counts["lost_reverse"] == pair.counts["lost_forward"] == 0


def test_a_reflector_that_begins_again_accuses_nobody(pair: FakePair) -> None:
    for number in range(20):
        if number == 10:
            pair.reflector = ReflectorSession(ReflectorPolicy(PORT))
        pair.step(forward=number != 9, reverse=number != 15)
    pair.end()
    assert pair.counts["lost_forward"] + pair.counts["lost_direction_unknown"] == 1
    assert pair.counts["lost_reverse"] == 1


def test_numbers_beyond_32_bits(pair: FakePair) -> None:
    pair.step()
    (state,) = pair.sender._states._states.values()
    (session,) = pair.reflector._sessions.values()
    state.next_number += 2**32 - 5
    state.losses.answered(
        state.next_number - 1, 2**32 - 6, 0, 10**12
    )  # as if all had been answered
    session.transmitted = 2**32 - 5
    for number in range(12):
        pair.step(forward=number != 4, reverse=number != 8)
    pair.end()
    assert len(pair.failures()) == 2
    assert (pair.counts["lost_forward"], pair.counts["lost_reverse"]) == (1, 1)


def test_replies_that_overtake_each_other_are_no_losses(pair: FakePair) -> None:
    first = pair.must_reflect(pair.send())
    pair.pass_time(MS)
    second = pair.must_reflect(pair.send())
    pair.arrive(second.payload)
    pair.arrive(first.payload, late_ns=MS)
    pair.pass_time()
    pair.step()
    pair.end()
    assert not pair.failures()
    assert set(pair.counts) == set()


def test_a_reply_that_comes_twice_counts_once(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    pair.arrive(answer.payload)
    pair.arrive(answer.payload, late_ns=MS)
    pair.pass_time()
    pair.step()
    pair.arrive(answer.payload)
    pair.end()
    assert len(pair.of(Metric.RTT)) == 2
    assert pair.counts["duplicate"] == 2
    assert Flag.DUPLICATED in pair.of(Metric.RTT)[0].flags


def test_a_request_that_comes_twice_does_not_blur_the_losses(pair: FakePair) -> None:
    pair.step()
    request = pair.send()
    for _ in range(2):
        pair.arrive(pair.must_reflect(request).payload)
    pair.pass_time()
    for number in range(30):
        pair.step(forward=number != 25)
    pair.end()
    assert pair.counts["duplicate"] == 1
    assert pair.counts["lost_forward"] == 1
    assert pair.counts["lost_reverse"] == 0


def test_a_late_reply_leaves_a_timeout(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    pair.pass_time(300 * MS)
    pair.arrive(answer.payload)
    (sample,) = pair.failures()
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.TIMEOUT
    assert pair.counts["late"] == 1


def test_what_is_late_by_its_stamps_is_late_and_not_lost(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    pair.arrive(answer.payload, late_ns=250 * MS)
    pair.end()
    (sample,) = pair.failures()
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.TIMEOUT
    assert pair.counts == {"late": 1}


def test_a_clock_step_while_under_way_is_marked_and_does_not_change_the_rtt(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    took = SEND_CALL_NS + FORWARD_NS + RESIDENCE_NS + SEND_CALL_NS + REVERSE_NS
    now = pair.reading(took + 50_000)
    stepped = now._replace(unix_ns=now.unix_ns + 3_600_000 * MS)
    stamp = stepped.unix_ns - 50_000
    datagram = Datagram(answer.payload, FAR, PORT, NEAR, 55, 0, stamp)
    pair.sender.receive(0, DatagramBatch(arrivals=[datagram]), stepped)
    pair.end()
    (rtt,) = pair.of(Metric.RTT)
    assert rtt.value_ns is not None
    assert abs(rtt.value_ns - FORWARD_NS - REVERSE_NS) < 100_000
    for metric in (Metric.RTT, Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE):
        assert Flag.CLOCK_STEP in pair.of(metric)[0].flags


def test_a_reflector_whose_clock_steps_between_t2_and_t3_is_marked(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    reply = wire.decode_reply(answer.payload)
    stepped = reply._replace(timestamp=reply.received - (1 << 32))
    pair.arrive(wire.encode_reply(stepped))
    pair.end()
    (rtt,), (residence,) = pair.of(Metric.RTT), pair.of(Metric.RESIDENCE)
    assert Flag.CLOCK_STEP in rtt.flags
    assert rtt.value_ns == FORWARD_NS + REVERSE_NS + RESIDENCE_NS + SEND_CALL_NS
    assert residence.value_ns == -1_000_000_000


def test_pitfall_11_a_negative_one_way_delay_is_kept_with_the_error_of_the_clocks(
    pair: FakePair,
) -> None:
    pair.offset_ns = -200 * MS
    pair.sender.claim_clock(3 * MS)
    pair.reflector.claim_clock(2 * MS)
    for _ in range(3):
        pair.step()
    pair.end()
    forward, reverse = pair.of(Metric.TRANSIT_FORWARD)[0], pair.of(Metric.TRANSIT_REVERSE)[0]
    assert forward.value_ns == FORWARD_NS - 200 * MS
    assert reverse.value_ns == REVERSE_NS + 200 * MS
    assert forward.error_ns is not None
    assert 5 * MS <= forward.error_ns <= 5 * MS + 20_000
    assert pair.of(Metric.RTT)[0].value_ns == FORWARD_NS + REVERSE_NS


@pytest.mark.parametrize(("own", "theirs"), [(None, 1), (1, None), (None, None)])
def test_unless_both_clocks_are_vouched_for_no_error_is_claimed(
    pair: FakePair, own: int | None, theirs: int | None
) -> None:
    pair.sender.claim_clock(own)
    pair.reflector.claim_clock(theirs)
    pair.step()
    pair.end()
    assert pair.of(Metric.TRANSIT_FORWARD)[0].error_ns is None


def test_pitfall_14_every_field_is_filled_and_t2_is_not_t3(pair: FakePair) -> None:
    pair.reflector.claim_clock(1_000)
    request = wire.decode_request(pair.send())
    pair.sender.claim_clock(1_000)
    answer = pair.must_reflect(pair.send())
    reply = wire.decode_reply(answer.payload)
    asked = wire.decode_request(answer.payload)
    assert reply.received != reply.timestamp
    assert reply.error == encode_error(1_000)
    assert reply.sender_ttl == 60
    assert reply.ssid == request.ssid != 0
    assert asked.error != 0
    assert len(answer.payload) >= wire.BASE_OCTETS


def test_pitfall_14_a_reflector_with_t2_equal_to_t3_and_no_error_estimate_is_understood(
    make_pair: MakePair,
) -> None:
    pair = make_pair(follow_up=False)
    pair.sender.claim_clock(1_000)
    answer = pair.must_reflect(pair.send())
    reply = wire.decode_reply(answer.payload)
    reply = reply._replace(timestamp=reply.received, error=0x8000)
    pair.arrive(wire.encode_reply(reply))
    assert pair.of(Metric.RESIDENCE)[0].value_ns == 0
    assert pair.of(Metric.TRANSIT_FORWARD)[0].error_ns is None
    rtt = pair.of(Metric.RTT)[0].value_ns
    assert rtt == FORWARD_NS + REVERSE_NS + RESIDENCE_NS + SEND_CALL_NS


def test_pitfall_65_sender_and_reflector_of_rfc_8762_authenticated(
    make_pair: MakePair, key: Key
) -> None:
    pair = make_pair(key=key, size=400)
    for number in range(10):
        pair.step(reverse=number != 5)
    pair.end()
    assert len(pair.failures()) == 1
    assert pair.counts == {"lost_reverse": 1}
    assert pair.of(Metric.RTT)[0].value_ns == FORWARD_NS + REVERSE_NS
    assert pair.of(Metric.RTT)[0].clock_source is ClockSource.KERNEL


def test_a_dscp_that_the_way_changed_is_counted(make_pair: MakePair) -> None:
    pair = make_pair(dscp=46)
    pair.step()  # this reflector sees traffic class 0, and its replies come with 0
    pair.end()
    assert pair.counts["dscp_changed_forward"] == 1
    assert pair.counts["dscp_changed_reverse"] == 1
    assert pair.answers[0].dscp == 46


def test_memory_of_what_is_done_is_bounded(pair: FakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathbudget.probes.stamp.flight_table.REMEMBERED", 50)
    for _ in range(200):
        pair.step()
    pair.end()
    assert len(pair.sender._flights) <= 51
    assert not pair.sender._table._by_key
    (state,) = pair.sender._states._states.values()
    assert len(state.losses._answers) < 200
    assert state.follow_ups.held is None
