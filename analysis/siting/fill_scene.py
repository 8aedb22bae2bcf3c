"""Filling the open pairs of a scene, and what is known beforehand of the unmeasured ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling import Filling, fill
from pathbudget.analysis.siting.filling_known import Known, known_of
from pathbudget.analysis.siting.sampling import of_interval
from pathbudget.analysis.siting.scene import Scene, is_open

Matrix = npt.NDArray[np.float64]

USUAL_INFLATION = (1.29, 1.72, 3.4)
"""5 %, median and 95 % of round trips over the light floor between cloud regions (Azure, 2026)."""

LEAST_GUESS_MS = 1.0


def fill_scene(scene: Scene, *, models: tuple[str, ...] | None = None) -> Scene | str:
    """The scene with its open pairs filled; a sentence where they cannot be.

    Every tier is filled by itself. Pairs with samples, but too few for an upper limit, are filled
    too: the model has learned from their samples.
    """
    parts: list[tuple[npt.NDArray[np.intp], Filling]] = []
    for tier in scene.tiers:
        rows = np.array([i for i, row in enumerate(scene.rows) if row.tier == tier])
        known, scarce = known_rows(scene, rows)
        filling = fill(known, models, scarce=scarce)
        if isinstance(filling, str):
            return filling
        parts.append((rows, filling))
    return with_filling(scene, _joined(scene, parts))


def known_rows(scene: Scene, rows: npt.NDArray[np.intp]) -> tuple[Known, Matrix]:
    """What is known of some rows, and the samples of pairs that have too few to stand alone."""
    costs = scene.value[rows]
    costs = np.where(np.isfinite(costs) & (costs > 0), costs, np.nan)
    spots = np.array([_spot(scene.rows[i].region) for i in rows])
    known = known_of(costs, spots, np.array([_spot(site) for site in scene.sites]))
    scarce = is_open(scene)[rows] & ~np.isnan(costs)
    return known, np.where(scarce, scene.sizes[rows], 0.0)


def _spot(place: object) -> tuple[float, float]:
    latitude, longitude = getattr(place, "latitude", None), getattr(place, "longitude", None)
    return (
        math.nan if latitude is None else latitude,
        math.nan if longitude is None else longitude,
    )


def _joined(scene: Scene, parts: list[tuple[npt.NDArray[np.intp], Filling]]) -> Filling:
    """Fillings of several tiers as one; the error that is stated is that of the worst."""
    worst = max((part for _, part in parts), key=lambda part: part.error.median)

    def joined(array_of: Callable[[Filling], Matrix]) -> Matrix:
        one = array_of(worst)
        whole = np.full((len(scene.rows), *one.shape[1:]), np.nan)
        for rows, part in parts:
            whole[rows] = array_of(part)
        return whole

    return replace(
        worst,
        not_filled=sum(part.not_filled for _, part in parts),
        values=joined(lambda part: part.values),
        low=joined(lambda part: part.low),
        high=joined(lambda part: part.high),
        residuals=joined(lambda part: part.residuals),
        tables=joined(lambda part: part.tables),
    )


def with_filling(scene: Scene, filling: Filling) -> Scene:
    """The scene with the filled pairs written in."""
    done = filling.filled
    return replace(
        scene,
        value=np.where(done, filling.values, scene.value),
        low=np.where(done, filling.low, scene.low),
        high=np.where(done, filling.high, scene.high),
        tables=np.where(done[..., None], filling.tables, scene.tables),
        filling=filling,
    )


@dataclass(frozen=True, slots=True)
class Prior:
    """What every pair may be, the unmeasured ones by a guess.

    Only to judge what would be worth measuring: no choice is made on it.
    """

    tables: Matrix
    words: str
    """What the guess is; empty where there is none."""
    unknown: int
    """Pairs without a guess."""


QUICK = ("inflation by region pair", "Vivaldi + region pairs")
"""The models that are best wherever they were compared; trying all of them takes its time."""


def prior_of(scene: Scene) -> Prior:
    """Guesses at the unmeasured pairs of a scene.

    Nothing more is learned where pairs are filled already: guesses would count as measurements.
    """
    unknown = ~np.isfinite(scene.tables[..., 0])
    if scene.filling is not None or not unknown.any():
        return Prior(scene.tables, "", int(np.count_nonzero(unknown)))
    has_places = known_rows(scene, np.arange(len(scene.rows)))[0].has_places
    filled = fill_scene(scene, models=QUICK[:1] if has_places else QUICK[1:])
    if not isinstance(filled, str) and filled.filling is not None:
        tables = np.where(unknown[..., None], filled.tables, scene.tables)
        missing = int(np.count_nonzero(~np.isfinite(tables[..., 0])))
        error = filled.filling.error
        words = f"{error.model} (median error {error.median:.0%} at known pairs)"
        return Prior(tables, words, missing)
    if scene.floors is None or np.isnan(scene.floors).all():
        return Prior(scene.tables, "", int(np.count_nonzero(unknown)))
    low, middle, high = USUAL_INFLATION
    tables = scene.tables.copy()
    for i, j in zip(*np.nonzero(unknown & ~np.isnan(scene.floors)), strict=True):
        floor = max(float(scene.floors[i, j]), LEAST_GUESS_MS)
        tables[i, j] = of_interval(floor * middle, floor * low, floor * high)
    missing = int(np.count_nonzero(unknown & np.isnan(scene.floors)))
    return Prior(tables, f"light floor x {low:g} to {high:g}, as between clouds", missing)
