"""Half-open probes on the fake network, and answers that nobody should believe."""

import random

import pytest

from pathbudget.probes.channels import QueuedError, Segment, SegmentBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.errors import ConfigError, PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.fake_segments import build_answer
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.icmp_session import Counted, Event, Outcome
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Sample,
    Stage,
)
from pathbudget.probes.syn_session import SynSession
from pathbudget.probes.tcp import TCP
from pathbudget.probes.tcp_wire import ACK, RST, SYN, parse_quoted_syn

MS = 1_000_000
HERE, THERE, OTHER = "192.0.2.254", "192.0.2.1", "192.0.2.66"
PORT, FLOW = 443, 40_000


def at(milliseconds: float) -> Reading:
    ns = int(milliseconds * MS)
    return Reading(ns, 1_790_000_000 * 10**9 + ns, 100)


class Wire:
    """One probe under way, and what is answered to it."""

    def __init__(self) -> None:
        ports = (FLOW, FLOW + 1)
        self.session = SynSession(
            AddressFamily.IPV4, random.Random(3), ports, HalfOpen(per_target=2)
        )
        self.sequence = self.fire(0)

    def fire(self, seq: int, milliseconds: float = 0) -> int:
        shot = shot_at(THERE, seq=seq, port=PORT)
        flow = self.session.admit(shot, PORT, at(milliseconds), sweep=True)
        assert not isinstance(flow, Failure)
        sequence, segment = self.session.request(shot, PORT, flow, HERE, at(milliseconds))
        quoted = parse_quoted_syn(segment)
        assert quoted is not None
        assert quoted.sequence == sequence
        self.session.sent(sequence, seq)
        return sequence

    def answer(
        self,
        acknowledged: int,
        *,
        kind: int = SYN | ACK,
        sender: str = THERE,
        port: int = PORT,
        flow: int = FLOW,
        milliseconds: float = 20,
        damaged: bool = False,
    ) -> list[Event]:
        data = build_answer((sender, port), (HERE, flow), acknowledged % 2**32, kind)
        if damaged:
            data = data[:14] + b"\xff\xfe" + data[16:]
        now = at(milliseconds)
        segment = Segment(data, sender, HERE, 57, now.unix_ns)
        self.session.receive(SegmentBatch(arrivals=[segment]), now)
        return self.session.events()


def only_sample(events: list[Event]) -> Sample:
    (event,) = events
    assert isinstance(event, Outcome)
    return event.sample


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_the_right_acknowledgement_is_the_answer(wire: Wire) -> None:
    wire.session.receive(SegmentBatch(sent=[(0, at(1).unix_ns)]), at(1))
    sample = only_sample(wire.answer(wire.sequence + 1))
    assert (sample.value_ns, sample.clock_source) == (19 * MS, ClockSource.KERNEL)
    assert (sample.flow, sample.ttl, sample.flags) == (FLOW, 57, ())
    assert sample.stamps is not None
    assert sample.stamps.user_sent_ns == -1 * MS
    assert sample.stamps.kernel_sent_ns == 0
    assert sample.stamps.kernel_received_ns == sample.stamps.user_received_ns == 19 * MS


def test_a_reset_is_an_answer(wire: Wire) -> None:
    sample = only_sample(wire.answer(wire.sequence + 1, kind=RST | ACK))
    assert sample.value_ns == 20 * MS
    assert sample.flags == (Flag.REFUSED,)
    assert sample.clock_source is ClockSource.KERNEL_RECEIVE


@pytest.mark.parametrize(
    "forgery",
    [
        {"acknowledged": 0},
        {"acknowledged": 2},
        {"acknowledged": 2**31},
        {"sender": OTHER},
        {"port": PORT + 1},
        {"flow": FLOW + 1},
    ],
)
def test_forged_answers_are_counted_and_never_believed(
    wire: Wire, forgery: dict[str, int | str]
) -> None:
    told = {"acknowledged": 1, **forgery}
    guess = wire.sequence + int(told.pop("acknowledged"))
    assert wire.answer(guess, **told) == [Counted(-1, "foreign")]  # type: ignore[arg-type]
    assert wire.session.under_way == 1
    assert only_sample(wire.answer(wire.sequence + 1)).value_ns == 20 * MS


def test_a_reset_without_acknowledgement_is_no_answer(wire: Wire) -> None:
    assert wire.answer(wire.sequence + 1, kind=RST) == []
    assert wire.session.under_way == 1


def test_an_answer_to_a_port_that_is_not_ours_is_not_even_counted(wire: Wire) -> None:
    assert wire.answer(wire.sequence + 1, flow=1) == []


def test_a_damaged_answer_is_dropped_as_tcp_would(wire: Wire) -> None:
    assert wire.answer(wire.sequence + 1, damaged=True) == [Counted(0, "corrupt")]
    assert wire.session.under_way == 1


def test_a_repeated_answer_is_a_duplicate(wire: Wire) -> None:
    wire.answer(wire.sequence + 1)
    assert wire.answer(wire.sequence + 1, milliseconds=1_020) == [Counted(0, "duplicate")]


def test_an_answer_after_the_deadline_is_late(wire: Wire) -> None:
    wire.session.expire(at(1_000))
    sample = only_sample(wire.session.events())
    assert sample.failure == Failure(FailureKind.TIMEOUT, Stage.CONNECT, "no answer within 1000 ms")
    assert wire.answer(wire.sequence + 1, milliseconds=1_001) == [Counted(0, "late")]


def test_an_answer_read_before_the_alarm_but_too_late_is_late(wire: Wire) -> None:
    events = wire.answer(wire.sequence + 1, milliseconds=1_500)
    assert events[0] == Counted(0, "late")
    assert only_sample(events[1:]).failure is not None


def quoting(sequence: int, *, source_port: int = FLOW) -> bytes:
    return source_port.to_bytes(2, "big") + PORT.to_bytes(2, "big") + sequence.to_bytes(4, "big")


def tell(wire: Wire, quoted: bytes, icmp_type: int = 3) -> list[Event]:
    error = QueuedError(icmp_type, 13, "198.51.100.1", THERE, quoted, None)
    wire.session.receive(SegmentBatch(errors=[error]), at(5))
    return wire.session.events()


def test_a_routers_error_is_the_outcome(wire: Wire) -> None:
    sample = only_sample(tell(wire, quoting(wire.sequence)))
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.icmp_code) == (FailureKind.UNREACHABLE, 13)
    assert sample.responder == "198.51.100.1"


@pytest.mark.parametrize("bent", [1, 2**31])
def test_a_forged_error_is_counted(wire: Wire, bent: int) -> None:
    forged = quoting((wire.sequence + bent) % 2**32)
    assert tell(wire, forged) == [Counted(-1, "forged")]
    assert tell(wire, quoting(wire.sequence, source_port=9)) == [Counted(-1, "forged")]
    assert tell(wire, forged[:7]) == []
    assert tell(wire, quoting(wire.sequence), icmp_type=8) == []
    assert wire.session.under_way == 1


def test_two_syns_never_share_a_flow(wire: Wire) -> None:
    refusal = wire.session.admit(shot_at(THERE, seq=2, port=PORT), PORT, at(1), sweep=True)
    assert isinstance(refusal, Failure)
    assert refusal.kind is FailureKind.LOCAL
    assert "source port 40000" in refusal.detail
    other = wire.session.admit(shot_at(THERE, seq=1, port=PORT), PORT, at(1), sweep=True)
    assert other == FLOW + 1


def test_a_flow_without_answer_rests(wire: Wire) -> None:
    wire.session.expire(at(1_000))
    flows = [
        wire.session.admit(shot_at(THERE, seq=9, port=PORT), PORT, at(when), sweep=False)
        for when in (1_001, 1_002)
    ]
    assert flows == [FLOW + 1, FLOW + 1]


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
def test_the_probe_end_to_end(fake: FakeNetwork, fake_collector: Collector, address: str) -> None:
    fake.paths[address] = FakePath(lost=lambda number: number == 1)
    fake.paths[address + "9"] = FakePath(refused=True)
    probe = fake_collector.open(TCP, {"method": "syn"})
    for seq in range(3):
        probe.fire(shot_at(address, seq=seq, port=80))
        fake.clock.advance(2_000 * MS)
    probe.fire(shot_at(address + "9", seq=3, port=80))
    probe.fire(shot_at(address, seq=4))
    fake.clock.advance(2_000 * MS)
    probe.close()
    samples = sorted(fake_collector.of("connect"), key=lambda sample: sample.seq)
    assert [sample.value_ns for sample in samples] == [10 * MS, None, 10 * MS, 10 * MS, None]
    assert samples[3].flags == (Flag.REFUSED,)
    assert all(sample.clock_source is ClockSource.KERNEL for sample in samples if sample.value_ns)
    assert samples[4].failure == Failure(FailureKind.LOCAL, Stage.CONNECT, "the target has no port")


def test_the_bound_of_half_open_probes(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths[THERE] = FakePath()
    probe = fake_collector.open(TCP, {"method": "syn", "max_half_open": 3})
    for seq in range(5):
        probe.fire(shot_at(THERE, seq=seq, port=80))
        probe.fire(shot_at(OTHER, seq=seq, port=80))
    fake.clock.advance(2_000 * MS)
    probe.fire(shot_at(THERE, seq=5, port=80))
    fake.clock.advance(2_000 * MS)
    probe.close()
    assert fake_collector.counted("half_open_limit") == 4
    kinds = [s.failure.kind for s in fake_collector.of("connect") if s.failure is not None]
    assert kinds.count(FailureKind.LOCAL) == 4
    assert kinds.count(FailureKind.TIMEOUT) == 3
    assert sum(sample.value_ns is not None for sample in fake_collector.of("connect")) == 4


def test_without_the_right_there_is_a_remedy(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.privileged = False
    with pytest.raises(PrivilegeError, match="raw TCP socket"):
        fake_collector.open(TCP, {"method": "syn"})


def test_one_family_is_enough(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.families = frozenset({AddressFamily.IPV4})
    fake.paths[THERE] = FakePath()
    probe = fake_collector.open(TCP, {"method": "syn"})
    probe.fire(shot_at(THERE, port=80))
    probe.fire(shot_at("2001:db8::1", port=80))
    fake.clock.advance(100 * MS)
    probe.close()
    values = {sample.value_ns for sample in fake_collector.of("connect")}
    assert values == {None, 10 * MS}


@pytest.mark.parametrize("method", ["connect", "syn"])
def test_an_interface_that_is_not_there_is_told_at_once(
    fake_collector: Collector, method: str
) -> None:
    with pytest.raises(ConfigError, match="no interface wlan7"):
        fake_collector.open(TCP, {"method": method, "interface": "wlan7"})


def test_what_does_not_go_together_is_told_at_once(fake_collector: Collector) -> None:
    with pytest.raises(ConfigError) as caught:
        fake_collector.open(TCP, {"method": "syn", "echo_bytes": 10, "source": "example.org"})
    assert [fault.where for fault in caught.value.faults] == ["echo_bytes", "source"]
