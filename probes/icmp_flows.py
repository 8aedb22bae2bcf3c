"""Which identifier a request leaves with: the flows of each address, and when they change.

A raw socket lets every address have identifiers of its own. An unprivileged socket is its
identifier, so there all addresses share those of the sockets, one per flow.
"""

import random
from collections import Counter, deque

from pathbudget.probes.icmp_flight import Flow, canonical
from pathbudget.probes.icmp_wire import reply_checksum

ADDRESSES_REMEMBERED = 65_536
GIVEN_UP_REMEMBERED = 1_024
LARGEST_CHECKSUM = 0xF7FF
"""So that the checksum of the reply is not 0, which some write as 0xFFFF."""


class Flows:
    """The flows of one session, `count` to every address, used in turn."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self.identifiers_are_ours = True
        self.rotated: list[int] = []
        """Flows whose socket has to be replaced, where identifiers are not ours."""
        self._rng = rng
        self._count = count
        self._by_address: dict[str, list[Flow]] = {}
        self._used: Counter[int] = Counter()
        self._given_up: deque[int] = deque()
        self._of_sockets: dict[int, int] = {}

    def of(self, address: str, seq: int) -> Flow:
        """The flow that probe `seq` to an address belongs to."""
        flows = self._by_address.get(address)
        if flows is None:
            flows = self._begin(address)
        return flows[seq % self._count]

    def socket_has(self, index: int, identifier: int | None) -> None:
        """The socket of a flow has this identifier; None where it has none of its own."""
        self.identifiers_are_ours = identifier is None
        if identifier is None:
            return
        self._of_sockets[index] = identifier
        for address, flows in self._by_address.items():
            flows[index] = self._flow(address, index, identifier)

    def may_be_ours(self, identifier: int) -> bool:
        """Whether a packet under this identifier is any concern of ours."""
        return not self.identifiers_are_ours or identifier in self._used

    def is_current(self, flow: Flow) -> bool:
        """Whether packets still leave in this flow."""
        flows = self._by_address.get(flow.asked)
        return flows is not None and flows[flow.index] is flow and flow.index not in self.rotated

    def rotate(self, flow: Flow) -> None:
        """Give a flow a new identifier, or ask for a new socket."""
        if self.identifiers_are_ours:
            flows = self._by_address[flow.asked]
            flows[flow.index] = self._flow(flow.asked, flow.index, None)
            self._give_up(flow.identifier)
        else:
            flow.losses = 0
            self.rotated.append(flow.index)

    def _give_up(self, identifier: int) -> None:
        """Late answers may still come under it, but not for ever: others use identifiers too."""
        self._given_up.append(identifier)
        if len(self._given_up) > GIVEN_UP_REMEMBERED:
            oldest = self._given_up.popleft()
            self._used[oldest] -= 1
            if self._used[oldest] <= 0:
                del self._used[oldest]

    def _begin(self, address: str) -> list[Flow]:
        if len(self._by_address) >= ADDRESSES_REMEMBERED:
            for flow in self._by_address.pop(next(iter(self._by_address))):
                self._give_up(flow.identifier)
        indices = range(self._count)
        flows = [self._flow(address, index, self._of_sockets.get(index)) for index in indices]
        self._by_address[address] = flows
        return flows

    def _flow(self, address: str, index: int, identifier: int | None) -> Flow:
        if identifier is None:
            identifier = self._rng.randrange(1, 0x10000)
            self._used[identifier] += 1
        checksum = self._rng.randrange(1, LARGEST_CHECKSUM)
        label = identifier if self._count > 1 else None
        there = canonical(address)
        return Flow(there, index, identifier, checksum, reply_checksum(checksum), label, address)
