"""The ICMP channel of the fake network: answers as hosts and routers do, in fake time."""

import functools
import socket
import struct
from collections.abc import Callable, Sequence

from pathbudget.probes import icmp_wire
from pathbudget.probes.channels import Arrival, IcmpBatch, QueuedError
from pathbudget.probes.fake_path import FakeHost, FakePath
from pathbudget.probes.record import AddressFamily, Failure


class FakeIcmpChannel:
    """See `channels.IcmpChannel`."""

    def __init__(
        self,
        host: FakeHost,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        *,
        privileged: bool,
    ) -> None:
        self._host = host
        self._family = family
        self._listener = listener
        self._privileged = privileged
        self._keys = 0
        self._identifier = host.rng.randrange(1, 0x10000)
        self._waiting = IcmpBatch()
        self._open = True

    @property
    def privileged(self) -> bool:
        """See `channels.IcmpChannel.privileged`."""
        return self._privileged

    @property
    def identifier(self) -> int | None:
        """See `channels.IcmpChannel.identifier`."""
        return None if self._privileged else self._identifier

    def send_all(self, messages: Sequence[tuple[bytes, str]]) -> list[int | Failure]:
        """See `channels.IcmpChannel.send_all`."""
        return [self.send(message, address) for message, address in messages]

    def send(self, message: bytes, address: str) -> int | Failure:
        """See `channels.IcmpChannel.send`."""
        key = self._keys
        self._keys += 1
        if not self._privileged:
            message = message[:4] + struct.pack("!H", self._identifier) + message[6:]
            if self._family is AddressFamily.IPV4:
                message = message[:2] + bytes(2) + message[4:]
                checksum = icmp_wire.checksum(message)
                message = message[:2] + struct.pack("!H", checksum) + message[4:]
        self._host.sent.append((address, message))
        clock = self._host.clock
        if self._host.send_stamps:
            self._waiting.sent.append((key, clock.unix_ns()))
        self._answer(self._host.path(address), message, address)
        return key

    def glance(self) -> None:
        """See `channels.IcmpChannel.glance`."""
        self.poll()

    def poll(self) -> None:
        """See `channels.IcmpChannel.poll`."""
        batch, self._waiting = self._waiting, IcmpBatch()
        if self._open and (batch.sent or batch.arrivals or batch.errors):
            self._listener(batch)

    def close(self) -> None:
        """See `channels.IcmpChannel.close`."""
        self._open = False

    def _answer(self, path: FakePath, message: bytes, address: str) -> None:
        number = path.next_number()
        if path.lost(number):
            return
        round_trip = path.round_trip(number)
        if path.unreachable is not None:
            self._later(round_trip // 2, lambda: self._error(path, message, address))
            return
        reply = self._reply(message, corrupt=bool(path.corrupt(number)))
        sender = path.responder or address
        for _ in range(path.foreign):
            arrive = functools.partial(self._arrive, self._foreign(message), sender, path.ttl)
            self._later(round_trip // 2, arrive)
        for copy in range(1 + path.duplicates):
            delay = round_trip + copy * path.duplicate_gap_ns
            self._later(delay, lambda: self._arrive(reply, sender, path.ttl))

    def _later(self, delay_ns: int, put: Callable[[], None]) -> None:
        """A packet comes; it is read when all that come at the same instant are there."""

        def come() -> None:
            put()
            self._host.clock.call_in(0, self.poll)

        self._host.clock.call_in(delay_ns, come)

    def _arrive(self, message: bytes, sender: str, ttl: int) -> None:
        self._waiting.arrivals.append(Arrival(message, sender, ttl, self._stamp()))

    def _error(self, path: FakePath, message: bytes, address: str) -> None:
        assert path.unreachable is not None
        icmp_type, code, responder = path.unreachable
        quoted = message[: path.quotes_bytes]
        if not self._privileged:
            self._waiting.errors.append(
                QueuedError(icmp_type, code, responder, address, quoted, self._stamp())
            )
            return
        header = _ip_header(self._family, address, len(message))
        error = struct.pack("!BBHI", icmp_type, code, 0, 0) + header + quoted
        self._arrive(error, responder, path.ttl)

    def _reply(self, message: bytes, *, corrupt: bool) -> bytes:
        kind = (
            icmp_wire.ECHO_REPLY_V4
            if self._family is AddressFamily.IPV4
            else icmp_wire.ECHO_REPLY_V6
        )
        body = bytes([kind, 0, 0, 0]) + message[4:]
        if self._family is AddressFamily.IPV4:
            body = body[:2] + icmp_wire.checksum(body).to_bytes(2, "big") + body[4:]
        return body[:-1] + bytes([body[-1] ^ 0xFF]) if corrupt else body

    def _foreign(self, message: bytes) -> bytes:
        """A reply that looks like one to ours, but for the secret."""
        other = message[:8] + self._host.rng.randbytes(len(message) - 8)
        return self._reply(other, corrupt=False)

    def _stamp(self) -> int | None:
        return self._host.clock.unix_ns() if self._host.receive_stamps else None


def _ip_header(family: AddressFamily, destination: str, size: int) -> bytes:
    """The header of our request as a router quotes it."""
    if family is AddressFamily.IPV4:
        there = socket.inet_pton(socket.AF_INET, destination)
        fields = (0x45, 0, 20 + size, 0, 0, 1, icmp_wire.ICMP_PROTOCOL, 0, b"\x7f\0\0\1", there)
        return struct.pack("!BBHHHBBH4s4s", *fields)
    there = socket.inet_pton(socket.AF_INET6, destination)
    return struct.pack("!IHBB16s16s", 6 << 28, size, icmp_wire.ICMPV6_PROTOCOL, 1, bytes(16), there)
