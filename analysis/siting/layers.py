"""Several tiers as one siting program: each with its own costs and its own share of the traffic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.vocabulary import Matrix


@dataclass(frozen=True, slots=True)
class Layer:
    """One tier: what each region's traffic costs at each site, and how much of it there is."""

    cost: Matrix
    """regions x sites."""
    weights: Matrix
    """Traffic of the tier per region; of all tiers in one unit."""


def mixed(layers: Sequence[Layer]) -> tuple[Matrix, Matrix]:
    """Costs and weights of the mix, where all tiers of a region go to the same site.

    The p-median sum of the mix is that of the tiers. A site that cannot serve one of a region's
    tiers cannot serve the region. Raises ValueError where there is no tier or the shapes differ.
    """
    _check(layers)
    weights = np.sum([layer.weights for layer in layers], axis=0)
    total = np.zeros(layers[0].cost.shape)
    for layer in layers:
        some = layer.weights > 0
        total[some] += layer.weights[some, None] * layer.cost[some]
    return total / np.where(weights > 0, weights, 1.0)[:, None], weights


def stacked(layers: Sequence[Layer]) -> tuple[Matrix, Matrix]:
    """Costs and weights of one row per tier and region: each tier may go to a site of its own.

    Rows of the first tier come first. Raises ValueError as `mixed` does.
    """
    _check(layers)
    cost = np.vstack([layer.cost for layer in layers])
    return cost, np.concatenate([layer.weights for layer in layers])


def _check(layers: Sequence[Layer]) -> None:
    if not layers:
        raise ValueError("there is no tier to choose sites for")
    for layer in layers:
        if layer.cost.shape != layers[0].cost.shape or layer.weights.shape != layer.cost.shape[:1]:
            raise ValueError("the tiers have different regions or sites")
