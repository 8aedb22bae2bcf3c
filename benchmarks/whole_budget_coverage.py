"""How often the interval of a convolution holds the truth: seeded, run by hand.

    python -m benchmarks.whole_budget_coverage [REPEATS]

Each case draws the samples of its terms anew, combines them, and looks whether the true quantile of
the sum (from ten million draws) is inside, above or below. docs/whole-budget.md has the table.
"""

import sys
from collections.abc import Callable

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import Distribution
from pathbudget.analysis.whole_budget.combine import Sum

SEED = 7
TRUTH = 10_000_000
Draw = Callable[[np.random.Generator, int], Values]


def gamma(shape: float, scale: float) -> Draw:
    """Waiting times."""
    return lambda random, n: random.gamma(shape, scale, n)


def lognormal(median: float, spread: float) -> Draw:
    """Heavy tails."""
    return lambda random, n: random.lognormal(np.log(median), spread, n)


def bimodal(low: float, high: float, share: float) -> Draw:
    """Two paths, or hits and misses of a cache."""
    return lambda random, n: np.where(
        random.random(n) < share, random.normal(high, high / 20, n), random.normal(low, low / 20, n)
    )


def failing(draw: Draw, share: float) -> Draw:
    """Some requests fail."""
    return lambda random, n: np.where(random.random(n) < share, np.inf, draw(random, n))


CASES: dict[str, list[tuple[Draw, int]]] = {
    "two alike, 300 each": [(gamma(2, 30), 300), (gamma(2, 30), 300)],
    "four, log-normal and gamma, 400 each": [
        (lognormal(110, 0.45), 400),
        (gamma(4, 18), 400),
        (lognormal(30, 0.8), 400),
        (gamma(2, 20), 400),
    ],
    "100 heavy beside 5,000 light": [(lognormal(30, 1.2), 100), (gamma(4, 18), 5000)],
    "100 light beside 5,000 heavy": [(gamma(4, 18), 100), (lognormal(30, 1.2), 5000)],
    "bimodal (8 % slow) and gamma, 200 each": [(bimodal(40, 400, 0.08), 200), (gamma(4, 18), 200)],
    "two with 1 % failing, 500 each": [
        (failing(gamma(2, 30), 0.01), 500),
        (failing(lognormal(30, 0.8), 0.01), 500),
    ],
}


def main(repeats: int) -> None:
    """Print one row per case and percentile."""
    print(f"{repeats} repeats, seed {SEED}, 95 % intervals")
    print(f"{'case':40} {'p':>4} {'holds':>7} {'below':>7} {'above':>7} {'no limit':>9}")
    for name, parts in CASES.items():
        random = np.random.default_rng(SEED)
        every = np.sort(np.sum([draw(random, TRUTH) for draw, _ in parts], axis=0))
        for p in (0.5, 0.95, 0.99):
            truth = float(every[int(np.ceil(p * TRUTH)) - 1]) * 1e6
            print(row(name, parts, p, truth, repeats), flush=True)


def row(name: str, parts: list[tuple[Draw, int]], p: float, truth: float, repeats: int) -> str:
    """Share of the repeats whose interval holds the truth, lies below it, lies above it."""
    random = np.random.default_rng(SEED + 1)
    below = above = open_ended = 0
    for _ in range(repeats):
        terms = [Distribution(np.sort(draw(random, n)) * 1e6, float(n)) for draw, n in parts]
        found = Sum(terms, p=p).estimate(p)
        below += found.high < truth
        above += found.low > truth
        open_ended += bool(np.isinf(found.high))
    held = repeats - below - above
    shares = [100 * count / repeats for count in (held, below, above, open_ended)]
    columns = f"{shares[0]:6.1f}% {shares[1]:6.1f}% {shares[2]:6.1f}% {shares[3]:8.1f}%"
    return f"{name:40} p{100 * p:<3g} {columns}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
