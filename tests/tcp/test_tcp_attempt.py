"""What one shot of the connect probe says, on the fake network."""

import socket

import pytest

from pathbudget.probes.channels import PLAIN, RoundTrip
from pathbudget.probes.contract import Shot
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.fake_tcp import FakeTcpChannel
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    FailureKind,
    Flag,
    Sample,
    Stage,
    Target,
)
from pathbudget.probes.tcp import TCP
from pathbudget.probes.tcp_opening import prepare_connection
from pathbudget.probes.tcp_socket import read_tcp_info

MS = 1_000_000
HERE = "192.0.2.1"


def fire(
    fake: FakeNetwork, collector: Collector, path: FakePath, **options: int | str
) -> list[Sample]:
    """One shot, and everything that it says."""
    fake.paths[HERE] = path
    probe = collector.open(TCP, options)
    probe.fire(shot_at(HERE, port=80))
    fake.clock.advance(3_000 * MS)
    probe.close()
    return [sample for _, sample in collector.emitted]


def test_stamps_and_lateness_are_worked_out_of_the_due_time(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.paths[HERE] = FakePath()
    fake.clock.advance(50 * MS)
    due = fake.clock.monotonic_ns() - 3 * MS
    target = Target("there", HERE, port=80)
    probe = fake_collector.open(TCP)
    probe.fire(Shot(0, 0, target, HERE, AddressFamily.IPV4, 1_000 * MS, 99, due_ns=due))
    fake.clock.advance(1_000 * MS)
    sample = fake_collector.only("connect")
    assert sample.lateness_ns == 3 * MS
    assert sample.stamps is not None
    assert sample.stamps.due_ns == -3 * MS
    assert sample.stamps.user_sent_ns == 0
    assert sample.stamps.user_received_ns == 10 * MS
    assert sample.stamps.kernel_sent_ns is None
    assert sample.flow == fake.last_port


@pytest.mark.parametrize(
    ("privileged", "stamped", "source"),
    [
        (True, True, ClockSource.KERNEL_RECEIVE),
        (True, False, ClockSource.USER),
        (False, True, ClockSource.USER),
    ],
)
def test_a_refusal_is_a_round_trip_by_the_best_clock_there_is(
    fake: FakeNetwork,
    fake_collector: Collector,
    privileged: bool,
    stamped: bool,
    source: ClockSource,
) -> None:
    fake.privileged, fake.receive_stamps = privileged, stamped
    (sample,) = fire(fake, fake_collector, FakePath(refused=True))
    assert (sample.value_ns, sample.flags) == (10 * MS, (Flag.REFUSED,))
    assert sample.clock_source is source


def test_a_refusal_of_a_second_syn_is_no_round_trip(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    (sample,) = fire(fake, fake_collector, FakePath(refused=True, retransmits=1))
    assert sample.flags == (Flag.REFUSED, Flag.SYN_RETRANSMITTED)
    assert sample.clock_source is ClockSource.USER


def test_a_refusal_by_a_router_stays_a_failure(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    (sample,) = fire(fake, fake_collector, FakePath(unreachable=(3, 3, HERE)))
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.UNREACHABLE


def test_an_echo_is_between_the_last_bytes(fake: FakeNetwork, fake_collector: Collector) -> None:
    connect, echo = fire(fake, fake_collector, FakePath(echoes=True), echo_bytes=100)
    assert (connect.metric, echo.metric) == ("connect", "echo")
    assert (echo.value_ns, echo.clock_source) == (10 * MS, ClockSource.KERNEL)
    assert echo.stamps is not None
    assert echo.stamps.kernel_received_ns == 10 * MS
    assert echo.flow == connect.flow


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (FakePath(says=b"\0" * 100), FailureKind.CORRUPT),
        (FakePath(says=b"\0"), FailureKind.CORRUPT),
        (FakePath(closes_after=1), FailureKind.CLOSED),
        (FakePath(resets_after=1), FailureKind.RESET),
        (FakePath(), FailureKind.TIMEOUT),
    ],
)
def test_what_is_no_echo(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath, kind: FailureKind
) -> None:
    connect, echo = fire(fake, fake_collector, path, echo_bytes=100)
    assert connect.value_ns == 10 * MS
    assert echo.metric == "echo"
    assert echo.failure is not None
    assert (echo.failure.kind, echo.failure.stage) == (kind, Stage.WAIT)


def test_more_than_was_sent_is_corrupt(
    fake: FakeNetwork, fake_collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = FakeTcpChannel.send

    def send_more(channel: FakeTcpChannel, data: bytes) -> None:
        send(channel, data + b"!")

    monkeypatch.setattr(FakeTcpChannel, "send", send_more)
    _, echo = fire(fake, fake_collector, FakePath(echoes=True), echo_bytes=100)
    assert echo.failure is not None
    assert echo.failure.kind is FailureKind.CORRUPT


def test_the_bound_of_half_open_connects(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths["192.0.2.2"] = FakePath()
    probe = fake_collector.open(TCP, {"max_half_open": 2})
    for seq in range(4):
        probe.fire(shot_at(HERE, seq=seq, port=80))  # is never answered
        probe.fire(shot_at("192.0.2.2", seq=seq, port=80))
        fake.clock.advance(20 * MS)
    fake.clock.advance(2_000 * MS)
    probe.fire(shot_at(HERE, seq=9, port=80))
    fake.clock.advance(2_000 * MS)
    probe.close()
    kinds = [s.failure.kind for s in fake_collector.of("connect") if s.failure is not None]
    assert kinds == [FailureKind.LOCAL] * 2 + [FailureKind.TIMEOUT] * 3
    assert fake_collector.counted("half_open_limit") == 2
    detail = next(s.failure.detail for s in fake_collector.of("connect") if s.failure is not None)
    assert detail == ("not sent: 2 connects to this target are without an answer (max_half_open)")


def test_a_sweep_takes_turns(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths[HERE] = FakePath()
    probe = fake_collector.open(TCP, {"flows": 3})
    for seq in range(7):
        probe.fire(shot_at(HERE, seq=seq, port=80))
        fake.clock.advance(20 * MS)
    probe.close()
    flows = [sample.flow for sample in fake_collector.of("connect")]
    assert flows == (flows[:3] * 3)[:7]
    assert len(set(flows)) == 3


def test_tcp_info_is_read_with_care() -> None:
    info = bytearray(232)
    info[68:72] = (15_100).to_bytes(4, "little")
    info[100:104] = (1).to_bytes(4, "little")
    assert read_tcp_info(bytes(info)) == RoundTrip(15_100_000, 1)
    info[148:152] = (15_099).to_bytes(4, "little")
    assert read_tcp_info(bytes(info)) == RoundTrip(15_099_000, 1)
    info[148:152] = b"\xff" * 4
    assert read_tcp_info(bytes(info)) == RoundTrip(15_100_000, 1)
    assert read_tcp_info(bytes(info[:104])) == RoundTrip(15_100_000, 1)
    assert read_tcp_info(bytes(info[:70])) is None


@pytest.mark.parametrize("family", list(AddressFamily))
def test_a_connect_takes_no_port_before_its_destination_is_known(family: AddressFamily) -> None:
    """Otherwise some 28,000 connections to all targets together would use up all ports."""
    kind = socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6
    loopback = "127.0.0.1" if family is AddressFamily.IPV4 else "::1"
    for source in ("", loopback):
        with socket.socket(kind, socket.SOCK_STREAM) as sock:
            prepare_connection(sock, family, PLAIN, source, 0)
            assert sock.getsockname()[1] == 0
