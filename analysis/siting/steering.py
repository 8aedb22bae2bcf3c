"""Routing that the operator does not control: anycast, or the DNS of somebody else.

Which site answers a region is given (measured, or told by a file). The choice among sites is then
the simple plant location problem with preference orders: a region goes to the chosen site that
answers it most today, whatever that costs (Hanjoul and Peeters 1987).
"""

import math

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.decision import Steering
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns
from pathbudget.analysis.siting.wishes import Wishes, steering_shares

Matrix = npt.NDArray[np.float64]


def given_shares(scene: Scene, wishes: Wishes, columns: Columns) -> Matrix:
    """Share of every row that each chosen site answers (rows x sites).

    What sites outside the choice answered goes to the chosen ones in proportion to their shares. A
    row of which nothing is known for these sites goes to the cheapest of them. What a site answers
    without an upper limit for it is not served.
    """
    shares: Matrix = np.zeros(scene.value.shape)
    chosen = list(columns)
    shares[:, chosen] = steering_shares(scene, wishes)[:, chosen]
    total = shares.sum(axis=1, keepdims=True)
    np.divide(shares, total, out=shares, where=total > 0)
    for row in np.flatnonzero(total[:, 0] <= 0):
        cost = scene.cost[row, chosen]
        if np.isfinite(cost).any():
            shares[row, chosen[int(cost.argmin())]] = 1.0
    shares[~np.isfinite(scene.cost)] = 0.0
    return shares


def steering_effect(scene: Scene, wishes: Wishes, columns: Columns) -> Steering | None:
    """What routing costs beside full control; None where nothing steers."""
    if not wishes.steering:
        return None
    shares, chosen = given_shares(scene, wishes, columns), list(columns)
    cheapest = scene.cost[:, chosen].min(axis=1)
    paid = np.where(shares > 0, scene.cost, 0.0) * shares
    weights = scene.weights * shares.sum(axis=1)
    missed = (shares * (scene.cost > cheapest[:, None] + 1e-9)).sum(axis=1)
    told = steering_shares(scene, wishes)[:, chosen].sum(axis=1) > 0
    served = float(weights.sum())
    routed = float(scene.weights @ paid.sum(axis=1))
    cheapest = np.where(np.isfinite(cheapest), cheapest, 0.0)
    return Steering(
        value_ms=routed / served if served > 0 and math.isfinite(routed) else None,
        controlled_ms=float(weights @ cheapest) / served if served else None,
        misrouted_share=float(scene.weights @ missed),
        unseen=tuple(scene.row_name(int(row)) for row in np.flatnonzero(~told)),
    )
