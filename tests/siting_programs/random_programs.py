"""Small siting programs of every aim with every constraint, by seed."""

from typing import Any

import numpy as np

from pathbudget.analysis.siting.programs import Aim, Program, Survive


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    rows, sites = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    aim = list(Aim)[rng.integers(3)]
    cost = rng.integers(1, 60, (rows, sites)).astype(float)
    if rng.random() < 0.4:
        cost[rng.random((rows, sites)) < 0.25] = np.inf
    asked: dict[str, Any] = {"cost": cost, "weights": rng.integers(1, 9, rows).astype(float)}
    asked["aim"] = aim
    if rng.random() < 0.8:
        asked["k"] = int(rng.integers(1, sites + 1))
    if aim is Aim.COVERING or rng.random() < 0.2:
        some = rng.integers(5, 50, rows).astype(float)
        asked["limit"] = float(some[0]) if rng.random() < 0.7 else some
    if aim is Aim.P_MEDIAN and rng.random() < 0.3:
        asked["opening"] = rng.integers(0, 60, sites).astype(float)
    _caps(asked, rng, rows, sites)
    _sites(asked, rng, sites)
    _failures(asked, rng, aim)
    if rng.random() < 0.2:
        asked["preference"] = rng.integers(0, 9, (rows, sites)).astype(float)
        asked["preference"][rng.random((rows, sites)) < 0.1] = np.inf
    return Program(**asked)


def _caps(asked: dict[str, Any], rng: np.random.Generator, rows: int, sites: int) -> None:
    for name, chance in (("price", 0.25), ("power", 0.15)):
        if rng.random() < chance:
            asked[f"{name}s"] = rng.integers(1, 9, sites).astype(float)
            asked[f"{name}_cap"] = float(rng.integers(2, 20))
    if rng.random() < 0.3:
        asked["capacities"] = rng.integers(2, 20, sites).astype(float)
        asked["whole"] = bool(rng.random() < 0.5)
        if rng.random() < 0.5:
            asked["demands"] = rng.integers(1, 7, rows).astype(float)


def _sites(asked: dict[str, Any], rng: np.random.Generator, sites: int) -> None:
    if rng.random() < 0.2:
        asked["must_have"] = (int(rng.integers(sites)),)
    if rng.random() < 0.2:
        asked["must_not"] = (int(rng.integers(sites)),)
    if rng.random() < 0.15:
        some = rng.permutation(sites)[: asked.get("k", 1)]
        asked["forbidden"] = (tuple(sorted(int(site) for site in some)),)


def _failures(asked: dict[str, Any], rng: np.random.Generator, aim: Aim) -> None:
    if rng.random() < 0.2:
        asked["backup"] = int(rng.integers(1, 3))
        if rng.random() < 0.5:
            asked["backup_limit"] = float(rng.integers(10, 60))
    if rng.random() < 0.3:
        worst = aim is Aim.P_CENTER or "k" not in asked or rng.random() < 0.5
        asked["survive"] = Survive.WORST if worst else Survive.MEAN
    if rng.random() < 0.3:
        asked["serve_all"] = True
