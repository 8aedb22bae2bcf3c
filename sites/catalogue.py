"""The nouns of the place layer: who the users are, where a machine could stand, what a tier allows.

    Region   where users are            Site   a candidate facility
    Tier     a class of service with its latency budget

`catalogue_file.py` reads them from TOML and CSV; these types hold nothing that is not valid.
"""

from dataclasses import dataclass, field

from pathbudget.probes.record import Target


@dataclass(frozen=True, slots=True)
class Region:
    """Where users are. `weight` is the share of traffic (any positive unit)."""

    name: str
    latitude: float
    longitude: float
    weight: float = 1.0
    title: str = ""
    country: str = ""
    """ISO 3166 alpha-2."""
    source: str = ""
    date: str = ""
    """ISO date on which the source said so."""


@dataclass(frozen=True, slots=True)
class Site:
    """A candidate facility. `capacity` and weights of regions are in the same unit."""

    name: str
    latitude: float
    longitude: float
    title: str = ""
    operator: str = ""
    metro: str = ""
    country: str = ""
    price_per_month: float | None = None
    capacity: float | None = None
    targets: tuple[Target, ...] = ()
    source: str = ""
    date: str = ""
    prefixes: tuple[str, ...] = ()
    """What BGP announces for it, where stated; else its targets' addresses stand for that."""
    power_kw: float | None = None
    """Power that can be had there."""
    exchanges: tuple[str, ...] = ()
    """Internet exchanges that can be reached at the facility."""
    networks: tuple[int, ...] = ()
    """AS numbers of networks present at the facility, of those that matter to the user."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A class of service: what the whole request may take and what the network may take of it.

    `components` holds the allowances in ms in the order of the budget; ``network`` is among them.
    The headline line of a tier is the one of its `mode` over its `transport` at its `percentile`,
    for a request that uploads `prompt_bytes`; `further_prompt_bytes` get lines beside it.
    `mixture` gives the share of traffic per connection mode (sums to 1), as it was written:
    `tiers.shares` says over which transport.
    """

    name: str
    title: str
    target_ms: float
    components: dict[str, float] = field(hash=False)
    percentile: float
    mode: str
    prompt_bytes: int
    mixture: dict[str, float] = field(hash=False)
    source: str = ""
    date: str = ""
    transport: str = "tls"
    further_prompt_bytes: tuple[int, ...] = ()

    @property
    def prompt_sizes(self) -> tuple[int, ...]:
        """Bytes of every prompt that has lines; that of the headline comes first."""
        return (self.prompt_bytes, *self.further_prompt_bytes)

    @property
    def network_allowance_ms(self) -> float:
        """Allowance of network ingress and egress together."""
        return self.components["network"]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Regions, sites and tiers by name, in the order of the files."""

    regions: dict[str, Region] = field(default_factory=dict[str, Region])
    sites: dict[str, Site] = field(default_factory=dict[str, Site])
    tiers: dict[str, Tier] = field(default_factory=dict[str, Tier])
