"""Looks on as connections send: every packet's departure by the kernel, and what TCP says.

`ObservedNetwork` stands between a dialer and the network. What a dialer opens while `watching` goes
on is seen through one `Sending`; nothing else changes, but that TCP is asked for a stamp of each
segment and for acknowledgements.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from pathbudget.probes.channels import (
    PLAIN,
    PLAIN_TCP,
    AcknowledgementListener,
    DatagramBatch,
    DatagramChannel,
    Network,
    Outgoing,
    PacketOptions,
    QueuedError,
    Resolution,
    RoundTrip,
    TcpChannel,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.record import AddressFamily, Failure
from pathbudget.probes.tcp_info import TcpInfo
from pathbudget.probes.upload.flights import Acknowledged, Departed

LEAST_DATAGRAM = 600
"""Datagrams below this carry acknowledgements and credit, no body (RFC 9000, 14.1)."""
MOST_KEYS = 65_536


class Sent(NamedTuple):
    """Packets that have left, and what is known of their arrival."""

    departed: list[Departed]
    acknowledged: list[Acknowledged]

    all_left: bool
    """Whether it is known that the last byte has left."""

    def is_whole(self, mss: int) -> bool:
        """Whether no stamp is missing: a departure of more than a segment stands for several."""
        return self.all_left and all(packet.bytes <= mss for packet in self.departed)


class Sending:
    """What one connection has sent since `begin`."""

    def __init__(self) -> None:
        self.departed: list[Departed] = []
        self.acknowledged: list[Acknowledged] = []
        self.channel: TcpChannel | None = None
        self.flow: int | None = None
        self._written = 0
        self._first = 0
        """Of TCP: the offset of the first byte that counts."""
        self._end: int | None = None
        self._latest = -1
        self._sizes: dict[int, int] = {}

    def begin(self) -> None:
        """Count from what is written next."""
        self.departed.clear()
        self.acknowledged.clear()
        self._sizes.clear()
        self._first, self._end = self._written, None
        self._latest = self._written - 1

    def end(self) -> None:
        """What is written from now on does not count."""
        self._end = self._written

    def since(self, unix_ns: int) -> Sent:
        """What has left from then on, and its acknowledgements, in their order."""
        departed = sorted(
            (one for one in self.departed if one.unix_ns >= unix_ns),
            key=lambda one: (one.unix_ns, one.last_byte),
        )
        first = departed[0].last_byte if departed else 0
        acknowledged = sorted(
            (one for one in self.acknowledged if one.last_byte >= first),
            key=lambda one: one.unix_ns,
        )
        return Sent(departed, acknowledged, self._end is not None)

    def info(self) -> TcpInfo | None:
        """TCP_INFO as of now; None of QUIC."""
        return None if self.channel is None else self.channel.info()

    # Told by the taps.

    def wrote(self, count: int) -> None:
        """So many bytes were handed to the kernel."""
        self._written += count

    def segment_left(self, last_byte: int, unix_ns: int) -> None:
        """A TCP segment with this last byte has left; one that is sent again is no news."""
        within = self._end is None or last_byte < self._end
        if within and last_byte > self._latest:
            self.departed.append(Departed(last_byte - self._latest, last_byte, unix_ns))
            self._latest = last_byte

    def segment_acknowledged(self, last_byte: int, unix_ns: int) -> None:
        """The other end has all up to this byte."""
        if last_byte >= self._first and (self._end is None or last_byte < self._end):
            self.acknowledged.append(Acknowledged(last_byte, unix_ns))

    def queued(self, key: int, size: int) -> None:
        """A datagram of that size leaves under that key."""
        if self._end is None and size >= LEAST_DATAGRAM and len(self._sizes) < MOST_KEYS:
            self._sizes[key] = size

    def datagram_left(self, key: int, unix_ns: int) -> None:
        """It has left."""
        size = self._sizes.pop(key, None)
        if size is not None:
            self._latest += size
            self.departed.append(Departed(size, self._latest, unix_ns))


class ObservedNetwork:
    """The network of an environment, looked at. All but what is below is the inner one's own."""

    def __init__(self, inner: Network, congestion: str = "") -> None:
        self._inner = inner
        self._congestion = congestion
        self._watched: Sending | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def as_network(self) -> Network:
        """Itself, as what it stands for."""
        return cast("Network", self)

    @contextmanager
    def watching(self, sending: Sending | None) -> Generator[None]:
        """What is opened now, or once a name is resolved that is looked up now, is seen by this."""
        before, self._watched = self._watched, sending
        try:
            yield
        finally:
            self._watched = before

    def look_up(
        self, host: str, family: AddressFamily, done: Callable[[Resolution | Failure], None]
    ) -> None:
        """See `channels.Network.look_up`."""
        watched = self._watched

        def resolved(found: Resolution | Failure) -> None:
            with self.watching(watched):
                done(found)

        self._inner.look_up(host, family, resolved)

    def connect(
        self,
        address: str,
        port: int,
        family: AddressFamily,
        listener: TcpListener,
        packet: PacketOptions = PLAIN,
        *,
        source_port: int = 0,
        options: TcpOptions = PLAIN_TCP,
    ) -> TcpChannel | Failure:
        """See `channels.Network.connect`."""
        sending = self._watched
        if sending is not None:
            listener = _ListenerTap(listener, sending)
            congestion = options.congestion or self._congestion
            options = replace(options, segments=True, acknowledgements=True, congestion=congestion)
        channel = self._inner.connect(
            address, port, family, listener, packet, source_port=source_port, options=options
        )
        if isinstance(channel, Failure) or sending is None:
            return channel
        sending.channel, sending.flow = channel, channel.local_port
        return _ChannelTap(channel, sending)

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> DatagramChannel | None:
        """See `channels.Network.open_datagrams`."""
        sending = self._watched
        if sending is None:
            return self._inner.open_datagrams(family, listener, port=port, packet=packet)

        def heard(batch: DatagramBatch) -> None:
            for key, unix_ns in batch.sent:
                sending.datagram_left(key, unix_ns)
            listener(batch)

        channel = self._inner.open_datagrams(family, heard, port=port, packet=packet)
        if channel is None:
            return None
        sending.flow = channel.port
        return _DatagramTap(channel, sending)


@dataclass(slots=True)
class _ListenerTap:
    """Hears what a TCP listener hears, just before it."""

    inner: TcpListener
    sending: Sending

    def connected(self) -> None:
        self.inner.connected()

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        self.inner.failed(error, icmp)

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        self.sending.segment_left(last_byte, kernel_unix_ns)
        self.inner.sent(last_byte, kernel_unix_ns)

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        self.inner.received(data, kernel_unix_ns)

    def acknowledged(self, last_byte: int, kernel_unix_ns: int) -> None:
        self.sending.segment_acknowledged(last_byte, kernel_unix_ns)
        if isinstance(self.inner, AcknowledgementListener):
            self.inner.acknowledged(last_byte, kernel_unix_ns)


@dataclass(slots=True)
class _ChannelTap:
    """A TCP channel whose writes are counted."""

    inner: TcpChannel
    sending: Sending

    @property
    def local_port(self) -> int | None:
        return self.inner.local_port

    @property
    def sent_ns(self) -> int:
        return self.inner.sent_ns

    def round_trip(self) -> RoundTrip | None:
        return self.inner.round_trip()

    def info(self) -> TcpInfo | None:
        return self.inner.info()

    def send(self, data: bytes) -> None:
        self.sending.wrote(len(data))
        self.inner.send(data)

    def finish(self) -> None:
        self.inner.finish()

    def close(self) -> None:
        self.inner.close()


@dataclass(slots=True)
class _DatagramTap:
    """A UDP channel whose datagrams are weighed."""

    inner: DatagramChannel
    sending: Sending

    @property
    def port(self) -> int:
        return self.inner.port

    def send(self, datagram: Outgoing) -> int | Failure:
        return self.send_all([datagram])[0]

    def send_all(self, datagrams: Sequence[Outgoing]) -> list[int | Failure]:
        keys = self.inner.send_all(datagrams)
        for datagram, key in zip(datagrams, keys, strict=True):
            if not isinstance(key, Failure):
                self.sending.queued(key, len(datagram.payload))
        return keys

    def poll(self) -> None:
        self.inner.poll()

    def sent_stamps(self) -> list[tuple[int, int]]:
        told = self.inner.sent_stamps()
        for key, unix_ns in told:
            self.sending.datagram_left(key, unix_ns)
        return told

    def close(self) -> None:
        self.inner.close()
