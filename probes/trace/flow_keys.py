"""Which flows a trace sends, and in which order: the same ones to the same address every time.

So paths can be compared flow by flow from one trace to the next. The first flow is the one that a
probe of round trips uses, where it is known; the others look like chance, because routers that hash
badly would send neighbouring ports the same way.
"""

import functools
import hashlib
import random

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow, TraceProtocol

PORTS = range(33_434, 65_536)
"""Source ports of our own choice: beyond those that hosts give to connections first."""
CHECKSUMS = range(1, 0xF7FF)
"""So that the checksum of the reply is not 0, which some write as 0xFFFF."""
LABELS = 1 << 20
MOST_FLOWS = 1_024


class FlowKeys:
    """The flows to one address. `first` is the key of the first, 0: of our choice."""

    def __init__(
        self,
        protocol: TraceProtocol,
        family: AddressFamily,
        source: str,
        destination: str,
        port: int,
        first: int = 0,
    ) -> None:
        self._common = (protocol, family, source, destination)
        self._port = port
        self._keys = _keys(destination, str(protocol), first)
        self._flows: list[Flow] = []

    def flow(self, index: int) -> Flow:
        """The flow of this number."""
        while len(self._flows) <= index:
            key = self._keys[len(self._flows)]
            self._flows.append(Flow(*self._common, key, self._port, self._label(key)))
        return self._flows[index]

    def _label(self, key: int) -> int:
        """One per flow, as hosts do (RFC 6437 section 3)."""
        if self._common[1] is AddressFamily.IPV4:
            return 0
        return (key * 0x9E3779B1 >> 7) % (LABELS - 1) + 1


@functools.lru_cache(maxsize=4_096)
def _keys(destination: str, protocol: str, first: int) -> tuple[int, ...]:
    """All keys that a trace can come to use, each once."""
    seed = hashlib.blake2b(f"{destination}/{protocol}".encode()).digest()
    chance = random.Random(seed)
    choice = CHECKSUMS if protocol == TraceProtocol.ICMP else PORTS
    keys = chance.sample(choice, MOST_FLOWS)
    if first:
        keys = [first, *(key for key in keys if key != first)][:MOST_FLOWS]
    return tuple(keys)
