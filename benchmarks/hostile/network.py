"""A fake network whose servers mean no good, and that knows what probes have left open on it."""

import errno
import functools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from hostile.malice import MS, Step

from pathbudget.probes.channels import (
    PLAIN,
    PLAIN_TCP,
    AcknowledgementListener,
    DatagramBatch,
    PacketOptions,
    RoundTrip,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.fake_network import FakeNetwork
from pathbudget.probes.fake_time import FakeCall
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.tcp_info import TcpInfo

HALF_NS = 5 * MS


class Peer(Protocol):
    """The other end of one connection."""

    def take(self, data: bytes) -> Sequence[Step]:
        """What it says to these bytes, half a round trip later and then as its steps have it."""
        ...


@dataclass
class HostileNetwork(FakeNetwork):
    """Every connection has a new peer of `peers`, or meets what `connects` says."""

    dice: Random = field(default_factory=lambda: Random(1))
    peers: Callable[[Random], Peer] | None = None
    connects: bool = True
    """False: one connection in twenty is refused, or its SYN never answered."""
    open: set[Any] = field(default_factory=set[Any])
    longest_ns: int = 0
    """How long a probe has computed on one read, really: no alarm can ring meanwhile."""
    alarms: list[FakeCall] = field(default_factory=list[FakeCall])

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> FakeCall:
        """See `channels.Network.call_at`. Remembers the alarm."""
        call = self.clock.call_at(monotonic_ns, callback)
        self.alarms.append(call)
        return call

    def live_alarms(self) -> int:
        """How many will still ring."""
        self.alarms = [one for one in self.alarms if one._callback is not None]  # noqa: SLF001
        return len(self.alarms)

    def timed(self, call: Callable[..., None], *given: Any) -> None:
        """Let a probe read."""
        began = time.perf_counter_ns()
        call(*given)
        self.longest_ns = max(self.longest_ns, time.perf_counter_ns() - began)

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
    ) -> Any:
        """See `channels.Network.connect`."""
        del address, port, family, packet, source_port
        assert self.peers is not None
        return HostileChannel(self, listener, self.peers(self.dice), options)

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> Any:
        """See `channels.Network.open_datagrams`. Remembers the channel until it is closed."""
        timed = functools.partial(self.timed, listener)
        channel: Any = super().open_datagrams(family, timed, port=port, packet=packet)
        assert channel is not None
        close = channel.close

        def closed() -> None:
            self.open.discard(channel)
            close()

        channel.close = closed
        self.open.add(channel)
        return channel


class HostileChannel:
    """See `channels.TcpChannel`."""

    local_port = 40_000

    def __init__(
        self, network: HostileNetwork, listener: TcpListener, peer: Peer, options: TcpOptions
    ) -> None:
        self._network = network
        self._listener: TcpListener | None = listener
        self._peer = peer
        self._options = options
        self._sent_bytes = 0
        self.sent_ns = network.clock.monotonic_ns()
        network.open.add(self)
        fate = network.dice.randrange(20) if not network.connects else 9
        if fate == 0:
            network.clock.call_in(2 * HALF_NS, lambda: self._reset(errno.ECONNREFUSED))
        elif fate > 1:
            network.clock.call_in(2 * HALF_NS, self._connected)

    def round_trip(self) -> RoundTrip | None:
        """See `channels.TcpChannel.round_trip`."""
        return RoundTrip(2 * HALF_NS, 0)

    def info(self) -> TcpInfo:
        """See `channels.TcpChannel.info`."""
        return TcpInfo(mss=1_448, cwnd=10, rtt_ns=2 * HALF_NS, bytes_sent=self._sent_bytes)

    def send(self, data: bytes) -> None:
        """See `channels.TcpChannel.send`."""
        if not data or self not in self._network.open:
            return
        clock = self._network.clock
        self._sent_bytes += len(data)
        last_byte, now = self._sent_bytes - 1, clock.unix_ns()
        clock.call_in(0, functools.partial(self._tell_sent, last_byte, now))
        if self._options.acknowledgements and self._network.dice.randrange(4):
            clock.call_in(2 * HALF_NS, functools.partial(self._acknowledged, last_byte))
        clock.call_in(HALF_NS, lambda: self._at_peer(data))

    def finish(self) -> None:
        """See `channels.TcpChannel.finish`."""
        self.close()

    def close(self) -> None:
        """See `channels.TcpChannel.close`."""
        self._listener = None
        self._network.open.discard(self)

    def _connected(self) -> None:
        if self._listener is not None:
            self._listener.connected()

    def _tell_sent(self, last_byte: int, unix_ns: int) -> None:
        if self._listener is not None:
            self._listener.sent(last_byte, unix_ns)

    def _acknowledged(self, last_byte: int) -> None:
        if isinstance(self._listener, AcknowledgementListener):
            self._listener.acknowledged(last_byte, self._network.clock.unix_ns())

    def _at_peer(self, data: bytes) -> None:
        if self in self._network.open:
            self._play(iter(self._peer.take(data)), HALF_NS)

    def _play(self, steps: Any, more_ns: int = 0) -> None:
        """Each step is put into the future as the one before it has come: no more is held."""
        step = next(steps, None)
        if step is None or self not in self._network.open:
            return

        def come() -> None:
            self._come(step.data)
            self._play(steps)

        self._network.clock.call_in(step.after_ns + more_ns, come)

    def _come(self, data: bytes | None) -> None:
        if data is None:
            self._reset(errno.ECONNRESET)
        elif self._listener is not None:
            now = self._network.clock.unix_ns()
            self._network.timed(self._listener.received, data, now)

    def _reset(self, code: int) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.failed(OSError(code, os.strerror(code)), None)
