"""HTTPS of one reflector, opened and closed together.

https = Https(network, clock, HttpsOptions(...), shown)
https.open(addresses)     # inside the event loop
https.counts              # what happened
https.close()
"""

import asyncio
import errno
import gc
import socket
from collections import Counter
from collections.abc import Sequence

from OpenSSL import SSL

from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.agents.reflector.limits import AllowList, RateLimiter
from pathbudget.agents.reflector.options import WILDCARDS, family_of
from pathbudget.agents.reflector.serving.certificates import shown_certificate
from pathbudget.agents.reflector.serving.connection import SecureConnection, Shared
from pathbudget.agents.reflector.serving.http3 import Http3
from pathbudget.agents.reflector.serving.limits import Admission
from pathbudget.agents.reflector.serving.options import HttpsOptions, Tell
from pathbudget.agents.reflector.serving.pacing import Pacer
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.quic_server import QuicServer
from pathbudget.agents.reflector.serving.tcp_socket import Acceptor, listening_socket, reset
from pathbudget.agents.reflector.serving.tls_server import server_context
from pathbudget.agents.reflector.status import HttpsStatus
from pathbudget.probes.channels import Network
from pathbudget.probes.errors import PrivilegeError, ReflectorError
from pathbudget.probes.record import AddressFamily

LOOK_SECONDS = 0.5
"""How often times are looked at that may be up."""
COLLECT_AFTER = 64
"""QUIC connections of aioquic hold themselves; the collector of a reflector comes seldom."""
CERTIFICATE_SECONDS = 30.0
"""How often the files of the certificate are looked at."""


class Https:
    """TLS over TCP and QUIC on every address. After `open` it lives in the event loop.

    Raises ReflectorError where there is no certificate to show.
    """

    def __init__(
        self,
        network: Network,
        clock: StampClock,
        options: HttpsOptions,
        addresses: Sequence[str],
        tell: Tell = lambda _line: None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.shown = shown_certificate(options.certificate, addresses)
        self._network = network
        self._clock = clock
        self._options = options
        self._addresses = tuple(addresses)
        self._tell = tell
        self._admission = Admission(options.limits)
        self._openings = RateLimiter(options.limits.openings)
        self._allowed = AllowList(options.allowed)
        self._context = self._new_context()
        self._state = self.shown.state()
        self._acceptors: list[Acceptor] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._acceptors[0].port

    @property
    def description(self) -> str:
        """For a person: what it listens on, and whom clients trust."""
        told = f"HTTPS {self.port} (TCP and UDP)"
        if self.shown.authority is None:
            return f"{told}."
        if self.shown.folder is not None:
            return f"{told}, certificate of this run: clients trust {self.shown.authority}."
        return f"{told}; clients trust {self.shown.authority}."

    def status(self) -> HttpsStatus:
        """What was counted until now."""
        return HttpsStatus(self._admission.open, self.counts["requests"], dict(self.counts))

    def open(self) -> None:
        """Listen on each. Raises ReflectorError, PrivilegeError; nothing is left open then."""
        self._pacer = Pacer(self._clock)
        pages = Pages(
            self._clock, self._options.limits, self._pacer, self.counts, self._options.tokens
        )
        self._shared = Shared(pages, self._context, self._admission.leave)
        self._quic = QuicServer(
            pages,
            self.shown,
            self._allowed.admits,
            self._refusal,
            self._admission.leave,
            retry=self._options.retry,
        )
        try:
            for address in self._addresses:
                self._listen(address)
        except BaseException:
            self.close()
            raise
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._reap()), loop.create_task(self._watch_files())]

    def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self._shared.open):
            connection.abort("stopped")
        self._quic.close()
        self._pacer.close()

    def reload(self) -> None:
        """Show what the files of the certificate hold now. A fault is told, and nothing changes.

        Tickets over TCP that were given out before are no longer taken: who has one pays a full
        handshake.
        """
        try:
            self._state = self.shown.state()
            self._shared.context = self._new_context()
            self._quic.show(self.shown)
        except (OSError, ReflectorError) as error:
            self.counts["certificate_faults"] += 1
            self._tell(f"the certificate stays as it was: {error}")
        else:
            self.counts["certificate_reloads"] += 1

    def _new_context(self) -> SSL.Context:
        limits = self._options.limits
        return server_context(self.shown.certificate, self.shown.key, limits.early_bytes)

    def _listen(self, address: str) -> None:
        family = family_of(address)
        try:
            listening = listening_socket(address, self._options.port, family)
        except OSError as error:
            missing = error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
            if missing and family is AddressFamily.IPV6 and address in WILDCARDS:
                return
            raise _explained(error, address, self._options.port) from error
        self._acceptors.append(Acceptor(listening, self._take))
        try:
            self._quic.listen(self._network, address, self.port)
        except PrivilegeError as error:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else OSError()
            raise _explained(cause, address, self._options.port) from error

    def _take(self, sock: socket.socket, address: str) -> None:
        refusal = self._refusal(address)
        if refusal:
            self.counts[refusal] += 1
            reset(sock)
            return
        self.counts["connections"] += 1
        SecureConnection(self._shared, sock, address)

    def _refusal(self, address: str) -> str:
        """Why somebody is not let in; who is, counts as in."""
        if not self._allowed.admits(address):
            return "not_allowed"
        if refusal := self._openings.refusal(address, self._clock.monotonic_ns()):
            return refusal
        return "" if self._admission.enter(address) else "over_connections"

    async def _reap(self) -> None:
        """End what has had its time, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._end_what_is_over(self._clock.monotonic_ns())

    def _end_what_is_over(self, now_ns: int) -> None:
        either: list[SecureConnection | Http3] = [*self._shared.open, *self._quic.open]
        for connection in either:
            if word := connection.expired(now_ns):
                connection.abort(word)
        if self._quic.gone >= COLLECT_AFTER:
            self._quic.gone = 0
            gc.collect()

    async def _watch_files(self) -> None:
        """Reload the certificate when a file of it is another, for ever."""
        while True:
            await asyncio.sleep(CERTIFICATE_SECONDS)
            try:
                changed = self.shown.state() != self._state
            except OSError:
                continue  # being written: its new name comes in a moment
            if changed:
                self.reload()


def _explained(error: OSError, address: str, port: int) -> ReflectorError | PrivilegeError:
    """The same error in words that say what to do."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return PrivilegeError("CAP_NET_BIND_SERVICE", f"choose a port above 1023, not {port}")
    why = {
        errno.EADDRINUSE: "another program listens there already",
        errno.EADDRNOTAVAIL: "this machine has no such address",
    }.get(error.errno or 0, error.strerror or str(error))
    return ReflectorError(f"cannot listen on {address} port {port} (HTTPS): {why}")
