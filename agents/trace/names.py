"""Names of hops by reverse DNS, where the user asked for them: a few at a time, each address once.

Names are what somebody wrote into a zone; they decide nothing. A resolver that hangs holds nothing
up: its threads end with the process.
"""

import queue
import socket
import threading
from collections.abc import Callable

MOST_NAMES = 256
AT_ONCE = 4
LONGEST = 60
LookUp = Callable[[str], str]


def reverse_name(address: str) -> str:
    """What the resolver calls an address; empty where it has no name for it."""
    try:
        name, _ = socket.getnameinfo((address, 0), socket.NI_NAMEREQD)
    except OSError:
        return ""
    return name if name.isprintable() else ""


class HopNames:
    """`names` fills up while it is asked."""

    def __init__(self, look_up: LookUp = reverse_name) -> None:
        self.names: dict[str, str] = {}
        self._look_up = look_up
        self._asked: set[str] = set()
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._threads = 0

    def ask(self, address: str) -> None:
        """Look it up, once, as soon as there is room; beyond `MOST_NAMES` never."""
        if address in self._asked or len(self._asked) >= MOST_NAMES:
            return
        self._asked.add(address)
        self._waiting.put(address)
        if self._threads < AT_ONCE:
            self._threads += 1
            threading.Thread(target=self._work, name="names of hops", daemon=True).start()

    def _work(self) -> None:
        while True:
            address = self._waiting.get()
            name = self._look_up(address)
            if name and name != address:
                self.names[address] = name[:LONGEST]
