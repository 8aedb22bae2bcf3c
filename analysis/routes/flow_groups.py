"""Do flows fall into two groups? A test whose false alarms do not depend on how losses come.

The null hypothesis: whatever happened, happened to whoever was sent just then. So within every
block the flows are turned around, as a wheel, by a random number of places: bursts keep their
shape and their neighbours, outages of all flows stay what they are, and only what sticks to a flow
over many blocks comes apart. `two_groups` takes the best split of the flows by what they have
gathered, and asks how often turned data have one as good: one test for all flows and all splits,
so nothing has to be corrected for their number.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from pathbudget.analysis.quantiles import Values

_CELLS_AT_ONCE = 4_000_000
_TAIL = 0.05
"""Share of the turns that the tail is taken from."""
_FIRST_TURNS = 200
_SEEN_ENOUGH = 10
"""With more turns than this beyond the gain, their number says the p-value."""
_SMALLEST_P = 1e-12
_RANK_VARIANCE = 1 / 12
"""Of ranks spread over an interval of length 1."""
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """`upper` of the flows, by place, have more than the others. `turns`: how many turned data.

    p-values below what so many turns can show follow the tail of their gains, taken as
    exponential: that of a likelihood ratio is, and counts have a lighter one.
    """

    upper: tuple[int, ...]
    p_value: float
    turns: int


def two_groups(
    blocks: Values, weights: Values, rng: np.random.Generator, turns: int, *, counts: bool
) -> Split:
    """`blocks`: what each flow gathered in each block; `weights`: out of how many. `counts` says
    that they are counts of rare events (losses), else they are numbers about zero (ranks).
    """
    total, worth = blocks.sum(axis=0), weights.sum(axis=0)
    order = np.argsort(-total / worth, kind="stable")
    gains = split_gains(total[None, order], worth[None, order], counts=counts)[0]
    best = int(np.argmax(gains))
    busy = blocks[np.ptp(blocks, axis=1) > 0]
    at_rest = blocks.sum(axis=0) - busy.sum(axis=0)
    by_chance = np.zeros(0)
    for part in (min(_FIRST_TURNS, turns), max(0, turns - _FIRST_TURNS)):
        for one in _turned(busy, rng, part):
            by_chance = np.append(by_chance, _best_gains(one + at_rest, worth, counts=counts))
        if np.count_nonzero(by_chance >= gains[best] - 1e-9) > _SEEN_ENOUGH:
            break  # nothing that so many turns do by chance will become a finding
    upper = tuple(sorted(int(place) for place in order[: best + 1]))
    return Split(upper, _p_value(float(gains[best]), by_chance), len(by_chance))


def _p_value(gain: float, by_chance: Values) -> float:
    as_good = int(np.count_nonzero(by_chance >= gain - 1e-9))
    plain = (as_good + 1) / (len(by_chance) + 1)
    edge = float(np.quantile(by_chance, 1 - _TAIL))
    beyond = by_chance[by_chance > edge] - edge
    if as_good > _SEEN_ENOUGH or gain <= edge or not len(beyond):
        return plain
    share = len(beyond) / len(by_chance)
    return min(plain, max(share * math.exp(-(gain - edge) / float(beyond.mean())), _SMALLEST_P))


def _best_gains(totals: Values, worth: Values, *, counts: bool) -> Values:
    order = np.argsort(-totals / worth, axis=1, kind="stable")
    ordered = np.take_along_axis(totals, order, axis=1)
    best: Values = split_gains(ordered, worth[order], counts=counts).max(axis=1)
    return best


def _turned(busy: Values, rng: np.random.Generator, turns: int) -> list[Values]:
    """Sums over blocks, of so many turns of all of them."""
    blocks, flows = busy.shape
    if not blocks:
        return [np.zeros((turns, flows))]
    step = max(1, _CELLS_AT_ONCE // (blocks * flows))
    found: list[Values] = []
    for start in range(0, turns, step):
        offsets = rng.integers(0, flows, (min(step, turns - start), blocks, 1))
        places: Places = (np.arange(flows) + offsets) % flows
        found.append(busy[np.arange(blocks)[:, None], places].sum(axis=1))
    return found


def split_gains(ordered: Values, worth: Values, *, counts: bool) -> Values:
    """How much better two groups explain each row than one, for every split.

    Twice the log-likelihood ratio of two Poisson rates, or the squares between two groups of ranks
    over the variance of ranks; less what the best of so many groups of that size is by chance
    (twice the logarithm of their number). Without that the split between flows that lost anything
    at all and those that did not would win everywhere.
    """
    upper, share = np.cumsum(ordered, axis=1)[:, :-1], np.cumsum(worth, axis=1)[:, :-1]
    total, whole = ordered.sum(axis=1, keepdims=True), worth.sum(axis=1, keepdims=True)
    rest, others = total - upper, whole - share
    if counts:
        gains = _poisson(upper, share) + _poisson(rest, others) - _poisson(total, whole)
    else:
        gains = share * others / whole * (upper / share - rest / others) ** 2 / _RANK_VARIANCE
    price: Values = 2 * _log_choices(ordered.shape[1])
    return gains - price


@cache
def _log_choices(flows: int) -> Values:
    """Logarithm of the number of groups of 1, 2 ... out of so many flows."""
    sizes = np.arange(1, flows)
    found: Values = gammaln(flows + 1) - gammaln(sizes + 1) - gammaln(flows - sizes + 1)
    return found


def _poisson(events: Values, worth: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(events > 0, 2 * events * np.log(events / worth), 0.0)
