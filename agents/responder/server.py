"""Listens on every address, hands each connection its rules, and takes everything down again."""

import asyncio
import errno
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pathbudget.agents.responder.connections import Echo, Handshake, Held, Shared
from pathbudget.agents.responder.delays import NO_DELAYS, Delays
from pathbudget.agents.responder.limits import DEFAULT_LIMITS, Admission, Limits
from pathbudget.probes.errors import PrivilegeError, ReflectorError

BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a responder listens. Port 0 lets the kernel choose (one choice per address)."""

    addresses: Sequence[str]
    tls_port: int = 8443
    tcp_port: int = 8080
    echo_port: int | None = None
    """None: nothing is echoed."""


@dataclass(slots=True)
class Responder:
    """``async with Responder(listening, context) as responder``: listens until the block ends.

    Raises ReflectorError when an address cannot be listened on, PrivilegeError when the port is
    one that only root may use. Nothing is left listening then.
    """

    listening: Listening
    context: ssl.SSLContext
    limits: Limits = DEFAULT_LIMITS
    delays: Delays = NO_DELAYS
    tls_addresses: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    tcp_addresses: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    echo_addresses: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    _servers: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    _shared: Shared = field(init=False)

    def __post_init__(self) -> None:
        self._shared = Shared(self.limits, Admission(self.limits), self.delays)

    @property
    def counters(self) -> Counter[str]:
        """What happened so far: accepted, full, resumed, turned away, expired ..."""
        return self._shared.counters

    async def __aenter__(self) -> Self:
        try:
            for address in self.listening.addresses:
                self.tls_addresses.append(await self._tls(address))
                self.tcp_addresses.append(await self._tcp(address))
                if self.listening.echo_port is not None:
                    echo = await self._echo(address, self.listening.echo_port)
                    self.echo_addresses.append(echo)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    async def _tls(self, address: str) -> tuple[str, int]:
        return await self._listen(
            address, self.listening.tls_port, lambda: Handshake(self._shared, self.context)
        )

    async def _tcp(self, address: str) -> tuple[str, int]:
        return await self._listen(address, self.listening.tcp_port, lambda: Held(self._shared))

    async def _echo(self, address: str, port: int) -> tuple[str, int]:
        return await self._listen(address, port, lambda: Echo(self._shared))

    async def _listen(
        self, address: str, port: int, protocol: Callable[[], Held]
    ) -> tuple[str, int]:
        loop = asyncio.get_running_loop()
        try:
            bound = _bound_socket(address, port)
            try:
                server = await loop.create_server(protocol, sock=bound, backlog=BACKLOG)
            except BaseException:
                bound.close()
                raise
        except OSError as error:
            raise _explained(error, address, port) from error
        self._servers.append(server)
        name = bound.getsockname()
        return name[0], name[1]

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._shared.open):
            connection.stop()
        await asyncio.sleep(0)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()


def _bound_socket(address: str, port: int) -> socket.socket:
    """A socket bound to one address. (What asyncio raises for this differs between versions.)"""
    numeric = socket.AI_NUMERICHOST | socket.AI_PASSIVE
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=numeric)
    family, kind, protocol, _, where = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(where)
    except BaseException:
        bound.close()
        raise
    return bound


def _explained(error: OSError, address: str, port: int) -> ReflectorError | PrivilegeError:
    """The same error in words that say what to do."""
    if error.errno == errno.EACCES:
        return PrivilegeError("CAP_NET_BIND_SERVICE", f"choose a port above 1023, not {port}")
    why = {
        errno.EADDRINUSE: "another program listens there already",
        errno.EADDRNOTAVAIL: "this machine has no such address",
    }.get(error.errno or 0, error.strerror or str(error))
    return ReflectorError(f"cannot listen on {address} port {port}: {why}")
