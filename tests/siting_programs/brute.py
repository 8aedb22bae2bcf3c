"""Every choice of sites looked at, and every assignment: the oracle of the solvers."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import optimize

from pathbudget.analysis.siting.programs import Aim, Matrix, Program, Survive

Rank = tuple[float, float]
"""Unserved weight and value, smaller is better."""


def given(values: Matrix | None) -> Matrix:
    assert values is not None
    return values


def brute_force(program: Program) -> Rank | None:
    """The best unserved weight and value (covering: minus the covered weight); None if none."""
    ranks = [rank for columns in choices(program) if (rank := rank_of(program, columns))]
    return min(ranks, key=lambda rank: (round(rank[0], 7), rank[1]), default=None)


def choices(program: Program) -> Iterator[tuple[int, ...]]:
    counts = range(1, program.sites + 1) if program.k is None else [program.k]
    for count in counts:
        for columns in itertools.combinations(range(program.sites), count):
            if keeps(program, columns):
                yield columns


def keeps(program: Program, columns: tuple[int, ...]) -> bool:
    if any(site not in columns for site in program.must_have):
        return False
    if any(site in columns for site in program.must_not) or columns in program.forbidden:
        return False
    for values, cap in ((program.prices, program.price_cap), (program.powers, program.power_cap)):
        if cap is not None and sum(given(values)[site] for site in columns) > cap + 1e-9:
            return False
    if program.aim is Aim.COVERING and not program.serve_all:
        return True
    return all(backed(program, row, columns) for row in range(program.rows) if asked(program, row))


def within(program: Program, row: int, site: int) -> bool:
    limit = program.limit
    if isinstance(limit, np.ndarray):
        limit = limit[row]
    cost = program.cost[row, site]
    return math.isfinite(cost) and (limit is None or cost <= limit)


def asked(program: Program, row: int) -> bool:
    return program.serve_all or any(within(program, row, j) for j in range(program.sites))


def backed(program: Program, row: int, columns: tuple[int, ...]) -> bool:
    if not program.backup:
        return True
    if program.backup_limit is None:
        near = [site for site in columns if within(program, row, site)]
    else:
        near = [site for site in columns if program.cost[row, site] <= program.backup_limit]
    return len(near) >= program.backup + 1


def rank_of(program: Program, columns: tuple[int, ...]) -> Rank | None:
    """None where the choice keeps not all that is asked of the assignment."""
    opening = 0.0 if program.opening is None else sum(program.opening[j] for j in columns)
    if program.survive is None:
        found = assigned(program, columns, columns)
        if found is None or (program.serve_all and found[0] > 1e-9):
            return None
        return found[0], found[1] + opening
    whole = assigned(program, columns, columns)
    if whole is None:
        return None
    losses = [
        assigned(program, columns, tuple(j for j in columns if j != lost)) for lost in columns
    ]
    structural = sum(program.weights[i] for i in range(program.rows) if not asked(program, i))
    if any(loss is None for loss in losses):
        return None
    sure = [loss for loss in losses if loss is not None]
    must = program.aim is not Aim.COVERING or program.serve_all
    if must and any(loss[0] > structural + 1e-9 for loss in (*sure, whole)):
        return None
    values = [loss[1] for loss in sure]
    mean = program.survive is Survive.MEAN
    value = sum(values) / len(values) if mean else max(*values, whole[1])
    return (0.0 if program.aim is Aim.COVERING else structural), value + opening


def assigned(program: Program, columns: tuple[int, ...], left: tuple[int, ...]) -> Rank | None:
    """Best assignment of the regions to the sites that are left."""
    if program.capacities is None:
        return total(program, columns, [nearest(program, row, left) for row in range(program.rows)])
    if program.whole or program.preference is not None:
        return by_enumeration(program, columns, left)
    return by_transport(program, columns, left)


def nearest(program: Program, row: int, left: tuple[int, ...]) -> int | None:
    if program.preference is not None:
        wish = program.preference[row]
        reach = [(float(wish[j]), j) for j in left if math.isfinite(wish[j])]
        site = min(reach)[1] if reach else None
        return site if site is not None and within(program, row, site) else None
    usable = [j for j in left if within(program, row, j)]
    return min((float(program.cost[row, j]), j) for j in usable)[1] if usable else None


def total(program: Program, columns: tuple[int, ...], sites: list[int | None]) -> Rank:
    unserved = cost = 0.0
    worst = -math.inf
    for row, site in enumerate(sites):
        weak = program.aim is Aim.COVERING and not backed(program, row, columns)
        if site is None or weak:
            unserved += program.weights[row]
            continue
        cost += program.weights[row] * program.cost[row, site]
        worst = max(worst, program.cost[row, site])
    if program.aim is Aim.COVERING:
        return unserved, unserved - program.weights.sum()
    return unserved, worst if program.aim is Aim.P_CENTER else cost


def by_enumeration(
    program: Program, columns: tuple[int, ...], left: tuple[int, ...]
) -> Rank | None:
    options: list[list[int | None]] = []
    for row in range(program.rows):
        if program.preference is not None:
            options.append([nearest(program, row, left)])
        else:
            options.append([None, *(j for j in left if within(program, row, j))])
    ranks: list[Rank] = []
    for sites in itertools.product(*options):
        load = np.zeros(program.sites)
        for row, site in enumerate(sites):
            if site is not None:
                load[site] += program.demand[row]
        if np.all(load <= given(program.capacities) + 1e-9):
            ranks.append(total(program, columns, list(sites)))
    return min(ranks, key=lambda rank: (round(rank[0], 7), rank[1]), default=None)


def by_transport(program: Program, columns: tuple[int, ...], left: tuple[int, ...]) -> Rank:
    """Split assignment: linear programs for the unserved weight, then for the cost."""
    if program.aim is Aim.P_CENTER:
        radii = sorted(
            {program.cost[i, j] for i in range(program.rows) for j in left if within(program, i, j)}
        )
        least = by_transport(replace(program, aim=Aim.P_MEDIAN, opening=None), columns, left)
        for radius in radii:
            limited = np.where(program.cost <= radius, program.cost, np.inf)
            closer = replace(program, cost=limited, aim=Aim.P_MEDIAN, opening=None)
            found = by_transport(closer, columns, left)
            if found[0] <= least[0] + 1e-7:
                return found[0], radius
        return least[0], -math.inf
    pairs = [
        (i, j)
        for i in range(program.rows)
        for j in left
        if within(program, i, j)
        and (program.aim is not Aim.COVERING or backed(program, i, columns))
    ]
    weights = np.array([program.weights[i] for i, _ in pairs])
    rows = np.zeros((program.rows, len(pairs)))
    loads = np.zeros((program.sites, len(pairs)))
    for number, (i, j) in enumerate(pairs):
        rows[i, number], loads[j, number] = 1.0, program.demand[i]
    if not pairs:
        return total(program, columns, [None] * program.rows)
    matrix, most = (
        np.vstack([rows, loads]),
        np.concatenate([np.ones(program.rows), given(program.capacities)]),
    )
    served = least_of(-weights, matrix, most)
    unserved = float(program.weights.sum()) + served
    if program.aim is Aim.COVERING:
        return unserved, served
    costs = np.array([program.weights[i] * program.cost[i, j] for i, j in pairs])
    matrix = np.vstack([matrix, -weights])
    return unserved, least_of(costs, matrix, np.append(most, served + 1e-9))


def least_of(objective: Matrix, matrix: Matrix, most: Matrix) -> float:
    solved = optimize.linprog(objective, A_ub=matrix, b_ub=most, bounds=(0, 1))
    assert solved.fun is not None
    return float(solved.fun)
