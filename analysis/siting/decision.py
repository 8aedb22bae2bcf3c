"""What a decision about sites says. The JSON of ``pathbudget sites`` is exactly these, encoded."""

import msgspec

from pathbudget.analysis.siting.decision_results import Robustness, SiteFact


class TierShare(msgspec.Struct, frozen=True, kw_only=True):
    """A tier and its share of the traffic."""

    tier: str
    share: float


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Which site serves a region in a tier; `site` is empty where none can."""

    region: str
    tier: str
    weight: float
    """Share of the whole traffic."""
    site: str = ""
    share: float = 0.0
    """Of the region's traffic; under 1 where a full site or routing splits it."""
    cost_ms: float | None = None
    """What the choice was made on."""
    value_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    samples: int = 0
    filled: bool = False
    """The pair was not measured (enough): all four numbers are a model's guess."""
    within: str | None = None
    """``yes``, ``no`` or ``undecided`` for the tier's allowance; ``guess`` for a filled pair."""
    backup: str = ""
    """The next chosen site that could serve it."""
    backup_ms: float | None = None
    backup_filled: bool = False


class SiteLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a chosen site carries."""

    site: str
    share: float
    """Of the whole traffic."""
    load: float
    """In the unit of the weights."""
    capacity: float | None
    power_needed_kw: float | None
    power_kw: float | None
    full: bool
    """The choice had to send traffic elsewhere."""
    over: bool
    """More than its capacity, which the choice was not asked to keep."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Where a region goes while its site is lost."""

    region: str
    tier: str
    weight: float
    site: str
    share: float
    before_ms: float | None
    after_ms: float | None
    filled: bool
    """Whether `after_ms` is a model's guess."""
    before_filled: bool = False


class LossOf(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of the choice while one site is lost."""

    lost_site: str
    value: float | None = None
    """In the unit of the decision's value, over the traffic that is still served."""
    moved: tuple[Moved, ...] = ()
    unserved: tuple[str, ...] = ()
    unserved_share: float = 0.0
    filled_share: float = 0.0
    """Share of the traffic still served whose cost is a model's guess."""


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """What routing that the operator does not control makes of the choice."""

    value_ms: float | None
    """Mean cost where routing sends the traffic."""
    controlled_ms: float | None
    """Mean cost if every region went to its cheapest chosen site."""
    misrouted_share: float
    """Share of the traffic that is answered by another than the cheapest chosen site."""
    unseen: tuple[str, ...]
    """Regions of which routing says nothing for these sites; they are put to the cheapest."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of sites under constraints, or why there is none (`clashes`)."""

    objective: str
    k: int | None
    tiers: tuple[TierShare, ...]
    asked: tuple[str, ...]
    """The constraints, in words."""
    notes: tuple[str, ...] = ()
    """What the numbers rest on: filled pairs and their error, routing, sites left out."""
    clashes: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    value: float | None = None
    unit: str = "ms"
    """``ms`` (mean or largest) or ``share`` (covered share of the traffic)."""
    served_share: float = 0.0
    within_share: float | None = None
    """Covering with backups: share of the traffic within the allowance, with a backup or without.
    What is left when a site is lost is counted so too."""
    filled_share: float = 0.0
    """Share of the served traffic whose cost is a model's guess, and so far the value is one."""
    bound: float | None = None
    """No choice does better."""
    gap: float | None = None
    """Distance of the bound relative to the value; 0 when proved, null when unknown."""
    proved: bool = False
    method: str = ""
    next_best_sites: tuple[str, ...] = ()
    next_best_value: float | None = None
    margin: float | None = None
    """Null where the next best serves other traffic, or there is none."""
    decided: bool | None = None
    """False when another choice may be as good within the intervals; null if not looked at."""
    why_undecided: str = ""
    """What keeps the data from telling."""
    would_change: tuple[str, ...] = ()
    """Pairs on which it hangs, the weightiest first."""
    may_be_better: float = 0.0
    """How much better another choice may be within the intervals, in the unit of the value."""
    price_per_month: float | None = None
    power_kw: float | None = None
    assignments: tuple[Served, ...] = ()
    loads: tuple[SiteLoad, ...] = ()
    failover: tuple[LossOf, ...] = ()
    facts: tuple[SiteFact, ...] = ()
    steering: Steering | None = None
    robustness: Robustness | None = None


class FrontierPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One choice on the way from cheap to quick."""

    k: int
    sites: tuple[str, ...]
    value: float | None
    served_share: float
    price_per_month: float | None
    power_kw: float | None
    proved: bool
    gap: float | None
    efficient: bool
    """No other point is as good in one and better in the other of price and value."""
    filled_share: float = 0.0
    """Share of the served traffic whose cost is a model's guess."""
