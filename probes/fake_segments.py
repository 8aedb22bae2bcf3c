"""The raw TCP channel of the fake network: SYNs out, SYN-ACKs and RSTs in."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pathbudget.probes.channels import QueuedError, Segment, SegmentBatch
from pathbudget.probes.fake_path import FakeHost, FakePath
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.tcp_wire import ACK, RST, SEQUENCES, SYN, checksum, parse_quoted_syn

_HEADER = struct.Struct("!HHIIBBHHH")
_HERE = {AddressFamily.IPV4: "192.0.2.254", AddressFamily.IPV6: "2001:db8::fe"}


@dataclass
class FakePorts:
    """See `channels.ReservedPorts`."""

    ports: Sequence[int]

    def close(self) -> None:
        """See `channels.ReservedPorts.close`."""


class FakeSegmentChannel:
    """See `channels.SegmentChannel`. The keys of sends are 0, 1, 2 ..."""

    def __init__(
        self,
        host: FakeHost,
        family: AddressFamily,
        listener: Callable[[SegmentBatch], None],
        ports: Sequence[int],
    ) -> None:
        self._host = host
        self._family = family
        self._listener: Callable[[SegmentBatch], None] | None = listener
        self._sent = 0
        if not ports:
            host.hear_resets.append(self._hear)

    def source_for(self, address: str) -> str | Failure:
        """See `channels.SegmentChannel.source_for`."""
        del address
        return _HERE[self._family]

    def send_all(self, segments: Sequence[tuple[bytes, str, str]]) -> list[int | Failure]:
        """See `channels.SegmentChannel.send_all`."""
        return [self._send(segment, address) for segment, address, _ in segments]

    def poll(self) -> None:
        """See `channels.SegmentChannel.poll`: nothing waits here."""

    def close(self) -> None:
        """See `channels.SegmentChannel.close`."""
        self._listener = None
        if self._hear in self._host.hear_resets:
            self._host.hear_resets.remove(self._hear)

    def _send(self, segment: bytes, address: str) -> int:
        host, path = self._host, self._host.path(address)
        key, self._sent = self._sent, self._sent + 1
        now, number = host.clock.unix_ns(), path.next_number()
        if host.send_stamps:
            host.clock.call_in(0, lambda: self._tell(SegmentBatch(sent=[(key, now)])))
        after = path.round_trip(number)
        if path.unreachable is not None:
            host.clock.call_in(after, lambda: self._unreachable(segment, address, path))
        elif not path.lost(number):
            for copy in range(1 + path.duplicates):
                later = after + copy * path.duplicate_gap_ns
                host.clock.call_in(later, lambda: self._answer(segment, address, path, number))
        return key

    def _answer(self, syn: bytes, address: str, path: FakePath, number: int) -> None:
        quoted = parse_quoted_syn(syn)
        assert quoted is not None
        acknowledged = (quoted.sequence + 1) % SEQUENCES
        kind = RST | ACK if path.refused else SYN | ACK
        here = _HERE[self._family]
        answer = build_answer(
            (address, quoted.destination_port), (here, quoted.source_port), acknowledged, kind
        )
        if path.corrupt(number):
            answer = answer[:14] + b"\x12\x34" + answer[16:]
        self._hear(Segment(answer, address, here, path.ttl, self._stamp()))

    def _unreachable(self, syn: bytes, address: str, path: FakePath) -> None:
        assert path.unreachable is not None
        icmp_type, code, responder = path.unreachable
        quoted = syn[: path.quotes_bytes]
        error = QueuedError(icmp_type, code, responder, address, quoted, self._stamp())
        self._tell(SegmentBatch(errors=[error]))

    def _hear(self, segment: Segment) -> None:
        self._tell(SegmentBatch(arrivals=[segment]))

    def _tell(self, batch: SegmentBatch) -> None:
        if self._listener is not None:
            self._listener(batch)

    def _stamp(self) -> int | None:
        return self._host.clock.unix_ns() if self._host.receive_stamps else None


def build_answer(
    there: tuple[str, int], here: tuple[str, int], acknowledged: int, kind: int
) -> bytes:
    """What `there` answers to a SYN from `here` (address and port each)."""
    header = (there[1], here[1], 0, acknowledged, 5 << 4, kind, 0)
    plain = _HEADER.pack(*header, 0, 0)
    return _HEADER.pack(*header, checksum(there[0], here[0], plain), 0)


def tell_reset(host: FakeHost, place: tuple[str, int], local_port: int) -> None:
    """Raw sockets hear the RST that refuses a connection of this host."""
    family = AddressFamily.IPV6 if ":" in place[0] else AddressFamily.IPV4
    here = _HERE[family]
    data = build_answer(place, (here, local_port), 1, RST | ACK)
    stamp = host.clock.unix_ns() if host.receive_stamps else None
    for hear in tuple(host.hear_resets):
        hear(Segment(data, place[0], here, 64, stamp))


def no_interface(name: str) -> Failure:
    """The fake host has no interfaces."""
    detail = f"this host has no interface {name}"
    return Failure(FailureKind.LOCAL, Stage.CONNECT, detail=detail)
