"""How much HTTPS gives at most: to everybody, to one network, to one connection."""

from collections import Counter
from dataclasses import dataclass

from pathbudget.agents.reflector.limits import Rates, source_prefix

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one reflector. Times are seconds; sizes are bytes unless said otherwise."""

    connections: int = 512
    """Open at once, TCP and QUIC together."""
    connections_per_network: int = 256
    """Of these from one /24, of IPv6 one /48."""
    openings: Rates = Rates(200, 400)  # noqa: RUF009 (frozen)
    """Connections per second: from one network, and in all. Each costs a handshake."""
    handshake_seconds: float = 10.0
    request_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body_seconds: float = 120.0
    """From the end of the headers to the end of the body."""
    idle_seconds: float = 75.0
    """A connection on which nothing is asked."""
    stalled_seconds: float = 30.0
    """What was written and the other side does not take."""
    connection_seconds: float = 3_600.0
    header_bytes: int = 16_384
    upload_bytes: int = 64 * MEBIBYTE
    connection_bytes: int = 1_024 * MEBIBYTE
    """Received on one connection."""
    requests: int = 100_000
    """On one connection."""
    concurrent: int = 64
    """Requests being answered at once on one connection."""
    backlog_bytes: int = 256 * 1_024
    """Written and not yet taken by the kernel: above it nothing more is read or written."""
    window_bytes: int = 16 * MEBIBYTE
    """Flow control of HTTP/2 and QUIC: so large that it is never what an upload waits for."""
    early_bytes: int = 65_536
    """Early data over TCP of one connection."""
    half_open: int = 64
    """QUIC handshakes under way; beyond it every new address has to show that it is there."""


DEFAULT_LIMITS = Limits()


class Admission:
    """Who is in. `enter` says whether there is room; every True is paid back with `leave`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._per_network: Counter[str | bytes] = Counter()
        self.open = 0

    def enter(self, address: str) -> bool:
        """Count one connection from `address` in, unless that would exceed a bound."""
        network = source_prefix(address)
        if self.open >= self._limits.connections:
            return False
        if self._per_network[network] >= self._limits.connections_per_network:
            return False
        self._per_network[network] += 1
        self.open += 1
        return True

    def leave(self, address: str) -> None:
        """Count one connection from `address` out; networks without any are forgotten."""
        network = source_prefix(address)
        self.open -= 1
        self._per_network[network] -= 1
        if self._per_network[network] <= 0:
            del self._per_network[network]


class Patience:
    """A budget for what costs us and asks for nothing: pings, settings, resets, empty frames.

    Refilled at a steady rate up to `most`; time is monotonic, ns.
    """

    def __init__(self, now_ns: int, most: int = 200, per_second: int = 50) -> None:
        self._most = most
        self._per_second = per_second
        self._left = float(most)
        self._at_ns = now_ns

    def ends_with(self, cost: int, now_ns: int) -> bool:
        """Take `cost`; true when it is used up."""
        gained = (now_ns - self._at_ns) * self._per_second / 1e9
        self._left = min(self._most, self._left + gained) - cost
        self._at_ns = now_ns
        return self._left < 0
