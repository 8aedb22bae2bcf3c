"""How often intervals hold the truth, and verdicts are wrong, over simulated campaigns.

python benchmarks/calibration.py [CAMPAIGNS [SHAPE ...]]
python benchmarks/calibration.py CAMPAIGNS limits      # shapes that are too hard

Every campaign becomes a `PathBudget`, and its headline lines at p50, p95 and p99 are held against
the quantile of the shape's marginal distribution: of all hours, where a shape has a daily rhythm.
The first campaigns of a shape also go the whole way, as measurements through `evaluate`, and must
give the same lines. Odd campaigns have an allowance 0.1 % above the truth, even ones 0.1 % below:
no verdict could be harder. A second set of allowances is 2 to 25 % off the truth, both ways.
"""

import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from calibration_shapes import LIMITS, SHAPES, START, Rng, Shape, Values, delays, normal
from scipy import special

from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.intervals.block_bootstrap import bootstrap_interval
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import interval_ranks
from pathbudget.analysis.results import BudgetLine, Carrier, Mode, Verdict
from pathbudget.analysis.track import Track
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

SEED = 20_260
CAMPAIGNS = 2000
WHOLE_WAY = 3
"""Campaigns per shape that are also read from measurements."""
BOOTSTRAPPED = 200
"""Campaigns per shape whose p95 is bootstrapped, too."""
CHUNK = 250
USUAL = (0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25)
"""Allowances in parts of the truth."""
PERCENTILES = (50.0, 95.0, 99.0)
NS = 1e6

TITLES = (
    *("shape", "n", "line", "holds", "exact", "too high", "too low", "no upper end"),
    *("wrong at the truth", "decided", "of them wrong", "bootstrap"),
)


@dataclass
class Tally:
    """What was seen of one percentile."""

    held: int = 0
    below: int = 0
    above: int = 0
    unbounded: int = 0
    wrong: int = 0
    decided: int = 0
    decided_wrong: int = 0
    n: int = 0
    bootstrapped: int = 0

    def add(self, line: BudgetLine, truth_ms: float) -> None:
        low = math.inf if line.low_ms is None else line.low_ms
        high = math.inf if line.high_ms is None else line.high_ms
        self.n += 1
        self.held += low <= truth_ms <= high
        self.below += truth_ms < low
        self.above += truth_ms > high
        self.unbounded += line.high_ms is None
        self.wrong += is_wrong(line, truth_ms)

    def add_usual(self, line: BudgetLine, truth_ms: float) -> None:
        """A line whose allowance is not as close to the truth as can be."""
        self.decided += line.verdict in (Verdict.PASS, Verdict.FAIL)
        self.decided_wrong += is_wrong(line, truth_ms)


def is_wrong(line: BudgetLine, truth_ms: float) -> bool:
    is_within = truth_ms <= (line.allowance_ms or 0)
    return line.verdict is (Verdict.FAIL if is_within else Verdict.PASS)


def setups_of(rng: Rng, shape: Shape, rows: Values) -> Values | None:
    """Cold set-ups beside every so-manieth round trip."""
    if not shape.cold_every:
        return None
    return 2.1 * delays(normal(rng, len(rows), len(rows[0]) // shape.cold_every))


def truths(shape: Shape) -> dict[float, float]:
    """Marginal quantiles in ms, of ten million samples of their own seed."""
    rng = np.random.default_rng([SEED, zlib.crc32(shape.name.encode()), 1])
    parts: list[Values] = []
    colds: list[Values] = []
    for _ in range(math.ceil(1e7 / shape.n / 100)):
        rows = shape.make(rng, 100, shape.n)
        parts.append(rows.ravel())
        cold = setups_of(rng, shape, rows)
        if cold is not None:
            colds.append((cold + rows[:, :: shape.cold_every]).ravel())
    values = np.concatenate(parts)
    if colds:
        cold_all = np.concatenate(colds)
        whole = np.concatenate(
            [values, np.random.default_rng(1).choice(cold_all, len(values) // 9)]
        )
        values = whole
    values.sort()
    return {
        percentile: math.inf
        if percentile / 100 >= shape.infinite
        else float(values[math.ceil(percentile / 100 * len(values)) - 1])
        for percentile in PERCENTILES
    }


def tiers_for(shape: Shape, found: dict[float, float], factor: float) -> list[Tier]:
    mode = "mixture" if shape.cold_every else "warm"
    return [
        Tier(
            f"p{percentile:g}",
            "",
            1e6,
            {"network": factor * truth if math.isfinite(truth) else 200.0},
            percentile,
            mode,
            800,
            {"warm": 0.9, "cold": 0.1} if shape.cold_every else {"warm": 1.0},
        )
        for percentile, truth in found.items()
    ]


def track_of(shape: Shape, values_ms: Values, every: int = 1) -> Track:
    sent = START + (np.arange(len(values_ms)) * every * shape.gap_s * 1e9).astype(np.int64)
    return Track(sent, np.round(values_ms * NS), np.zeros(len(sent), dtype=np.int64))


def budget_of(shape: Shape, values: Values, cold: Values | None) -> PathBudget:
    setups = {}
    if cold is not None:
        setups = {(Carrier.TLS, Mode.COLD): track_of(shape, cold, shape.cold_every)}
    path = PathSeries("r", "s", "t", "ipv4", track_of(shape, values), "icmp", setups, None)
    return PathBudget(path)


def campaigns(shape: Shape, count: int) -> Iterator[tuple[Values, Values | None]]:
    rng = np.random.default_rng([SEED, zlib.crc32(shape.name.encode()), shape.n])
    for start in range(0, count, CHUNK):
        rows = shape.make(rng, min(CHUNK, count - start), shape.n)
        cold = setups_of(rng, shape, rows)
        for i, row in enumerate(rows):
            yield row, None if cold is None else cold[i]


def measurement_of(shape: Shape, track: Track, metric: str, mode: str | None) -> Measurement:
    lost = Failure(FailureKind.TIMEOUT, Stage.WAIT)
    samples = tuple(
        Sample(
            seq=i,
            metric=metric,
            sent_unix_ns=int(sent),
            value_ns=None if np.isinf(value) else int(value),
            failure=lost if np.isinf(value) else None,
            clock_source=ClockSource.KERNEL,
            mode=mode,
        )
        for i, (sent, value) in enumerate(zip(track.sent_unix_ns, track.values_ns, strict=True))
    )
    return Measurement(
        id=f"{metric}-{shape.name}",
        vantage=Vantage("r-1", "r"),
        target=Target("t", "t.example", site="s"),
        probe="icmp" if metric == Metric.RTT else "tls",
        started_unix_ns=START,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
    )


def whole_way(
    shape: Shape, values: Values, cold: Values | None, tiers: list[Tier]
) -> list[BudgetLine]:
    """The headline lines by `evaluate`, from measurements."""
    measured = [measurement_of(shape, track_of(shape, values), Metric.RTT, None)]
    if cold is not None:
        track = track_of(shape, cold, shape.cold_every)
        measured.append(measurement_of(shape, track, Metric.SETUP, "cold"))
    places = Catalogue(
        {"r": Region("r", 0, 0)}, {"s": Site("s", 1, 1)}, {tier.name: tier for tier in tiers}
    )
    options = EvaluationOptions(percentiles=PERCENTILES, choose=(1,))
    return [line for line in evaluate(measured, places, options).lines if line.headline]


def run(shape: Shape, count: int) -> dict[float, Tally]:
    found = truths(shape)
    tallies = {percentile: Tally() for percentile in PERCENTILES}
    for number, (values, cold) in enumerate(campaigns(shape, count)):
        tiers = tiers_for(shape, found, 1.001 if number % 2 else 0.999)
        budget = budget_of(shape, values, cold)
        lines = [budget.headline(tier) for tier in tiers]
        usual = tiers_for(shape, found, USUAL[number % len(USUAL)])
        if number < WHOLE_WAY:
            check_whole_way(lines, whole_way(shape, values, cold, tiers))
        for line in lines:
            tallies[line.percentile].add(line, found[line.percentile])
        for line in map(budget.headline, usual):
            tallies[line.percentile].add_usual(line, found[line.percentile])
        if number < BOOTSTRAPPED and cold is None:
            low, high = bootstrap_interval(values, 0.95, seed=number)
            tallies[95.0].bootstrapped += low <= found[95.0] <= high
    return tallies


def check_whole_way(lines: list[BudgetLine], others: list[BudgetLine]) -> None:
    shown = [
        [(one.value_ms, one.low_ms, one.high_ms, one.verdict) for one in both]
        for both in (lines, others)
    ]
    if shown[0] != shown[1]:
        raise SystemExit(f"evaluate() and PathBudget disagree: {shown}")


def expected(shape: Shape, percentile: float) -> str:
    """Exact coverage of the order statistics of independent samples."""
    if not shape.independent:
        return ""
    p = percentile / 100
    lower, upper = interval_ranks(shape.n, p)
    least = float(special.bdtr(lower - 1, shape.n, p)) if lower else 0.0
    most = 1.0 if upper is None else float(special.bdtr(upper - 1, shape.n, p))
    if p >= shape.infinite:  # the truth is lost: no low end is above it
        least = 0.0
    return f"{most - least:.1%}" if p < shape.infinite else f"{1 - (1 - most):.1%}"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS
    wanted = sys.argv[2:]
    print(f"{count} campaigns per shape, seed {SEED}\n")
    print(f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}")
    beyond = wanted == ["limits"]
    for shape in LIMITS if beyond else SHAPES:
        if wanted and not beyond and not any(word in shape.name for word in wanted):
            continue
        for percentile, tally in run(shape, count).items():
            row = (
                tally.held,
                tally.below,
                tally.above,
                tally.unbounded,
                tally.wrong,
                tally.decided,
            )
            cells = [f"{number / tally.n:.1%}" for number in row]
            cells.insert(1, expected(shape, percentile))
            cells.append(f"{tally.decided_wrong / max(1, tally.decided):.1%}")
            some = min(BOOTSTRAPPED, tally.n)
            shown = (
                f"{tally.bootstrapped / some:.1%}"
                if percentile == 95 and tally.bootstrapped
                else ""
            )
            print(f"| {shape.name} | {shape.n} | p{percentile:g} | {' | '.join(cells)} | {shown} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
