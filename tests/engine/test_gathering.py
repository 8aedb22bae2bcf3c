"""Packets gathered for some milliseconds: when it begins and ends; no number has it in."""

import asyncio
import random
import time

import pytest

from pathbudget.probes.channels import Arrival, IcmpBatch
from pathbudget.probes.clock import Reading, SystemClock
from pathbudget.probes.contract import BatchProbe
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.gathering import (
    ENTER_PER_SECOND,
    HOLD_NS,
    LONGEST_NS,
    LOOK_NS,
    WAKES,
    Gathering,
)
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.icmp_session import IcmpSession, Outcome
from pathbudget.probes.icmp_wire import checksum
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    AddressFamily,
    ClockSource,
    FailureKind,
    Flag,
    Sample,
)

MS = 1_000_000
HOUR_NS = 3_600_000 * MS
BUFFER = 8 << 20
FAST_NS = 1_000 * MS // ENTER_PER_SECOND // 2


def wake(gathering: Gathering, times: int, gap_ns: int, start_ns: int = HOUR_NS) -> int:
    """So many wake-ups with a packet each; the time of the last."""
    now_ns = start_ns
    for _ in range(times):
        now_ns += gap_ns
        gathering.woke(now_ns, 1, all_stamped=True)
    return now_ns


def gathering_now() -> tuple[Gathering, int]:
    gathering = Gathering(BUFFER)
    now_ns = wake(gathering, 2 * WAKES, FAST_NS)
    assert gathering.on
    return gathering, now_ns


def test_few_wake_ups_are_not_worth_it() -> None:
    gathering = Gathering(BUFFER)
    wake(gathering, 10 * WAKES, 3 * 1_000 * MS // ENTER_PER_SECOND)
    assert not gathering.on


def test_without_packets_the_stamps_are_not_known_to_come() -> None:
    gathering = Gathering(BUFFER)
    for number in range(3 * WAKES):
        gathering.woke(HOUR_NS + number * FAST_NS, 0, all_stamped=True)
    assert not gathering.on


def test_a_missing_stamp_puts_it_off() -> None:
    gathering = Gathering(BUFFER)
    now_ns = HOUR_NS
    for number in range(10 * WAKES):
        now_ns += FAST_NS
        gathering.woke(now_ns, 1, all_stamped=number % (WAKES - 1) > 0)
    assert not gathering.on


def test_a_missing_stamp_ends_it() -> None:
    gathering, now_ns = gathering_now()
    gathering.read(now_ns + HOLD_NS, 2_048, all_stamped=False)
    assert not gathering.on


def test_who_sends_reads_after_a_while_and_the_alarm_a_little_later() -> None:
    gathering, now_ns = gathering_now()
    assert not gathering.time_to_read(now_ns + HOLD_NS - 1)
    assert gathering.time_to_read(now_ns + HOLD_NS)
    assert gathering.latest_ns() == now_ns + LONGEST_NS


def test_it_ends_when_few_are_sent() -> None:
    gathering, now_ns = gathering_now()
    for _ in range(LOOK_NS // LONGEST_NS + 1):
        gathering.sent(1, 64)
        now_ns += LONGEST_NS
        gathering.read(now_ns, 2_048, all_stamped=True)
    assert not gathering.on


def test_it_goes_on_while_many_are_sent() -> None:
    gathering, now_ns = gathering_now()
    for _ in range(100):
        for _ in range(5):
            gathering.sent(1, 64)
        now_ns += HOLD_NS
        gathering.read(now_ns, 2_048, all_stamped=True)
    assert gathering.on


@pytest.mark.parametrize(("buffer", "packet_bytes"), [(BUFFER, 64), (BUFFER, 8_980), (425_984, 64)])
def test_no_buffer_is_meant_to_fill_by_half(buffer: int, packet_bytes: int) -> None:
    gathering = Gathering(buffer)
    now_ns = wake(gathering, 2 * WAKES, FAST_NS)
    sends = 0
    while not gathering.time_to_read(now_ns):
        gathering.sent(1, packet_bytes)
        sends += 1
    # What answers and stamps take: a page and a half more than the packet is, at most.
    assert sends * 2 * (packet_bytes + 1_024) < buffer // 2


def test_a_queue_that_was_too_full_ends_it() -> None:
    gathering, now_ns = gathering_now()
    gathering.read(now_ns + HOLD_NS, BUFFER // 2, all_stamped=True)
    assert not gathering.on


def test_only_our_own_waiting_counts_as_such() -> None:
    gathering, now_ns = gathering_now()
    assert gathering.read(now_ns + HOLD_NS, 0, all_stamped=True) == HOLD_NS
    late_ns = now_ns + HOLD_NS + 10 * LONGEST_NS
    assert gathering.read(late_ns, 0, all_stamped=True) == LONGEST_NS


def hear(
    *, stamp_ns: int | None, read_ns: int, step_ns: int = 0, waited_ns: int = LONGEST_NS
) -> Sample:
    """A request at 0, stamped 1 us later; its answer was stamped and read then; the wall clock was
    stepped after the answer came.
    """
    session = IcmpSession(AddressFamily.IPV4, random.Random(1))
    number, message = session.request(shot_at("192.0.2.1"), Reading(0, HOUR_NS, 0))
    session.sent(number, 1, 0)
    body = b"\0\0\0\0" + message[4:]
    reply = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    stamp = None if stamp_ns is None else HOUR_NS + stamp_ns
    arrival = Arrival(reply, "192.0.2.1", 64, stamp)
    batch = IcmpBatch([(0, HOUR_NS + 1_000)], [arrival], waited_ns=waited_ns)
    session.receive(1, batch, Reading(read_ns, HOUR_NS + read_ns + step_ns, 0))
    (event,) = session.events()
    assert isinstance(event, Outcome)
    return event.sample


def test_our_own_waiting_does_not_make_a_busy_host() -> None:
    read_ns = 3 * MS + HOST_BUSY_NS + LONGEST_NS - 1
    assert hear(stamp_ns=3 * MS, read_ns=read_ns).flags == ()
    assert hear(stamp_ns=3 * MS, read_ns=read_ns, waited_ns=0).flags == (Flag.HOST_BUSY,)
    assert hear(stamp_ns=3 * MS, read_ns=read_ns + 2_000).flags == (Flag.HOST_BUSY,)


def test_the_time_of_reading_is_the_true_one() -> None:
    stamps = hear(stamp_ns=3 * MS, read_ns=7 * MS).stamps
    assert stamps is not None
    assert (stamps.kernel_received_ns, stamps.user_received_ns) == (2_999_000, 6_999_000)


def test_an_answer_without_a_stamp_has_no_number_with_our_waiting_in_it() -> None:
    sample = hear(stamp_ns=None, read_ns=7 * MS)
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.LOCAL
    assert hear(stamp_ns=None, read_ns=7 * MS, waited_ns=0).value_ns == 7 * MS


@pytest.mark.parametrize("step_ns", [3_600_000 * MS, -1_000 * MS, 50 * MS, -50 * MS])
def test_a_step_while_packets_waited_is_marked_and_leaves_the_value_alone(step_ns: int) -> None:
    sample = hear(stamp_ns=3 * MS, read_ns=7 * MS, step_ns=step_ns)
    assert sample.flags == (Flag.CLOCK_STEP,)
    assert (sample.value_ns, sample.clock_source) == (3 * MS - 1_000, ClockSource.KERNEL)


@pytest.mark.parametrize("step_ns", [3_600_000 * MS, -1_000 * MS, 50 * MS])
def test_a_step_between_request_and_answer_is_taken_out(step_ns: int) -> None:
    sample = hear(stamp_ns=3 * MS + step_ns, read_ns=7 * MS, step_ns=step_ns)
    assert sample.flags == (Flag.CLOCK_STEP,)
    assert sample.value_ns == 3 * MS - 1_000


def test_a_small_step_adds_no_more_than_itself() -> None:
    before = hear(stamp_ns=3 * MS, read_ns=7 * MS, step_ns=-MS)
    after = hear(stamp_ns=2 * MS, read_ns=7 * MS, step_ns=-MS)
    assert before.flags == after.flags == (Flag.CLOCK_STEP,)
    assert before.value_ns == 4 * MS - 1_000
    assert after.value_ns == 3 * MS - 1_000


async def test_a_real_socket_gathers_and_is_done_soon_after_the_last(
    network: SystemNetwork,
) -> None:
    collector = Collector(network, SystemClock())
    probe = collector.open(ICMP)
    assert isinstance(probe, BatchProbe)
    for number in range(600):
        probe.fire_all([shot_at("127.0.0.1", seq=number)])
        await asyncio.sleep(0.000_3)
    began = time.monotonic()
    await probe.drain()
    assert time.monotonic() - began < 1
    probe.close()
    samples = [sample for _, sample in collector.emitted]
    assert sorted(sample.seq for sample in samples) == list(range(600))
    assert [sample.failure for sample in samples] == [None] * 600
    assert {sample.clock_source for sample in samples[100:]} == {ClockSource.KERNEL}
