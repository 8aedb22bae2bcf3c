"""How often the gate calls a line slower that is not, and how often it sees one that is.

Two runs of one simulated path, a baseline and a check, are compared as the gate does; true
quantiles are known. ``python benchmarks/gate_regressions.py`` (a minute; seeded).
"""

import argparse
import math
from collections.abc import Callable

import numpy as np

from pathbudget.analysis.gate.checks import Numbers
from pathbudget.analysis.gate.difference import stretch_for
from pathbudget.analysis.gate.regression import compare
from pathbudget.analysis.quantiles import Values, estimate_quantile, independent_size
from pathbudget.analysis.results import Verdict

Generator = np.random.Generator
Path = Callable[[Generator, int], Values]
CONFIDENCE = 0.95


def independent(rng: Generator, n: int) -> Values:
    """A floor and a queue without memory."""
    return 20 + rng.gamma(2.0, 1.0, n)


def heavy_tailed(rng: Generator, n: int) -> Values:
    """A floor and a tail as long as a Pareto distribution of index 2.5."""
    return 20 + rng.pareto(2.5, n)


def correlated(rng: Generator, n: int) -> Values:
    """Neighbours in time resemble each other: AR(1) of 0.7, as a queue that drains slowly."""
    steps = rng.normal(0, 1, n + 50)
    level = np.empty(n + 50)
    level[0] = steps[0]
    for at in range(1, n + 50):
        level[at] = 0.7 * level[at - 1] + math.sqrt(1 - 0.49) * steps[at]
    return 20 + np.exp(0.5 * level[50:])


def lossy(rng: Generator, n: int) -> Values:
    """One in a hundred is lost."""
    values = independent(rng, n)
    values[rng.random(n) < 0.01] = math.inf
    return values


PATHS: dict[str, Path] = {
    "independent": independent,
    "heavy-tailed": heavy_tailed,
    "AR(1) 0.7": correlated,
    "1 % loss": lossy,
}


def measured(values: Values, p: float) -> Numbers:
    """What a line says of them."""
    one = estimate_quantile(
        np.sort(values), p, n_effective=independent_size(values), confidence=CONFIDENCE
    )
    value, low, high = (None if math.isinf(x) else x for x in (one.value, one.low, one.high))
    return Numbers(value_ms=value, low_ms=low, high_ms=high, n=one.n, n_effective=one.n_effective)


def share_slower(
    path: Path, p: float, n: int, times: int, *, slower: float, lines: int, seed: int
) -> float:
    """Share of runs in which the gate calls at least one of `lines` slower; each really is by
    `slower` ms.
    """
    rng = np.random.default_rng(seed)
    stretch = stretch_for(lines, CONFIDENCE)
    hits = 0
    for _ in range(times):
        hits += any(
            compare(
                measured(path(rng, n), p), measured(path(rng, n) + slower, p), 0.0, stretch
            ).verdict
            is Verdict.FAIL
            for _ in range(lines)
        )
    return hits / times


def main() -> None:
    """Print the tables of docs/gate.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    print("| path | n | line | slower by 0 | slower by 0, any of 20 | slower by 2 ms |")
    print("|---|---|---|---|---|---|")
    for name, path in PATHS.items():
        for p, n in ((0.5, 400), (0.95, 400), (0.95, 2000)):
            shares = (
                share_slower(path, p, n, times, slower=slower, lines=lines, seed=asked.seed)
                for times, slower, lines in (
                    (asked.times, 0.0, 1),
                    (asked.times // 10, 0.0, 20),
                    (asked.times // 4, 2.0, 1),
                )
            )
            cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
            print(f"| {name} | {n} | p{100 * p:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
