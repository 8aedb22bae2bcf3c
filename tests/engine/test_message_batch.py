"""Many packets per call against one packet per call, on loopback."""

import ctypes
import importlib.util
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes import message_batch
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.message_batch import BatchedPackets, open_packets, read_name, write_name
from pathbudget.probes.message_memory import (
    HEADER,
    VECTOR,
    MessageMemory,
    padded_control,
    walk_control,
)
from pathbudget.probes.packets import Packet, Packets, Received, SinglePackets, SocketAddress
from pathbudget.probes.record import AddressFamily

both_families = pytest.mark.parametrize("family", list(AddressFamily))
OpenUdp = Callable[[AddressFamily], socket.socket]
HERE = {AddressFamily.IPV4: "127.0.0.1", AddressFamily.IPV6: "::1"}


def fuzz_targets() -> object:
    file = Path(__file__).with_name("fuzz_targets.py")
    spec = importlib.util.spec_from_file_location("engine_fuzz_targets", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = fuzz_targets()


def to(sock: socket.socket) -> SocketAddress:
    name = sock.getsockname()
    return str(name[0]), int(name[1])


def send_all(packets: Packets, messages: list[Packet]) -> None:
    done = 0
    while done < len(messages):
        done += packets.send(messages, done)


def received(packets: Packets, count: int) -> list[Received]:
    into: list[Received] = []
    end = time.monotonic() + 10
    while len(into) < count and time.monotonic() < end:
        packets.receive(into)
    return into


@both_families
def test_both_ways_read_the_same(stamped_udp: OpenUdp, family: AddressFamily) -> None:
    """Payloads of many lengths, own source and class for some: more than one call can hold."""
    sender, one, other = (stamped_udp(family) for _ in range(3))
    kind, here = sender.family, HERE[family]
    extras = [(), (stamps.of_class(kind, 184),), (stamps.leave_from(kind, here),)]
    payloads = [bytes([n % 256]) * (n * 7 % 1_300) for n in range(300)]
    out = open_packets(sender, 65_536, headers=True)
    for there in (one, other):
        send_all(out, [(text, to(there), extras[n % 3]) for n, text in enumerate(payloads)])
    batched = received(BatchedPackets(one, 65_536, headers=True), 300)
    single = received(SinglePackets(other, 65_536), 300)
    assert [row[0] for row in batched] == payloads
    assert [row[:6] for row in batched] == [row[:6] for row in single]
    assert {row[1:6] for row in batched} == {
        (here, to(sender)[1], here, 64, traffic_class) for traffic_class in (0, 184)
    }
    for rows in (batched, single):
        assert all(row[6] is not None for row in rows)
        assert [row[6] for row in rows] == sorted(row[6] or 0 for row in rows)


@both_families
@pytest.mark.parametrize("way", [BatchedPackets, SinglePackets])
def test_stamps_and_errors_come_from_the_error_queue(
    stamped_udp: OpenUdp, family: AddressFamily, way: type
) -> None:
    sender, there, closed = (stamped_udp(family) for _ in range(3))
    nobody = to(closed)
    closed.close()
    packets = way(sender, 2_048, **({"headers": True} if way is BatchedPackets else {}))
    send_all(packets, [(bytes(60), to(there), ())] * 150)
    send_all(packets, [(b"to nobody", nobody, ())])
    sent: list[tuple[int, int]] = []
    errors: list[QueuedError] = []
    packets.receive_errors(sent, errors)
    assert [key for key, _ in sent] == list(range(151))
    assert [stamp for _, stamp in sent] == sorted(stamp for _, stamp in sent)
    (error,) = errors
    unreachable = {AddressFamily.IPV4: (3, 3), AddressFamily.IPV6: (1, 4)}[family]
    assert (error.icmp_type, error.icmp_code) == unreachable
    assert (error.responder, error.destination) == (HERE[family], HERE[family])
    assert error.quoted == b"to nobody"


def test_a_socket_without_stamps_says_none(stamped_udp: OpenUdp) -> None:
    sender, there = stamped_udp(AddressFamily.IPV4), stamped_udp(AddressFamily.IPV4)
    stamps.switch_on(there, 0)
    send_all(open_packets(sender, 2_048, headers=True), [(b"x", to(there), ())] * 3)
    rows = received(BatchedPackets(there, 2_048, headers=True), 3)
    assert [row[6] for row in rows] == [None] * 3
    assert [row[4] for row in rows] == [64] * 3


def test_control_messages_that_are_cut_short_are_read_as_far_as_they_go(
    stamped_udp: OpenUdp, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, there = stamped_udp(AddressFamily.IPV4), stamped_udp(AddressFamily.IPV4)
    packets = BatchedPackets(there, 2_048, headers=True)
    short = MessageMemory(message_batch.SLOTS, 2_048, control_bytes=72)
    monkeypatch.setitem(message_batch._boxes._made, 2_048, short)
    send_all(open_packets(sender, 2_048, headers=True), [(b"whole", to(there), ())] * 2)
    for payload, _, _, _, ttl, traffic_class, stamp in received(packets, 2):
        assert payload == b"whole"
        assert stamp is not None
        assert (ttl, traffic_class) == (None, None)


def test_a_packet_longer_than_any_is_refused_by_the_kernel_alone(stamped_udp: OpenUdp) -> None:
    sender, there = stamped_udp(AddressFamily.IPV4), stamped_udp(AddressFamily.IPV4)
    packets = BatchedPackets(sender, 2_048, headers=True)
    messages: list[Packet] = [(bytes(n), to(there), ()) for n in (10, 70_000, 10)]
    assert packets.send(messages, 0) == 1
    with pytest.raises(OSError, match="too long"):
        packets.send(messages, 1)
    assert packets.send(messages, 2) == 1


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """struct msghdr (recvmsg(2))."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _MultiHeader(ctypes.Structure):
    """struct mmsghdr (recvmmsg(2))."""

    _fields_ = (("header", _Header), ("length", ctypes.c_uint))


def test_memory_is_laid_out_as_c_lays_it_out() -> None:
    memory = MessageMemory(3, 100)
    assert (ctypes.sizeof(_MultiHeader), ctypes.sizeof(_Vector)) == (HEADER.size, VECTOR.size)
    headers = (_MultiHeader * 3).from_buffer(memory.headers)
    memory.set_header(1, 16, 88)
    memory.set_length(1, 77)
    one = headers[1].header
    assert (one.name_length, one.count, one.control_length, one.flags) == (16, 1, 88, 0)
    vector = _Vector.from_address(one.vectors)
    assert (vector.base - one.name, vector.length) == (memory.data_at, 77)
    assert one.control - one.name == memory.control_at
    assert headers[2].header.name - one.name == memory.stride
    headers[1].length = 55
    assert list(memory.filled(2))[1] == (16, 88, 55)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 99), st.binary(max_size=60)), max_size=4)
)
def test_control_messages_read_back(messages: list[tuple[int, int, bytes]]) -> None:
    raw = padded_control(tuple(messages))
    assert walk_control(raw) == messages
    assert walk_control(raw[:-1])[: max(0, len(messages) - 1)] == messages[:-1]


@pytest.mark.parametrize(
    "address",
    [("192.0.2.1", 7), ("2001:db8::1", 65_535), ("fe80::1%lo", 9, 0, 1), ("::", 0, 5, 0)],
)
def test_addresses_read_back(address: SocketAddress) -> None:
    assert read_name(write_name(address)) == address[:2]


@pytest.mark.parametrize("raw", [b"", b"\0", bytes(16), b"\xff" * 28, b"\x0a\0" + bytes(5)])
def test_what_is_no_address_is_empty(raw: bytes) -> None:
    assert read_name(raw) == ("", 0)


@given(st.binary(max_size=240))
def test_nothing_the_kernel_says_raises(data: bytes) -> None:
    TARGETS.fuzz_one_control(data)  # type: ignore[attr-defined]


@given(st.binary(max_size=120))
def test_nothing_the_network_says_raises(data: bytes) -> None:
    TARGETS.fuzz_one_icmp(data)  # type: ignore[attr-defined]
