"""How often another choice would have come out, and what the recommended one then costs too much.

A parametric view of the bootstrap (Efron 1979) on whole recommendations: every pair is drawn from
the sampling distribution of its headline value, and the choice made anew. Regret after Savage
(1951).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.decision_results import ChoiceShare, Robustness, SiteShare
from pathbudget.analysis.siting.sampling import draws
from pathbudget.analysis.siting.score import (
    Columns,
    Matrix,
    Score,
    every_choice,
    finite,
    neighbours,
    values_of,
)

RESAMPLES = 200
SEED = 1
MOST_CELLS = 12_000_000
"""Draws x rows x columns of choices that are looked at, all in all: about a tenth of a second."""

SHOWN = 5
TIE = 1e-9
ALL, NEIGHBOURS = "all choices", "neighbouring choices"


@dataclass(frozen=True, slots=True)
class Resampled:
    """Draws of every pair, the choices that were looked at, and what each costs in each draw."""

    drawn: Matrix
    """Draws x rows x columns, finite."""
    choices: tuple[Columns, ...]
    """The recommended one is the first."""
    values: Matrix
    """Draws x choices."""
    method: str

    @property
    def best(self) -> Matrix:
        """What the best choice of each draw costs."""
        least: Matrix = self.values.min(axis=1)
        return least

    @property
    def regret(self) -> Matrix:
        """What the recommended choice costs more, in each draw."""
        return np.maximum(self.values[:, 0] - self.best, 0.0)

    def winners(self) -> list[int]:
        """Index of the best choice per draw; the recommended one wins ties."""
        slack = TIE * np.maximum(1.0, np.abs(self.best))
        tied = self.values <= (self.best + slack)[:, None]
        return [int(index) for index in tied.argmax(axis=1)]


def resample(
    tables: Matrix,
    score: Score,
    recommended: Columns,
    *,
    rivals: Sequence[Columns] = (),
    allowed: Callable[[Columns], bool] = lambda _: True,
    count: int = RESAMPLES,
    seed: int = SEED,
) -> Resampled:
    """Draw all pairs `count` times and see what the choices cost.

    `rivals` are looked at in any case, others where `allowed` says that they keep the constraints.
    With shares fixed by choice (`score.fixed`) only the given ones are.
    """
    drawn = finite(draws(tables, count, seed))
    given = list(dict.fromkeys([recommended, *rivals]))
    most = max(50, MOST_CELLS // max(1, drawn[:, :, 0].size * len(recommended)))
    if score.fixed:
        return Resampled(drawn, tuple(given), values_of(score, drawn, given), NEIGHBOURS)
    every = every_choice(tables.shape[1], len(recommended), most)
    if every is not None:
        pool = list(dict.fromkeys([*given, *filter(allowed, every)]))
        return Resampled(drawn, tuple(pool), values_of(score, drawn, pool), ALL)
    return _around(drawn, score, given, allowed, most)


def _around(
    drawn: Matrix,
    score: Score,
    given: list[Columns],
    allowed: Callable[[Columns], bool],
    most: int,
) -> Resampled:
    """Local search in all draws at once: look around whatever is best in some draw."""
    sites = drawn.shape[2]
    known = {columns: score.of(drawn, columns) for columns in given}
    looked_around: set[Columns] = set()
    while len(known) < most:
        table = np.stack(list(known.values()), axis=1)
        order = Counter(int(index) for index in table.argmin(axis=1)).most_common()
        names = list(known)
        center = next((names[i] for i, _ in order if names[i] not in looked_around), None)
        if center is None:
            break
        looked_around.add(center)
        new = [one for one in neighbours(center, sites) if one not in known and allowed(one)]
        for columns in new[: most - len(known)]:
            known[columns] = score.of(drawn, columns)
    values = np.stack(list(known.values()), axis=1)
    return Resampled(drawn, tuple(known), values, NEIGHBOURS)


def robustness_of(
    resampled: Resampled, names: Callable[[Columns], tuple[str, ...]], *, seed: int = SEED
) -> Robustness:
    """The same in words and shares."""
    winners = resampled.winners()
    count = len(winners)
    frequent = Counter(winners)
    shown = [index for index, _ in frequent.most_common(SHOWN)]
    if 0 not in shown:
        shown = [*shown[: SHOWN - 1], 0]
    regret, best = resampled.regret, resampled.best
    relative = float(np.quantile(regret / best, 0.95)) if (best > 0).all() else None
    return Robustness(
        resamples=count,
        seed=seed,
        choices=tuple(
            ChoiceShare(sites=names(resampled.choices[i]), share=frequent[i] / count) for i in shown
        ),
        sites=_site_shares(resampled, frequent, names),
        share_of_best=frequent[0] / count,
        regret_mean=float(regret.mean()),
        regret_median=float(np.median(regret)),
        regret_p95=float(np.quantile(regret, 0.95)),
        regret_relative_p95=relative,
        method=resampled.method,
        looked_at=len(resampled.choices),
    )


def _site_shares(
    resampled: Resampled,
    frequent: Counter[int],
    names: Callable[[Columns], tuple[str, ...]],
) -> tuple[SiteShare, ...]:
    by_site: Counter[int] = Counter()
    for index, times in frequent.items():
        by_site.update(dict.fromkeys(resampled.choices[index], times))
    whole = sum(frequent.values())
    return tuple(
        SiteShare(site=names((column,))[0], share=times / whole)
        for column, times in by_site.most_common()
    )
