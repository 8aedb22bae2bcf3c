"""Scenes for decisions: small ones written out, and matrices of places on the globe."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from pathbudget.analysis.results import RegionInfo, SiteInfo
from pathbudget.analysis.siting.scene import Row, Scene, empty_scene, put

Matrix = npt.NDArray[np.float64]
Ends = float | tuple[float, float, float] | None
"""Exact; or value, low, high; or not measured."""
Build = Callable[..., Scene]


def site(name: str, **known: float) -> SiteInfo:
    """A site of which only some numbers are known."""
    return SiteInfo(
        name=name,
        title=name,
        operator="",
        metro="",
        latitude=known.get("latitude"),
        longitude=known.get("longitude"),
        price_per_month=known.get("price_per_month"),
        capacity=known.get("capacity"),
        targets=(),
        power_kw=known.get("power_kw"),
    )


def build(
    table: Mapping[str, Mapping[str, Ends]],
    *,
    weights: Mapping[str, float] | None = None,
    sites: Mapping[str, Mapping[str, float]] | None = None,
    allowance: float | None = None,
    tiers: Mapping[str, float] | None = None,
    n: int = 200,
) -> Scene:
    """A scene of regions to sites to costs; with tiers, every one of them costs the same."""
    names = sorted({one for row in table.values() for one in row})
    rows = tuple(
        Row(
            RegionInfo(
                name=region,
                title=region,
                latitude=None,
                longitude=None,
                weight=(weights or {}).get(region, 1.0),
                vantages=(),
            ),
            tier,
            share,
            allowance,
        )
        for tier, share in (tiers or {"t": 1.0}).items()
        for region in table
    )
    infos = tuple(site(name, **(sites or {}).get(name, {})) for name in names)
    scene = empty_scene(rows, infos, 95.0)
    for i, row in enumerate(rows):
        for j, name in enumerate(names):
            ends = table[row.name].get(name)
            if ends is not None:
                three = ends if isinstance(ends, tuple) else (ends, ends, ends)
                put(scene, (i, j), three, n)
    return scene


@pytest.fixture
def scene_of_table() -> Build:
    """Makes scenes."""
    return build


def within_a_twentieth(cost: float) -> Ends:
    """A cost that is known to 5 %."""
    return cost, cost * 0.95, cost * 1.05


@pytest.fixture
def line_of_sites() -> Scene:
    """Five regions and four sites along one line, 10 ms apart; the ends are heavy."""
    table = {
        f"r{i}": {
            f"s{j}": (c := 5.0 + 10 * abs(i - j * 4 / 3), c * 0.95, c * 1.05) for j in range(4)
        }
        for i in range(5)
    }
    facts = {
        f"s{j}": {"price_per_month": 100.0 + 50 * j, "power_kw": 10.0 * (j + 1), "capacity": 4.0}
        for j in range(4)
    }
    return build(
        table,
        weights={"r0": 3.0, "r4": 3.0},
        sites=facts,
        allowance=20.0,
    )


def globe(regions: int, sites: int, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """Costs and places: fibre along great circles, inflated by zone, plus a term of each place."""
    from pathbudget.analysis.siting.filling_known import floors_between

    rng = np.random.default_rng(seed)
    centers = np.array([(40, -100), (50, 10), (25, 110), (-25, 135), (-20, -50)])

    def places(count: int) -> Matrix:
        return centers[rng.integers(0, 5, count)] + rng.normal(0, 6, (count, 2))

    here, there = places(regions), places(sites)
    floors = floors_between(here, there)
    detour = 1.4 + 0.5 * (np.abs(here[:, None, 0] - there[None, :, 0]) > 40)
    terms = rng.gamma(2, 1, regions)[:, None] + rng.gamma(2, 1, sites)
    noise = rng.lognormal(0, 0.03, floors.shape)
    return (floors * detour + terms + 1) * noise, here, there


@pytest.fixture
def measured_globe() -> Callable[[int, int, int], tuple[Matrix, Matrix, Matrix]]:
    """Makes matrices."""
    return globe
