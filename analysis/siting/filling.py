"""Costs of pairs that nobody measured, learned from those that were, with the error they have.

Nothing is filled without an error: each model predicts every known pair from the others (k-fold
cross-validation), the one with the smallest error is taken, and the interval of a filled pair is
made of the very errors of that model at pairs of about its length (after Papadopoulos, split
conformal prediction, 2008, with folds instead of a split).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling_errors import spread_of
from pathbudget.analysis.siting.filling_fibre import fibre_terms, floor_times_inflation, zones
from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.filling_low_rank import low_rank
from pathbudget.analysis.siting.filling_vivaldi import vivaldi, vivaldi_and_zones

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Model = Callable[[Known], Matrix]

FEWEST_PAIRS = 12
"""Known pairs below which nothing can be learned, still less its error."""

FEWEST_ERRORS = 8
"""Known pairs that can be predicted from others, below which there is no interval."""

FEWEST_OF_PLACE = 2
"""Known pairs that a region and a site each need, for their pair to be filled."""

NEED_NO_PLACE = ("light floor x inflation",)
"""Models that learn nothing of a single place, so need no known pair of it."""

PRIOR_SIZE = 1.0
"""Samples that a prediction is worth."""

FOLDS = 5
FOLDS_OF_FEW = 10
FEW_PAIRS = 40
"""Of fewer known pairs than these, fewer are held out at a time: the rest would tell too little."""

WITH_COORDINATES: Mapping[str, Model] = {
    "light floor x inflation": floor_times_inflation,
    "node terms + s x fibre": fibre_terms,
    "inflation by region pair": zones,
}
WITHOUT: Mapping[str, Model] = {
    "Vivaldi 3-D + height": vivaldi,
    "Vivaldi + region pairs": vivaldi_and_zones,
    "low-rank completion": low_rank,
}


@dataclass(frozen=True, slots=True)
class ModelError:
    """How far a model was off at known pairs that it did not see."""

    model: str
    median: float
    """Median of |predicted - true| / true."""
    p90: float
    mean_ms: float


@dataclass(frozen=True, slots=True)
class Filling:
    """Predicted costs of the open pairs (``nan`` elsewhere), each with a 95 % interval.

    `tables` (regions x sites x levels) is what they may be beyond these three numbers.
    """

    model: str
    values: Matrix
    low: Matrix
    high: Matrix
    errors: tuple[ModelError, ...]
    """Of every model that was tried, the best first."""
    not_filled: int
    """Open pairs whose region or site has too few known pairs."""
    residuals: Matrix = field(repr=False)
    """True over predicted, for every known pair, by cross-validation."""
    tables: Matrix = field(repr=False)
    """What each filled pair may be, at the levels of `sampling.PROBABILITIES`."""

    @property
    def error(self) -> ModelError:
        """That of the model that was taken."""
        return self.errors[0]

    @property
    def filled(self) -> Mask:
        """Which pairs got a prediction."""
        return ~np.isnan(self.values)


def fill(
    known: Known,
    models: Sequence[str] | None = None,
    *,
    scarce: Matrix | None = None,
    seed: int = 1,
) -> Filling | str:
    """The open pairs by the best of the models; a sentence where that is not possible.

    Open are the unmeasured pairs, and those with too few samples to stand alone: `scarce` has how
    many (0 elsewhere). Theirs is the mean of the logarithms of own value and prediction, which
    counts as one sample more. `models` names the ones to choose from; all that apply when None.
    Same seed, same answer.
    """
    if known.count < FEWEST_PAIRS:
        noun = "pair is" if known.count == 1 else "pairs are"
        return f"{known.count} {noun} known; at least {FEWEST_PAIRS} are needed to learn from."
    tried = {
        name: (model, residuals_of(known, model, seed, fewest=_fewest(name)))
        for name, model in applicable(known).items()
        if models is None or name in models
    }
    ranked = sorted(tried, key=lambda name: _rank(tried[name][1]))
    best = ranked[0]
    model, residuals = tried[best]
    if (told := _told(residuals)) < FEWEST_ERRORS:
        return (
            f"the error of a model can be told at {told} of {known.count} known pairs; at least "
            f"{FEWEST_ERRORS} are needed."
        )
    sizes = np.zeros(known.costs.shape) if scarce is None else scarce
    open_pairs = np.isnan(known.costs) | (sizes > 0)
    able = open_pairs & _enough(known, _fewest(best))
    own = sizes / (sizes + PRIOR_SIZE)
    predicted = np.where(able, _blended(known, model(known), own), np.nan)
    spread = spread_of(predicted, known, residuals)
    return Filling(
        model=best,
        values=predicted,
        low=spread.low,
        high=spread.high,
        errors=tuple(
            error_of(name, known, tried[name][1])
            for name in ranked
            if not np.isnan(tried[name][1]).all()
        ),
        not_filled=int(np.count_nonzero(open_pairs & ~able)),
        residuals=residuals,
        tables=spread.tables,
    )


def _blended(known: Known, predicted: Matrix, own: Matrix) -> Matrix:
    """Predictions, drawn to what few samples of the pair itself say; `own` is their share."""
    costs = np.where(own > 0, known.costs, 1.0)
    blended: Matrix = np.exp(own * np.log(costs) + (1 - own) * np.log(predicted))
    return blended


def applicable(known: Known) -> dict[str, Model]:
    """Models by name; those of light in fibre only where every place has coordinates."""
    return {**(WITH_COORDINATES if known.has_places else {}), **WITHOUT}


def residuals_of(
    known: Known, model: Model, seed: int = 1, *, fewest: int = FEWEST_OF_PLACE
) -> Matrix:
    """True over predicted cost of every known pair, each predicted without itself; else ``nan``."""
    rows, columns = known.pairs
    folds = FOLDS_OF_FEW if known.count < FEW_PAIRS else FOLDS
    fold = np.random.default_rng(seed).permutation(len(rows)) % folds
    ratio = np.full(known.costs.shape, np.nan)
    for number in range(folds):
        hidden = rows[fold == number], columns[fold == number]
        training = known.without(hidden)
        predicted = model(training)[hidden]
        able = _enough(training, fewest)[hidden]
        rows_able, columns_able = hidden[0][able], hidden[1][able]
        ratio[rows_able, columns_able] = known.costs[rows_able, columns_able] / predicted[able]
    return ratio


def error_of(name: str, known: Known, ratio: Matrix) -> ModelError:
    """The error of a model from its residuals."""
    there = ~np.isnan(ratio)
    true = known.costs[there]
    off = np.abs(true / ratio[there] - true)
    return ModelError(
        model=name,
        median=float(np.median(off / true)),
        p90=float(np.quantile(off / true, 0.9)),
        mean_ms=float(np.mean(off)),
    )


def _told(ratio: Matrix) -> int:
    """Known pairs at which the error of a model can be told."""
    return int(np.count_nonzero(~np.isnan(ratio)))


def _rank(ratio: Matrix) -> tuple[bool, float]:
    """Models whose error can be told go first, then the one that is off least."""
    return _told(ratio) < FEWEST_ERRORS, _badness(ratio)


def _badness(ratio: Matrix) -> float:
    """Mean factor by which a model is off, either way; infinite where it predicted nothing."""
    there = ~np.isnan(ratio)
    return float(np.mean(np.abs(np.log(ratio[there])))) if there.any() else np.inf


def _fewest(name: str) -> int:
    return 0 if name in NEED_NO_PLACE else FEWEST_OF_PLACE


def _enough(known: Known, fewest: int) -> Mask:
    """Pairs whose region and site have that many known pairs each."""
    seen = ~np.isnan(known.costs)
    rows = np.count_nonzero(seen, axis=1) >= fewest
    columns = np.count_nonzero(seen, axis=0) >= fewest
    enough: Mask = rows[:, None] & columns[None, :]
    return enough
