"""Bytes from the network and from the kernel, against the ICMP session and the control parser."""

import functools
import random
import socket
import struct

from pathbudget.probes import kernel_stamps
from pathbudget.probes.channels import Arrival, IcmpBatch, QueuedError
from pathbudget.probes.clock import Reading
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.icmp_session import IcmpSession, Outcome
from pathbudget.probes.icmp_wire import checksum, strip_ipv4
from pathbudget.probes.message_batch import BatchedPackets, read_name
from pathbudget.probes.message_memory import HEADER, MessageMemory, padded_control, walk_control
from pathbudget.probes.packets import Received
from pathbudget.probes.record import AddressFamily, FailureKind

NOW_NS = 1_790_000_000_000_000_000
ADDRESS = {AddressFamily.IPV4: "192.0.2.1", AddressFamily.IPV6: "2001:db8::1"}


def fuzz_one_icmp(data: bytes) -> None:
    """A message from the network never raises, and yields a number only if it is our reply.

    The first byte chooses how the rest is used: as it is, or laid over an answer to our request.
    """
    if not data:
        return
    choice, rest = data[0], data[1:]
    family = AddressFamily.IPV6 if choice & 1 else AddressFamily.IPV4
    session = IcmpSession(family, random.Random(7))
    sent = Reading(0, NOW_NS, 0)
    number, request = session.request(shot_at(ADDRESS[family]), sent)
    session.sent(number, 1, 0)
    strip_ipv4(rest)
    message = _laid_over(family, request, rest) if choice & 2 else rest
    batch = IcmpBatch([(0, NOW_NS + 5)])
    if choice & 4:
        batch.errors.append(QueuedError(choice, 0, "192.0.2.7", ADDRESS[family], message, None))
    else:
        batch.arrivals.append(Arrival(message, ADDRESS[family], 64, NOW_NS + 10))
    session.receive(1, batch, Reading(1_000, NOW_NS + 1_000, 0))
    for event in session.events():
        if isinstance(event, Outcome) and event.sample.value_ns is not None:
            # All but type, checksum and identifier, which others may have changed.
            assert message[6:] == request[6:], "a number for what is not our reply"
    session.expire(Reading(10**10, NOW_NS + 10**10, 0))
    ended = [event for event in session.events() if isinstance(event, Outcome)]
    assert session.under_way == 0
    assert all(event.sample.failure for event in ended)
    assert not ended or ended[0].sample.failure.kind is FailureKind.TIMEOUT  # type: ignore[union-attr]


def _laid_over(family: AddressFamily, request: bytes, rest: bytes) -> bytes:
    """The true reply, with some bytes of it changed: (place, value) pairs."""
    kind = b"\0\0" if family is AddressFamily.IPV4 else b"\x81\0"
    reply = bytearray(kind + b"\0\0" + request[4:])
    if family is AddressFamily.IPV4:
        reply[2:4] = checksum(bytes(reply)).to_bytes(2, "big")
    for place, value in zip(rest[::2], rest[1::2], strict=False):
        reply[place % len(reply)] = value
    return bytes(reply)


@functools.cache
def _packets(headers: bool) -> tuple[BatchedPackets, socket.socket]:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return BatchedPackets(sock, 256, headers=headers), sock


@functools.cache
def _memory() -> MessageMemory:
    return MessageMemory(1, 256)


def fuzz_one_control(data: bytes) -> None:
    """Control messages never raise, and the fast way reads them as the slow one does."""
    control, name = data[:200], data[200:228]
    messages = walk_control(control)
    read = kernel_stamps.read_control(messages)
    read_name(name)
    usual = [
        (socket.SOL_SOCKET, kernel_stamps.SCM_TIMESTAMPING, data[:48].ljust(48, b"\0")),
        (socket.SOL_IP, kernel_stamps.IP_TTL, data[48:52].ljust(4, b"\0")),
    ]
    for laid in (control, _padded(usual)):
        packets, _ = _packets(headers=False)
        memory = _memory()
        memory.slots[: len(bytes(16))] = struct.pack("@HH4s8x", socket.AF_INET, 0, b"\xc0\0\2\1")
        memory.slots[memory.control_at : memory.control_at + len(laid)] = laid
        fields = list(HEADER.unpack_from(memory.headers, 0))
        fields[1], fields[5], fields[7] = 16, len(laid), 4
        HEADER.pack_into(memory.headers, 0, *fields)
        into: list[Received] = []
        packets._take_plain(memory, 1, into)
        read = kernel_stamps.read_control(walk_control(laid))
        ((_, sender, _, _, ttl, _, stamp),) = into
        assert (sender, ttl, stamp) == ("192.0.2.1", read.ttl, read.stamp_unix_ns)


def _padded(messages: list[tuple[int, int, bytes]]) -> bytes:
    return padded_control(tuple(messages))
