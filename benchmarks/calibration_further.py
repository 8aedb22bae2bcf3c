"""How often always-valid intervals ever miss, and intervals of a difference hold it.

python benchmarks/calibration_further.py [CAMPAIGNS]

Looks: a campaign of 2,000 samples is looked at from 100 samples on, every 100. Differences: two
tracks of 2,000 samples (4,320 over three days where a rhythm is in them) whose quantiles differ by
a known amount. Seeded; Markdown on stdout.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from calibration import SEED
from calibration_shapes import (
    START,
    Rng,
    Values,
    autoregressive,
    daily,
    delays,
    normal,
    swinging,
)
from scipy import special

from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.intervals.comparison import Order, compare
from pathbudget.analysis.intervals.sequential import always_valid_mixture
from pathbudget.analysis.mixture import Part
from pathbudget.analysis.quantiles import Estimate
from pathbudget.analysis.track import Track

CAMPAIGNS = 500
LOOKS = range(100, 2001, 100)
QUANTILES = (0.5, 0.95)
APART = 1.05
"""The second of two tracks takes so many times as long."""

Make = Callable[[Rng, int, int], Values]


def track_of(values: Values, gap_s: float = 10.0) -> Track:
    sent: npt.NDArray[np.int64] = START + (np.arange(len(values)) * gap_s * 1e9).astype(np.int64)
    return Track(sent, values, np.zeros(len(values), dtype=np.int64))


def looks(make: Make, p: float, campaigns: int) -> str:
    """Shares of campaigns whose intervals ever missed: always valid, and for one look."""
    rng = np.random.default_rng([SEED, 2])
    truth = 20 * math.exp(0.3 * float(special.ndtri(p)))
    missed = [0, 0]
    for values in make(rng, campaigns, LOOKS[-1]):
        found = [distribution_of(track_of(values[:n])) for n in LOOKS]
        always = [always_valid_mixture([Part(1.0, one)], p) for one in found]
        once = [one.estimate(p, 0.95) for one in found]
        missed[0] += any(misses(one, truth) for one in always)
        missed[1] += any(misses(one, truth) for one in once)
    return " | ".join(f"{number / campaigns:.1%}" for number in missed)


def misses(estimate: Estimate, truth: float) -> bool:
    return not estimate.low <= truth <= estimate.high


def differences(
    make_both: Callable[[Rng, int], tuple[Values, Values]], gap_s: float, p: float, campaigns: int
) -> str:
    """Shares of differences that were held, and that were decided the wrong way or not at all."""
    rng = np.random.default_rng([SEED, 3])
    truths = []
    for _ in range(40):
        first, second = make_both(rng, 200)
        truths.append(np.quantile(second, p) - np.quantile(first, p))
    truth = float(np.mean(truths))
    held = wrong = undecided = 0
    first, second = make_both(rng, campaigns)
    for a, b in zip(first, second, strict=True):
        found = compare(track_of(a, gap_s), track_of(b, gap_s), p)
        assert found is not None
        held += found.low <= truth <= found.high
        wrong += found.order is Order.SECOND_FASTER
        undecided += found.order is Order.UNDECIDED
    return " | ".join(f"{number / campaigns:.1%}" for number in (held, undecided, wrong))


def apart(make: Make, n: int = 2000) -> Callable[[Rng, int], tuple[Values, Values]]:
    """Two tracks that have nothing to do with each other."""
    return lambda rng, campaigns: (make(rng, campaigns, n), APART * make(rng, campaigns, n))


def together(rng: Rng, campaigns: int) -> tuple[Values, Values]:
    """Two tracks with one slow swing, and noise of their own."""
    slow = autoregressive(rng, campaigns, 2000, 0.95)
    first, second = (
        delays(math.sqrt(0.5) * slow + math.sqrt(0.5) * normal(rng, campaigns, 2000))
        for _ in range(2)
    )
    return first, APART * second


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS
    shapes: dict[str, Make] = {
        "independent": lambda r, c, n: delays(normal(r, c, n)),
        "AR(1), 0.6": lambda r, c, n: delays(autoregressive(r, c, n, 0.6)),
    }
    print(f"{campaigns} campaigns each, seed {SEED}\n")
    print("| 20 looks | line | always valid ever missed | 95 % for one look ever missed |")
    print("|---|---|---|---|")
    for name, make in shapes.items():
        for p in QUANTILES:
            print(f"| {name} | p{100 * p:g} | {looks(make, p, campaigns)} |", flush=True)
    print(
        "\n| difference | line | holds | undecided | decided the wrong way |\n|---|---|---|---|---|"
    )
    pairs = {name: (apart(make), 10.0) for name, make in shapes.items()}
    pairs["slow swing of 10 min, each its own"] = apart(swinging, 5000), 10.0
    pairs["one swing in both"] = together, 10.0
    pairs["daily rhythm, 3 days"] = apart(daily(1440), 4320), 60.0
    for name, (make_both, gap_s) in pairs.items():
        for p in QUANTILES:
            print(
                f"| {name} | p{100 * p:g} | {differences(make_both, gap_s, p, campaigns)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
