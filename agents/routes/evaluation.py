"""From a store to a `RouteReport`: the glue between `agents` and `analysis.routes`.

Nothing of `analysis` is imported until it is used, so that an agent without numpy starts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pathbudget.agents.extras import require
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins

if TYPE_CHECKING:
    from pathbudget.agents.bgp.plans import BgpPlan
    from pathbudget.agents.store.reading import Selection
    from pathbudget.agents.store.update_files import UpdateSelection
    from pathbudget.analysis.routes.evaluate import RouteOptions
    from pathbudget.analysis.routes.level_shifts import ShiftOptions
    from pathbudget.analysis.routes.route_report import RouteReport

TRACE = "trace"


class RouteStore(Protocol):
    """What is needed of a store."""

    def select(self, selection: "Selection") -> Iterable[Measurement]:
        """Measurements, in the order of their ids."""
        ...

    def updates(self, selection: "UpdateSelection") -> Iterable[RouteUpdate]:
        """BGP updates in the order of time."""
        ...


@dataclass(frozen=True, slots=True)
class RouteWish:
    """What is asked of a store. `series` are words of which one must be in the name of a series
    (docs/routes.md); empty is all of them.
    """

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    campaign: str | None = None
    series: tuple[str, ...] = ()
    updates: bool = True
    tiers: tuple[str, ...] | None = None
    time_scale: float = 1.0
    """Times by which things belong together are multiplied by it; for labs that compress time."""
    feeds: "BgpPlan | None" = None
    """What is expected of BGP feeds, and RPKI."""
    granularity: str = "address"
    """What a hop is: ``address``, ``router`` or ``as``."""
    aliases: Path | None = None
    """Which addresses are one router."""

    def wants(self, measurement: Measurement) -> bool:
        """Whether its series was asked for."""
        name = series_text(measurement).casefold()
        return not self.series or any(one.casefold() in name for one in self.series)


def series_text(measurement: Measurement) -> str:
    """All that a series can be found by: ``tokyo-1 tokyo > frankfurt icmp-target 192.0.2.1``."""
    vantage, target = measurement.vantage, measurement.target
    return f"{vantage.name} {vantage.region} > {target.site} {target.name} {measurement.address}"


def routes_of_store(
    store: RouteStore, wish: RouteWish, catalogue: Catalogue, origins: Origins | None = None
) -> "RouteReport":
    """Evaluate what a store says of routes.

    Raises PathbudgetError that names the extra to install where numpy or scipy is missing.
    """
    require("analysis", "numpy", "scipy")
    from pathbudget.analysis.routes.evaluate import evaluate_routes
    from pathbudget.analysis.routes.level_shifts import BATCH

    return evaluate_routes(
        measurements_of(store, wish),
        updates_of(store, wish),
        catalogue=catalogue,
        tiers=wish.tiers,
        origins=origins,
        options=options_of(wish, BATCH),
    )


def options_of(wish: RouteWish, shifts: "ShiftOptions") -> "RouteOptions":
    """How to judge. Raises ConfigError for a file of RPKI or aliases that cannot be read."""
    from pathbudget.analysis.routes.evaluate import RouteOptions
    from pathbudget.analysis.routes.incidents import JoinOptions
    from pathbudget.analysis.routes.model import Granularity
    from pathbudget.sites.aliases import read_aliases
    from pathbudget.sites.rpki import load_vrps

    usual, scale, plan = RouteOptions(), wish.time_scale, wish.feeds
    settle_ns = plan.settle_ns if plan else usual.settle_ns
    return RouteOptions(
        join=JoinOptions().scaled(scale),
        shifts=shifts,
        granularity=Granularity(wish.granularity),
        routers=read_aliases(wish.aliases) if wish.aliases else {},
        flap_ns=round(usual.flap_ns * scale),
        settle_ns=round(settle_ns * scale),
        feeds={one.name: one.rules for one in plan.feeds} if plan else {},
        vrps=load_vrps(plan.vrps) if plan and plan.vrps else None,
    )


def measurements_of(store: RouteStore, wish: RouteWish) -> Iterator[Measurement]:
    """Those that were asked for, one at a time in memory."""
    from pathbudget.agents.store.reading import Selection

    selection = Selection(
        campaign=wish.campaign,
        since_unix_ns=wish.since_unix_ns,
        until_unix_ns=wish.until_unix_ns,
    )
    return (one for one in store.select(selection) if wish.wants(one))


def updates_of(
    store: RouteStore, wish: RouteWish, since_unix_ns: int | None = None
) -> Iterable[RouteUpdate]:
    """BGP updates up to the end of the same time; none where they were not asked for.

    Those before the wish's `since` are read too, unless `since_unix_ns` says otherwise: what was
    announced then may still hold.
    """
    if not wish.updates:
        return ()
    from pathbudget.agents.store.update_files import UpdateSelection

    return store.updates(UpdateSelection(since_unix_ns, wish.until_unix_ns))
