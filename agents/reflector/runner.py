"""The reflector itself: sockets on one side, the sans-IO session code on the other.

    reflector = Reflector(network, options, clock, error_estimate)
    reflector.open()      # inside the event loop
    ...
    reflector.close()

One packet in, at most one packet out, never larger. Packets are received some at a time, but each
reply is made and sent by itself: its timestamp (T3) is read right before, and the kernel's stamp of
when it really left goes into the follow-up extension of the next reply of its session
(`answering.py`).
"""

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from pathbudget.agents.extras import require
from pathbudget.agents.reflector.answering import Answering
from pathbudget.agents.reflector.clock_error import Claiming, ErrorBound, host_error_ns
from pathbudget.agents.reflector.clocks import HostClock, StampClock
from pathbudget.agents.reflector.limits import AllowList, RateLimiter
from pathbudget.agents.reflector.options import SOCKETS, WILDCARDS, Options, family_of
from pathbudget.agents.reflector.status import Status
from pathbudget.probes.channels import DatagramChannel, Network, PacketOptions
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import PathbudgetError, PrivilegeError, ReflectorError
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession

if TYPE_CHECKING:
    from pathbudget.agents.reflector.serving.service import Https

HTTPS_NEEDS = ("aioquic", "cryptography", "h11", "h2", "OpenSSL", "wsproto")
"""The extra `request`; without it STAMP alone is answered."""
TTL = 255
"""RFC 8762 section 4.2: who gets it with less sees how many routers it has passed."""
LOWEST_FREE_PORT = 1024


class Reflector:
    """One reflector on all addresses of its options.

    `clock` shows the time that goes into the packets, `error_estimate` says how wrong it may be;
    a test or a lab gives others than those of this host. After `open` it lives in the event loop.
    """

    def __init__(
        self,
        network: Network,
        options: Options,
        clock: StampClock | None = None,
        error_estimate: ErrorBound = host_error_ns,
        complain: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.options = options
        self.listening: list[str] = []
        """The addresses that are listened on."""
        self._network = network
        self._clock = clock or HostClock(SystemClock())
        self._limiter = RateLimiter(options.rates)
        allowed = AllowList(options.allowed)
        self._session = ReflectorSession(
            _policy(options), self._limiter.refusal, None if allowed.everybody else allowed.admits
        )
        self._claims = Claiming(self._clock.clock, error_estimate, self._session.claim_clock)
        self._channels: list[DatagramChannel] = []
        self._counts: Counter[str] = Counter()
        self._claiming: asyncio.Task[None] | None = None
        self._complain = complain
        self.https: Https | None = None
        """None where it is off, or the extra for it is not installed."""

    @property
    def description(self) -> str:
        """For a person: where it listens, and how."""
        where = ", ".join(self.listening)
        how = "authenticated" if self.options.keys else "open to everybody"
        if self.options.allowed and not self.options.keys:
            how = f"open to {', '.join(map(str, self.options.allowed))}"
        told = f"Listening on {where}: UDP {self.port}, {how}."
        return told if self.https is None else f"{told} {self.https.description}"

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._channels[0].port

    def open(self) -> None:
        """Listen. With no addresses given: on all of this host, in the families that it has.

        Raises:
            ReflectorError: an address cannot be listened on, or they are too many; nothing is left
                open.
            PrivilegeError: the port is one that only root may use.
        """
        if len(self.options.addresses) > SOCKETS:
            told = f"cannot listen on {len(self.options.addresses)} addresses: at most {SOCKETS}"
            raise ReflectorError(told)
        try:
            for address in self.options.addresses or WILDCARDS:
                self._listen(address)
            self._open_https()
        except BaseException:
            self.close()
            raise
        if not self._channels:
            raise ReflectorError("this host has neither IPv4 nor IPv6")
        loop = asyncio.get_running_loop()
        self._claiming = loop.create_task(self._claims.keep())

    def close(self) -> None:
        """Stop answering. What has come and was not read is forgotten."""
        if self._claiming is not None:
            self._claiming.cancel()
        if self.https is not None:
            self.https.close()
        for channel in self._channels:
            channel.close()

    def reload(self) -> None:
        """Read the files of the certificate again."""
        if self.https is not None:
            self.https.reload()

    def status(self, *, final: bool = False) -> Status:
        """What was counted until now."""
        return Status(
            unix_ns=self._clock.unix_ns(),
            received=self._counts["received"],
            reflected=self._session.answered,
            sessions=self._session.sessions,
            refused=dict(self._session.refused),
            errors={word: count for word, count in self._counts.items() if word != "received"},
            https=None if self.https is None else self.https.status(),
            final=final,
        )

    def _open_https(self) -> None:
        """Listen for HTTPS too; where its libraries are missing, say so and go on."""
        if self.options.https is None:
            return
        try:
            require("request", *HTTPS_NEEDS)
        except PathbudgetError as error:
            self._complain(f"HTTPS is off: {error}")
            return
        try:
            from pathbudget.agents.reflector.serving.service import Https
        except ImportError as error:
            self._complain(f"HTTPS is off: {error}")
            return
        self.https = https = Https(
            self._network, self._clock, self.options.https, self.listening, self._complain
        )
        try:
            https.open()
        except BaseException:
            self.https = None
            raise

    def _listen(self, address: str) -> None:
        """Open one socket. One of the wildcards may be missing where nobody asked for it."""
        family = family_of(address)
        answering = Answering(
            self._session,
            self._clock,
            self._claims,
            self._counts,
            len(self._channels),
            wildcard=address in WILDCARDS,
        )
        chosen_by_us = not self.options.addresses
        options = PacketOptions(source=address, ttl=TTL)
        try:
            channel = self._network.open_datagrams(
                family, answering.batch, port=self.options.port, packet=options
            )
        except PrivilegeError as error:
            number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
            if chosen_by_us and family is AddressFamily.IPV6 and number == errno.EADDRNOTAVAIL:
                return
            raise _explained(error, number, address, self.options.port) from error
        if channel is None:
            if not chosen_by_us:
                raise ReflectorError(f"cannot listen on {address}: this kernel has no {family}")
            return
        answering.channel = channel
        self._channels.append(channel)
        self.listening.append(address)


def _policy(options: Options) -> ReflectorPolicy:
    return ReflectorPolicy(
        port=options.port,
        stateful=not options.stateless,
        keys=options.keys,
        max_sessions=options.max_sessions,
        idle_ns=options.idle_ns,
    )


def _explained(
    error: PrivilegeError, number: int | None, address: str, port: int
) -> ReflectorError | PrivilegeError:
    """The same error in words that say what to do."""
    if number in (errno.EACCES, errno.EPERM) and port < LOWEST_FREE_PORT:
        return PrivilegeError("CAP_NET_BIND_SERVICE", f"choose a port above 1023, not {port}")
    why = {
        errno.EADDRINUSE: "another program listens there already",
        errno.EADDRNOTAVAIL: "this machine has no such address",
        errno.EINVAL: "this address needs an interface",
    }.get(number or 0, error.remedy)
    return ReflectorError(f"cannot listen on {address} port {port}: {why}")
