"""What goes around the samples of a result: vantage, target, campaign, clock.

Each is made once and shared by all measurements that need it, which is most of the speed.
"""

import zlib
from collections.abc import Callable
from typing import Generic, TypeVar

from pathbudget.agents.importers.atlas_wire import (
    SECOND,
    Result,
    address_of,
    family_of,
    name_of,
)
from pathbudget.agents.importers.probe_places import ProbePlaces
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    Measurement,
    Sample,
    SyncState,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue

K = TypeVar("K")
V = TypeVar("V")

SYNCHRONISED_FOR = 3600
"""Seconds since a probe last compared its clock with a controller, up to which it counts as
synchronised: at the 50 ppm of a cheap crystal it is then within 0.2 s, and results are stamped in
whole seconds."""

_MOST_KEPT = 65_536


class Memory(dict[K, V], Generic[K, V]):
    """Makes what is not there yet. Forgets everything when it gets large, so memory stays flat."""

    def __init__(self, make: Callable[[K], V]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> V:
        if len(self) >= _MOST_KEPT:
            self.clear()
        value = self[key] = self._make(key)
        return value


class Labels:
    """Shared parts of the measurements of one file."""

    def __init__(self, file: str, places: ProbePlaces, catalogue: Catalogue | None) -> None:
        self.file = file
        self._places = places
        self._known = targets_by_host(catalogue)
        self.vantage = {family: Memory(self._vantages(family)) for family in (*AddressFamily, None)}
        self.source = Memory(self._sources)
        self.target: Memory[tuple[str, str, int | None], Target] = Memory(self._target)
        self.campaign: Memory[int, str] = Memory("ripe-atlas-{}".format)
        self.software: Memory[int, str] = Memory("ripe-atlas firmware {}".format)
        self.schedule: Memory[int | None, str] = Memory(_schedule)
        self.clock: Memory[int | None, ClockQuality] = Memory(clock_quality)

    @property
    def unplaced(self) -> int:
        """How many probes could not be given a region by the rule."""
        return len(self._places.unplaced)

    def _vantages(self, family: AddressFamily | None) -> Callable[[int], Vantage]:
        return lambda probe: self._places.vantage(probe, family)

    def _sources(self, key: tuple[str, AddressFamily | None]) -> Memory[int, tuple[Vantage, str]]:
        """By probe: its vantage, and what the ids of its measurements in a campaign begin with."""
        campaign, family = key
        vantages = self.vantage[family]
        return Memory(lambda probe: (vantages[probe], f"{campaign}-{probe}-"))

    def _target(self, key: tuple[str, str, int | None]) -> Target:
        name, address, port = key
        known = self._known.get(name.casefold()) or self._known.get(address)
        if known is not None:
            return Target(name=known.name, host=name, site=known.site, port=port)
        return Target(name=name, host=name, site=name, port=port)

    def measurement(
        self,
        result: Result,
        probe: str,
        samples: tuple[Sample, ...],
        *,
        port: int | None = None,
        duration_ns: int = 0,
        counters: dict[str, int] | None = None,
        options: dict[str, str | int | float | bool | None] | None = None,
    ) -> Measurement:
        """The envelope of `samples`."""
        family, address = family_of(result), address_of(result)
        campaign = self.campaign[result.msm_id]
        digest = _digest(probe, address, samples)
        return Measurement(
            id=f"{campaign}-{result.prb_id}-{result.timestamp}-{digest}",
            vantage=self.vantage[family][result.prb_id],
            target=self.target[name_of(result), address, port],
            probe=probe,
            started_unix_ns=result.timestamp * SECOND,
            samples=samples,
            campaign=campaign,
            address=address,
            family=family,
            duration_ns=duration_ns,
            options=options or {},
            schedule=self.schedule[result.step],
            imported_from=self.file,
            software=self.software[result.fw],
            clock=self.clock[result.lts],
            counters=counters or {},
        )


def _digest(probe: str, address: str, samples: tuple[Sample, ...]) -> str:
    """Tells apart two results of one probe in one second, the same in every file and run."""
    words = [probe, address]
    words += [
        str(sample.value_ns)
        if sample.failure is None
        else f"{sample.failure.kind} {sample.failure.detail}"
        for sample in samples
    ]
    return f"{zlib.crc32('|'.join(words).encode(errors='replace')):08x}"


def clock_quality(seconds_since_sync: int | None) -> ClockQuality:
    """What ``lts`` says of the probe's clock; -1 is "does not know". There is no error bound."""
    if seconds_since_sync is None:
        return ClockQuality()
    if seconds_since_sync < 0:
        state = SyncState.UNKNOWN
    elif seconds_since_sync <= SYNCHRONISED_FOR:
        state = SyncState.SYNCHRONISED
    else:
        state = SyncState.UNSYNCHRONISED
    return ClockQuality(sync_state=state, source="ripe-atlas")


def _schedule(step: int | None) -> str:
    return f"ripe-atlas every {step}s" if step is not None and step > 0 else ""


def targets_by_host(catalogue: Catalogue | None) -> dict[str, Target]:
    """Targets of the catalogue by host, each with the name of its site."""
    if catalogue is None:
        return {}
    return {
        target.host.casefold(): Target(name=target.name, host=target.host, site=site.name)
        for site in catalogue.sites.values()
        for target in site.targets
    }
