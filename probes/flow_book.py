"""Which flows the probes of round trips use, so that a trace can use the same ones.

A probe that is open says how to find out; a trace asks when it begins, for flows change (an ICMP
identifier is given up after many losses). One book per network, since one process may measure from
several. It holds nothing of a probe that has been closed.
"""

import weakref
from collections.abc import Callable
from typing import NamedTuple

from pathbudget.probes.record import AddressFamily


class UsedFlow(NamedTuple):
    """A flow in use: `key` and `port` as of `trace.contract.Flow`."""

    key: int
    port: int


FindFlow = Callable[[str, str, int], UsedFlow | None]
"""By source, address and port of the destination (0 of ICMP); None: nothing is sent there."""
Place = tuple[str, AddressFamily]

_BOOKS: "dict[int, FlowBook]" = {}
"""By identity of the network: not all can be hashed."""


class FlowBook:
    """All probes that said which flows they use."""

    def __init__(self) -> None:
        self._finders: dict[Place, dict[object, FindFlow]] = {}

    @staticmethod
    def of(network: object) -> "FlowBook":
        """The book of a network."""
        book = _BOOKS.get(id(network))
        if book is None:
            book = _BOOKS[id(network)] = FlowBook()
            weakref.finalize(network, _BOOKS.pop, id(network), None)
        return book

    def offer(self, protocol: str, family: AddressFamily, owner: object, find: FindFlow) -> None:
        """A probe is open, and knows its flows."""
        self._finders.setdefault((protocol, family), {})[owner] = find

    def withdraw(self, owner: object) -> None:
        """It is closed."""
        for finders in self._finders.values():
            finders.pop(owner, None)

    def flow(
        self, protocol: str, family: AddressFamily, source: str, address: str, port: int
    ) -> UsedFlow | None:
        """The first flow that some probe uses to an address."""
        for find in self._finders.get((protocol, family), {}).values():
            found = find(source, address, port)
            if found is not None:
                return found
        return None
