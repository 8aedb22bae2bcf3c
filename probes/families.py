"""A probe that does all its work by address family: the four calls that every one of them has."""

import asyncio
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pathbudget.probes.contract import Shot
from pathbudget.probes.record import AddressFamily


class FamilyPart(Protocol):
    """What does the work of one address family."""

    idle: asyncio.Event
    """Set while nothing is under way."""

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """As `contract.BatchProbe.fire_all`."""

    def close(self) -> None:
        """As `contract.Probe.close`."""


Part = TypeVar("Part", bound=FamilyPart)


class FamiliesProbe(Generic[Part]):
    """See `contract.BatchProbe`. `_families` is filled by whoever inherits."""

    def __init__(self) -> None:
        self._families: dict[AddressFamily, Part] = {}

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._families[shot.family].fire_all((shot,))

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """See `contract.BatchProbe.fire_all`: in their order, as many at once as it allows."""
        start = 0
        for end in range(1, len(shots) + 1):
            if end == len(shots) or shots[end].family != shots[start].family:
                self._families[shots[start].family].fire_all(shots[start:end])
                start = end

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        for family in self._families.values():
            await family.idle.wait()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for family in self._families.values():
            family.close()
