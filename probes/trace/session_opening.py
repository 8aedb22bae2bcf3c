"""Opens the connection that the probes of a trace travel in; see `session_segments`.

session = TraceSession(network, channel, clock, ("192.0.2.1", 443), family, ready)
... in the listener of the channel: for each arrival: session.see(arrival)
... when `ready` was called with None: channel.send_all([session.build(hop, token)])
"""

from collections.abc import Callable

from pathbudget.probes.channels import (
    PLAIN,
    Network,
    PacketOptions,
    PathChannel,
    QueuedError,
    ReservedPorts,
    TcpChannel,
)
from pathbudget.probes.clock import Clock
from pathbudget.probes.failures import from_icmp, from_os_error, unavailable
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.trace.contract import Flow, FlowPacket, PathArrival, TraceProtocol
from pathbudget.probes.trace.session_segments import SessionSegments

Ready = Callable[[Failure | None], None]


class TraceSession:
    """One connection of ours. `ready` is called once, in the event loop: None, or why it cannot be.

    Whether to give up waiting is the caller's business: `close`. The local port is reserved, unless
    `source_port` says from which one (that of a probe whose way is to be explained).
    """

    def __init__(
        self,
        network: Network,
        channel: PathChannel,
        clock: Clock,
        place: tuple[str, int],
        family: AddressFamily,
        ready: Ready,
        packet: PacketOptions = PLAIN,
        *,
        source_port: int = 0,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._family = family
        self._packet = packet
        self._ready: Ready | None = ready
        self._held: ReservedPorts | None = None
        self._connection: TcpChannel | None = None
        """The kernel's own end."""
        self._connected = False
        self.segments: SessionSegments | None = None
        """None where nothing could be begun; `ready` is told why."""
        failure = self._begin(network, place, source_port)
        if failure is not None:
            network.call_at(clock.monotonic_ns(), lambda: self._finish(failure))

    def see(self, arrival: PathArrival) -> bool:
        """Feed every arrival of the channel; whether it is a segment of this connection. It may be
        an answer to a probe all the same: `wire.read` knows.
        """
        if self.segments is None or not self.segments.see(arrival, self._clock.monotonic_ns()):
            return False
        self._look()
        return True

    def build(self, hop_limit: int, token: int) -> FlowPacket:
        """One probe. See `SessionSegments.build`."""
        assert self.segments is not None
        dscp = self._packet.dscp
        return self.segments.build(hop_limit, token, self._clock.monotonic_ns(), dscp=dscp)

    def close(self) -> None:
        """End the connection with a reset, and give the port back."""
        self._ready = None
        if self._connection is not None:
            self._connection.close()
        if self._held is not None:
            self._held.close()

    # What follows is told by the connection, as a `channels.TcpListener`.

    def connected(self) -> None:
        """The kernel's handshake is complete; the raw socket has heard it too, or will now."""
        self._connected = True
        trip = self._connection.round_trip() if self._connection is not None else None
        if trip is not None and self.segments is not None:
            self.segments.round_trip_ns = trip.rtt_ns
        self._channel.poll()
        if self.segments is None or not self.segments.ready:
            detail = "the raw socket did not hear how the connection began"
            self._finish(unavailable(detail, Stage.CONNECT))
        self._look()

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        """The connection is dead."""
        failure = None
        if icmp is not None:
            failure = from_icmp(self._family, icmp.icmp_type, icmp.icmp_code, Stage.CONNECT)
        if self.segments is not None:
            self.segments.ended = True
        self._finish(failure or from_os_error(error, Stage.CONNECT))

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """Nothing is sent through the connection itself."""

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """What the other end says is not asked for; empty: it has closed."""
        del kernel_unix_ns
        if not data and self.segments is not None:
            self.segments.ended = True

    def _begin(self, network: Network, place: tuple[str, int], source_port: int) -> Failure | None:
        address, port = place
        if not self._channel.privileged:
            return unavailable("probes in a connection need raw sockets", Stage.CONNECT)
        source = self._channel.source_for(address)
        if isinstance(source, Failure):
            return source
        if not source_port:
            held = network.reserve_ports(self._family, 1, self._packet)
            if isinstance(held, Failure):
                return held
            self._held, source_port = held, held.ports[0]
        self._channel.hear((source_port,))
        flow = Flow(TraceProtocol.SESSION, self._family, source, address, source_port, port)
        self.segments = SessionSegments(flow)
        connection = network.connect(
            address, port, self._family, self, self._packet, source_port=source_port
        )
        if isinstance(connection, Failure):
            return connection
        self._connection = connection
        return None

    def _look(self) -> None:
        if self._connected and self.segments is not None and self.segments.ready:
            self._finish(None)

    def _finish(self, failure: Failure | None) -> None:
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(failure)
