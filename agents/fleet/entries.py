"""What waits in a spool until somebody vouches for it, and the way it leaves.

daemon -> Spool.append -> Entry -> Uplink.deliver -> Spool.acknowledge
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from pathbudget.probes.errors import PathbudgetError


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One measurement on its way. Delivered at least once; its id makes the second one harmless."""

    number: int
    """Its place in the spool: rises by one, never used again, gaps where something was dropped."""
    id: str
    """`Measurement.id`."""
    samples: int
    """How many it holds, so that what is dropped can be counted without reading it."""
    appended_unix_ns: int
    payload: bytes
    """`codec.encode_line` of the measurement."""


class UplinkError(PathbudgetError):
    """Nothing, or not everything, could be delivered now. What was not stays in the spool."""

    def __init__(self, text: str, *, delivered: Sequence[int] = (), permanent: bool = False):
        super().__init__(text)
        self.delivered = tuple(delivered)
        """Numbers that were acknowledged all the same."""
        self.permanent = permanent
        """No use trying again before something changes: a revoked credential, say."""


class Uplink(Protocol):
    """Takes entries to where they are kept."""

    async def deliver(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Numbers of the entries that are durable at the other end. Raises UplinkError."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...
