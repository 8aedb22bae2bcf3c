"""Small siting programs of every aim with every constraint, as a hypothesis strategy."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pathbudget.analysis.siting.programs import Aim, Matrix, Program, Survive

Draw = st.DrawFn
MOST_REGIONS, MOST_SITES = 5, 6


def once_in(times: int) -> st.SearchStrategy[bool]:
    """True in one of so many; simplest is False."""
    return st.integers(0, times - 1).map(lambda one: one == times - 1)


def numbers(draw: Draw, count: int, low: int, high: int) -> Matrix:
    """So many whole numbers within bounds."""
    return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), float)


@st.composite
def programs(draw: Draw) -> Program:
    rows, sites = draw(st.integers(1, MOST_REGIONS)), draw(st.integers(1, MOST_SITES))
    aim = draw(st.sampled_from(Aim))
    asked: dict[str, Any] = {"aim": aim, "weights": numbers(draw, rows, 1, 8)}
    asked["cost"] = numbers(draw, rows * sites, 1, 59).reshape(rows, sites)
    if draw(once_in(2)):
        asked["cost"][numbers(draw, rows * sites, 0, 3).reshape(rows, sites) == 3] = np.inf
    if not draw(once_in(5)):
        asked["k"] = draw(st.integers(1, sites))
    if aim is Aim.COVERING or draw(once_in(5)):
        some = numbers(draw, rows, 5, 49)
        asked["limit"] = some if draw(once_in(3)) else float(some[0])
    if aim is Aim.P_MEDIAN and draw(once_in(3)):
        asked["opening"] = numbers(draw, sites, 0, 59)
    _caps(draw, asked, rows, sites)
    _sites(draw, asked, sites)
    _failures(draw, asked, aim)
    if draw(once_in(5)):
        asked["preference"] = numbers(draw, rows * sites, 0, 9).reshape(rows, sites)
        asked["preference"][asked["preference"] == 9] = np.inf
    return Program(**asked)


def _caps(draw: Draw, asked: dict[str, Any], rows: int, sites: int) -> None:
    for name, times in (("price", 4), ("power", 6)):
        if draw(once_in(times)):
            asked[f"{name}s"] = numbers(draw, sites, 1, 8)
            asked[f"{name}_cap"] = float(draw(st.integers(2, 19)))
    if draw(once_in(3)):
        asked["capacities"] = numbers(draw, sites, 2, 19)
        asked["whole"] = draw(st.booleans())
        if draw(st.booleans()):
            asked["demands"] = numbers(draw, rows, 1, 6)


def _sites(draw: Draw, asked: dict[str, Any], sites: int) -> None:
    site = st.integers(0, sites - 1)
    for name in ("must_have", "must_not"):
        if draw(once_in(5)):
            asked[name] = (draw(site),)
    if draw(once_in(6)):
        count = min(asked.get("k", 1), sites)
        barred = st.lists(site, unique=True, min_size=count, max_size=count)
        asked["forbidden"] = (tuple(sorted(draw(barred))),)


def _failures(draw: Draw, asked: dict[str, Any], aim: Aim) -> None:
    if draw(once_in(5)):
        asked["backup"] = draw(st.integers(1, 2))
        if draw(st.booleans()):
            asked["backup_limit"] = float(draw(st.integers(10, 59)))
    if draw(once_in(3)):
        worst = aim is Aim.P_CENTER or "k" not in asked or draw(st.booleans())
        asked["survive"] = Survive.WORST if worst else Survive.MEAN
    if draw(once_in(3)):
        asked["serve_all"] = True
