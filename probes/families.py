"""Probes that do all their work by address family: the calls that every one of them has."""

import asyncio
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pathbudget.probes.contract import Shot
from pathbudget.probes.record import AddressFamily


class FamilyPart(Protocol):
    """What does the work of one address family."""

    idle: asyncio.Event
    """Set while nothing is under way."""

    def close(self) -> None:
        """As `contract.Probe.close`."""


class BatchFamilyPart(FamilyPart, Protocol):
    """One that takes many shots at once."""

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """As `contract.BatchProbe.fire_all`."""


Part = TypeVar("Part", bound=FamilyPart)
BatchPart = TypeVar("BatchPart", bound=BatchFamilyPart)


class Families(Generic[Part]):
    """One part for each family, and how they end. `_families` is filled by whoever inherits."""

    def __init__(self) -> None:
        self._families: dict[AddressFamily, Part] = {}

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        for family in self._families.values():
            await family.idle.wait()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for family in self._families.values():
            family.close()


class FamiliesProbe(Families[BatchPart]):
    """See `contract.BatchProbe`."""

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._families[shot.family].fire_all((shot,))

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """See `contract.BatchProbe.fire_all`: in their order, as many at once as it allows."""
        if not shots:
            return
        start, family = 0, shots[0].family
        for end, shot in enumerate(shots):
            if shot.family is not family:
                self._families[family].fire_all(shots[start:end])
                start, family = end, shot.family
        self._families[family].fire_all(shots[start:] if start else shots)
