"""A stamped raw TCP socket in an asyncio loop: the real `SegmentChannel`. See `network`.

The kernel's own TCP hears the answers too: it has no connection that they belong to and says RST,
so nothing stays half open at the other side.
"""

import socket
from collections.abc import Callable, Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import Segment, SegmentBatch
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.packets import Packet, Received, SocketAddress, socket_address
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.stamped_socket import StampedSocket
from pathbudget.probes.tcp_wire import strip_ip

SEGMENT_BYTES = 2_048
SOURCE_SECONDS = 5.0
"""How long a source address is believed; routes change."""


class StampedSegmentSocket(StampedSocket):
    """See `channels.SegmentChannel`. Owns the socket; `find_source` may raise OSError."""

    def __init__(
        self,
        sock: socket.socket,
        family: AddressFamily,
        listener: Callable[[SegmentBatch], None],
        find_source: Callable[[str], str],
    ) -> None:
        self._listener = listener
        self._find_source = find_source
        self._sources: dict[str, tuple[float, str]] = {}
        self._there: dict[str, SocketAddress] = {}
        super().__init__(sock, family, data_bytes=SEGMENT_BYTES, error_queue=True, headers=False)

    def source_for(self, address: str) -> str | Failure:
        """See `channels.SegmentChannel.source_for`."""
        now = self._loop.time()
        known = self._sources.get(address)
        if known is not None and known[0] > now:
            return known[1]
        try:
            source = self._find_source(address)
        except OSError as error:
            return from_refused_call(error, Stage.CONNECT, self._family)
        self._sources[address] = (now + SOURCE_SECONDS, source)
        return source

    def send_all(self, segments: Sequence[tuple[bytes, str, str]]) -> list[int | Failure]:
        """See `channels.SegmentChannel.send_all`."""
        outcomes = self._send_packets([self._packet(*one) for one in segments])
        for (_, address, _), outcome in zip(segments, outcomes, strict=True):
            if isinstance(outcome, Failure):
                self._sources.pop(address, None)  # perhaps it has moved
        return outcomes

    def poll(self) -> None:
        """See `channels.SegmentChannel.poll`."""
        arrivals = [one for one in map(self._segment, self._take_packets()) if one is not None]
        sent, errors = self._take_errors()
        if sent or arrivals or errors:
            self._listener(SegmentBatch(sent, arrivals, errors))

    def _packet(self, segment: bytes, address: str, source: str) -> Packet:
        """Leaves from the address that the checksum was made for, or not at all.

        IPv6 needs no such word: there the kernel makes the checksum (RFC 3542, IPV6_CHECKSUM).
        """
        there = self._there.get(address)
        if there is None:
            there = self._there[address] = socket_address(address, 0, self._family)
        if self._family is AddressFamily.IPV6:
            return segment, there, ()
        return segment, there, (stamps.leave_from(socket.AF_INET, source),)

    def _segment(self, received: Received) -> Segment | None:
        data, sender, _, local, ttl, _, stamp = received
        if self._family is AddressFamily.IPV4:
            stripped = strip_ip(data)
            if stripped is None:
                return None
            data, local, ttl = stripped
        return Segment(data, sender, local, ttl, stamp)
