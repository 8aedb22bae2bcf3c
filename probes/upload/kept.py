"""Connections that stay open between shots, for uploads that find one."""

from typing import NamedTuple

from pathbudget.probes.carriers import HttpConnection, Opened
from pathbudget.probes.tls.tickets import Server
from pathbudget.probes.upload.observer import Sending

KEPT_PER_SERVER = 16


class Kept(NamedTuple):
    """An open connection, what is seen of it, and since when it lies idle (monotonic)."""

    connection: HttpConnection
    sending: Sending
    opened: Opened
    since_ns: int


class KeptConnections:
    """At hand for the next shot to the same server, oldest first."""

    def __init__(self) -> None:
        self._held: dict[Server, list[Kept]] = {}

    def keep(self, server: Server, kept: Kept) -> None:
        """Keep one; the one that lay idle longest makes room."""
        held = self._held.setdefault(server, [])
        held.append(kept)
        if len(held) > KEPT_PER_SERVER:
            held.pop(0).connection.close()

    def take_idle(self, server: Server, now_ns: int, idle_ns: int) -> Kept | None:
        """The one that lies idle longest, where that is long enough."""
        held = self._usable(server)
        if held and now_ns - held[0].since_ns >= idle_ns:
            return held.pop(0)
        return None

    def take_latest(self, server: Server) -> Kept | None:
        """The one that was used last."""
        held = self._usable(server)
        return held.pop() if held else None

    def close(self) -> None:
        """End all."""
        for held in self._held.values():
            for kept in held:
                kept.connection.abandon()
        self._held.clear()

    def _usable(self, server: Server) -> list[Kept]:
        """Those that the other side has not ended meanwhile."""
        held = self._held.get(server, [])
        for kept in [one for one in held if not one.connection.usable]:
            held.remove(kept)
            kept.connection.abandon()
        return held
