"""Resolvers that go mad, over UDP and over TCP: answers nearly right, wrong, cut, without end."""

import struct
from collections.abc import Callable
from random import Random

from hostile.malice import MS, Step, deliver, endless, spoil

from pathbudget.probes.channels import Datagram
from pathbudget.probes.fake_time import FakeClock

Reply = Callable[[bytes, int, int], None]
TRUNCATED = 0x0200


def answer(rng: Random, question: bytes) -> bytes:
    """The header and question that are ours, and records behind them."""
    end = question.find(b"\0", 12) + 5
    asked = question[12:end]
    if rng.randrange(2):  # all that is asked for
        head = question[:2] + struct.pack(">H4H", 0x8180, 1, 1, 0, 0)
        return head + asked + b"\xc0\x0c\0\1\0\1\0\0\1\0\0\4\xc0\0\2\1"
    number = question[:2] if rng.randrange(8) else rng.randbytes(2)
    flags = 0x8180 | rng.choice((0, 0, 0, 0, 2, 3, 5, 15, TRUNCATED, TRUNCATED))
    records = [_record(rng) for _ in range(rng.choice((0, 1, 1, 1, 5, 60)))]
    counts = (1, len(records), rng.choice((0, 0, 0, 9, 65_535)), rng.choice((0, 1)))
    head = number + struct.pack(">H4H", flags, *counts)
    option = b"\0\0\x29\x04\xd0\0\0\0\0" + _options(rng)
    return head + asked + b"".join(records) + (option if counts[3] else b"")


def _record(rng: Random) -> bytes:
    owner = rng.choice(
        (b"\xc0\x0c", b"\0", b"\xc0\xff", b"\xc0\x0e" * 3, b"\x3f" + bytes(63) + b"\0")
    )
    kind, data = rng.choice(
        ((1, b"\xc0\0\2\1"), (28, bytes(16)), (5, b"\xc0\x0c"), (16, b"\xff" * 256), (1, b""),
         (46, rng.randbytes(90)), (2, b"\xc0\x0c"), (6, rng.randbytes(30)), (257, b"\0"))
    )  # fmt: skip
    ttl = rng.choice((0, 60, 299, 300, 0x7FFFFFFF, 0xFFFFFFFF))
    length = len(data) if rng.randrange(10) else rng.randrange(1 << 16)
    return owner + struct.pack(">HHIH", kind, 1, ttl, length) + data


def _options(rng: Random) -> bytes:
    some = b""
    for _ in range(rng.choice((0, 1, 3, 80))):
        data = rng.randbytes(rng.choice((0, 4, 7, 300)))
        some += struct.pack(">HH", rng.choice((3, 8, 10, 15, 65_001)), len(data)) + data
    return struct.pack(">H", len(some) & 0xFFFF) + some


class DatagramResolver:
    """See `fake_datagrams.FakeService`."""

    def __init__(self) -> None:
        self.rng = Random(1)

    def forget(self) -> None:
        """Nothing is kept."""

    def take(self, datagram: Datagram, clock: FakeClock, reply: Reply) -> None:
        """See `fake_datagrams.FakeService.take`."""
        rng, question = self.rng, datagram.payload
        way = rng.randrange(12)
        if way == 0 or len(question) < 17:
            return
        if way == 1:  # a flood of answers to others
            for number in range(30):
                later(clock, number * MS // 10, reply, question[1::-1] + question[2:])
            return
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            good = answer(rng, question)
            wire = spoil(rng, good, question) if rng.randrange(2) else good
            delay = rng.choice((1, 1, 10, 10, 500, 999, 1_000, 1_001, 1_500)) * MS
            later(clock, delay, reply, wire[:65_507])


def later(clock: FakeClock, delay_ns: int, reply: Reply, wire: bytes) -> None:
    """Let a datagram arrive then."""
    clock.call_in(delay_ns, lambda: reply(wire, 60, 0))


class StreamResolver:
    """See `network.Peer`."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def take(self, data: bytes) -> list[Step]:
        """See `network.Peer.take`."""
        rng, question = self._rng, data[2:]
        way = rng.randrange(10)
        if way == 0 or len(question) < 17:
            return []
        if way == 1:
            return [Step(0, b"\xff\xff"), *endless(rng, rng.randbytes(1_000))]
        if way == 2:
            piece = rng.choice((b"\0\0", b"\0\1x", framed(question[1::-1] + question[2:])))
            return endless(rng, piece)
        said = b"".join(framed(answer(rng, question)) for _ in range(rng.choice((1, 1, 2, 9))))
        return deliver(rng, spoil(rng, said) if rng.randrange(2) else said)


def framed(wire: bytes) -> bytes:
    """With its length before it (RFC 1035, 4.2.2)."""
    wire = wire[:65_535]
    return struct.pack(">H", len(wire)) + wire
