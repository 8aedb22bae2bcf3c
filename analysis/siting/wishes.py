"""What a user asks of a choice of sites, and the program that says the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.vocabulary import Aim, Program

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Wishes:
    """Constraints of a choice. Names are those of sites."""

    k: int | None = 1
    """None: as many as the other constraints want (maximal covering, price caps)."""
    objective: Aim = Aim.P_MEDIAN
    must_have: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    budget: float | None = None
    """Most that the chosen sites may cost per month."""
    power_cap_kw: float | None = None
    """Most power that the chosen sites may have together."""
    power_kw: float | None = None
    """Power that the whole traffic needs; no site carries more than it has."""
    capacity: bool = False
    """Keep the capacities of the sites."""
    backup: int = 0
    """Further chosen sites that could serve each region (within the allowance, if covering)."""
    backup_within_ms: float | None = None
    serve_all: bool = False
    steering: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Region to site to share, where something else decides which site answers."""

    @property
    def limits_load(self) -> bool:
        """Whether a site may be full."""
        return self.capacity or self.power_kw is not None


def program_of(scene: Scene, wishes: Wishes) -> Program:
    """The program. Raises ValueError for a name or a number that the scene cannot satisfy."""
    places = {site.name: column for column, site in enumerate(scene.sites)}
    prices = _numbers(scene, "price_per_month") if wishes.budget is not None else None
    powers = _numbers(scene, "power_kw") if wishes.power_cap_kw is not None else None
    limited = wishes.objective is Aim.COVERING
    if limited and not np.isfinite(scene.allowances).any():
        raise ValueError("covering needs an allowance: name a tier, or say --allowance MS")
    return Program(
        cost=scene.cost,
        weights=scene.weights,
        aim=wishes.objective,
        k=wishes.k,
        limit=np.where(np.isfinite(scene.allowances), scene.allowances, 1e15) if limited else None,
        prices=prices,
        price_cap=wishes.budget,
        powers=powers,
        power_cap=wishes.power_cap_kw,
        capacities=capacities_of(scene, wishes),
        demands=scene.weights if wishes.limits_load else None,
        must_have=_columns(wishes.must_have, places, scene),
        must_not=_columns(wishes.must_not, places, scene),
        backup=wishes.backup,
        backup_limit=wishes.backup_within_ms,
        preference=preference_of(scene, wishes),
        serve_all=wishes.serve_all,
    )


def capacities_of(scene: Scene, wishes: Wishes) -> Matrix | None:
    """Most of the whole traffic that each site can carry, as a share; None without a limit."""
    if not wishes.limits_load:
        return None
    most = np.full(len(scene.sites), np.inf)
    total = sum(row.demand for row in scene.rows)
    if wishes.capacity:
        known = [site.capacity for site in scene.sites]
        if all(one is None for one in known):
            raise ValueError("no site has a capacity: fill in the column capacity")
        most = np.array([np.inf if one is None else one / total for one in known])
    if wishes.power_kw is not None:
        powers = _numbers(scene, "power_kw")
        most = np.minimum(most, powers / wishes.power_kw)
    return np.where(np.isfinite(most), most, 1e6)


def _numbers(scene: Scene, name: str) -> Matrix:
    values = [getattr(site, name) for site in scene.sites]
    missing = [site.name for site, one in zip(scene.sites, values, strict=True) if one is None]
    if missing:
        what = "price" if name == "price_per_month" else "power"
        more = "" if len(missing) <= 5 else f" and {len(missing) - 5} more"
        names = ", ".join(missing[:5]) + more
        raise ValueError(f"no {what} of {names}: fill in the column {name}")
    return np.array(values, dtype=np.float64)


def _columns(names: tuple[str, ...], places: Mapping[str, int], scene: Scene) -> tuple[int, ...]:
    for name in names:
        if name in scene.left_out:
            raise ValueError(f"{name} was not measured from any region, so it is no candidate")
        if name not in places:
            raise ValueError(f"no site {name}; candidates: {', '.join(places) or 'none'}")
    return tuple(places[name] for name in names)


def preference_of(scene: Scene, wishes: Wishes) -> Matrix | None:
    """Order in which routing sends each row: the largest share first, then the unseen by cost."""
    if not wishes.steering:
        return None
    shares = steering_shares(scene, wishes)
    behind = np.where(np.isfinite(scene.cost), scene.cost, 1e12)
    unseen = 1 + behind / (1 + float(behind.max()))
    return np.where(shares > 0, -shares, unseen)


def steering_shares(scene: Scene, wishes: Wishes) -> Matrix:
    """Share of every row that each candidate answers; rows that the file does not name are 0."""
    shares = np.zeros((len(scene.rows), len(scene.sites)))
    for i, row in enumerate(scene.rows):
        for j, site in enumerate(scene.sites):
            shares[i, j] = wishes.steering.get(row.region.name, {}).get(site.name, 0.0)
    return shares
