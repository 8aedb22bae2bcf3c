"""How much worse sites are chosen when most of the measurements are missing.

    python benchmarks/siting_regret.py DATA [--trials 10] [--seed 1] [--only azure]

DATA is a folder of latency matrices that others measured (data/rtt_matrix). In every trial some
nodes are candidate sites and the others regions with log-normal weights. 30 % of the pairs are
hidden, and of the samples of the others 99 %. The recommendation (k = 1, 2, 3) is made on what is
left by the product's own code, that of ``sites choose STORE --fill``: lines with intervals and
sampling tables, filled pairs, choice of the least expected cost. Regret is what it costs more, in
the full matrix, than the best choice of the full matrix. Nodes with gaps in the full matrix are
left out, the worst first, until every pair is known.

A matrix that has one number per pair is taken as the medians of campaigns of 10,000 samples, with
an exponential tail of 3 % of the round trip on average, pair by pair different; 100 samples are
left. Of the matrices with a history (IBM: weeks, Seattle: slices) a campaign draws 10,000 times
from the pair's own history, and 100 draws are left; ``-single`` keeps one single value of the
history, which is 1 % of it.
"""

import argparse
import csv
import dataclasses
import gzip
import json
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pathbudget.agents.timed_solver import timed
from pathbudget.analysis.distribution import Distribution
from pathbudget.analysis.mixture import Part
from pathbudget.analysis.results import RegionInfo, SiteInfo
from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.fill_scene import fill_scene, known_rows
from pathbudget.analysis.siting.filling import applicable
from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.sampling import of_parts, without_limit
from pathbudget.analysis.siting.scene import Row, Scene, empty_scene, put
from pathbudget.analysis.siting.wishes import Wishes

Matrix = npt.NDArray[np.float64]
Spots = tuple[tuple[float, float], ...]
Draw = Callable[[int, int, np.random.Generator], Matrix]

HIDDEN_PAIRS = 0.3
LEFT = 100
MOST_REGIONS, MOST_SITES = 80, 16
SIZES = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class World:
    """One full matrix (``nan`` where nobody measured), and how a pair is sampled."""

    name: str
    truth: Matrix
    draw: Draw
    spots: tuple[tuple[float, float], ...] | None = None


def worlds(folder: Path) -> Iterator[World]:
    """Every matrix that is given."""
    truth, clouds = azure(folder)
    yield World("azure", truth, tail_of(truth), clouds)
    yield World("azure, coordinates unknown", truth, tail_of(truth))
    truth = planetlab(folder)
    yield World("planetlab", truth, tail_of(truth))
    weeks, cities = ibm(folder)
    histories: list[tuple[str, Matrix, Spots | None]] = [
        ("seattle", seattle(folder), None),
        ("ibm", weeks, cities),
    ]
    for name, history, spots in histories:
        with np.errstate(all="ignore"):
            middle = np.full(history.shape[1:], np.nan)
            some = ~np.isnan(history).all(axis=0)
            middle[some] = np.nanmedian(history[:, some], axis=0)
        np.fill_diagonal(middle, np.nan)
        yield World(name, middle, history_of(history, LEFT), spots)
        yield World(f"{name}-single", middle, history_of(history, 1), spots)
    truth = aptos(folder)
    yield World("aptos", truth, tail_of(truth))


def tail_of(truth: Matrix) -> Draw:
    """Samples whose median is the given number, with an exponential tail of its own size."""
    scale = truth * 0.03 * np.random.default_rng(7).lognormal(0, 0.5, truth.shape)

    def draw(i: int, j: int, rng: np.random.Generator) -> Matrix:
        tail = scale[i, j] * (rng.exponential(1.0, LEFT) - np.log(2))
        samples: Matrix = np.maximum(truth[i, j] + tail, 0.01)
        return samples

    return draw


def history_of(history: Matrix, left: int) -> Draw:
    """Samples of a pair's own history."""

    def draw(i: int, j: int, rng: np.random.Generator) -> Matrix:
        values = history[:, i, j]
        picked: Matrix = rng.choice(values[~np.isnan(values)], left)
        return picked

    return draw


def azure(folder: Path) -> tuple[Matrix, tuple[tuple[float, float], ...]]:
    """50 regions, one row without a column; coordinates beside them."""
    with (folder / "azure_p50_2026.csv").open(encoding="utf-8") as file:
        (_, *names), *lines = list(csv.reader(file))
    table = {
        line[0]: [float(cell) if cell.strip() else np.nan for cell in line[1:]] for line in lines
    }
    known = [name for name in names if name in table]
    columns = [names.index(name) for name in known]
    places = json.loads((folder / "azure_region_coordinates.json").read_text("utf-8")).values()
    by_name = {place["displayName"]: (place["lat"], place["lon"]) for place in places}
    truth = np.array([np.array(table[name])[columns] for name in known])
    return truth, tuple(by_name[name] for name in known)


def planetlab(folder: Path) -> Matrix:
    """490 nodes, 0 where a pair is missing."""
    with gzip.open(folder / "planetlab_490_slice1.tsv.gz", "rt") as file:
        truth = np.array([[float(cell) for cell in line.split()] for line in file if line.strip()])
    return np.where(truth > 0, truth, np.nan)


def seattle(folder: Path) -> Matrix:
    """Slices x 99 x 99, in seconds."""
    slices: list[Matrix] = []
    with tarfile.open(folder / "seattle_99_slices_a.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            content = archive.extractfile(member)
            if content is not None:
                lines = content.read().decode().strip().split("\n")
                slices.append(np.array([[float(cell) for cell in line.split()] for line in lines]))
    history = np.array(slices) * 1000
    return np.where(history > 0, history, np.nan)


def ibm(folder: Path) -> tuple[Matrix, tuple[tuple[float, float], ...]]:
    """Weeks x 10 x 10 between regions (their zones were renamed, so they are left out), and where
    the regions are.
    """
    weeks: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    with gzip.open(folder / "ibm_cloud_weekly_2023_2026.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "region" and row["avg_ms"]:
                weeks[row["window_end"]][row["src"], row["dst"]] = float(row["avg_ms"])
    names = sorted({name for week in weeks.values() for pair in week for name in pair})
    history = np.array(
        [[[week.get((a, b), np.nan) for b in names] for a in names] for week in weeks.values()]
    )
    known = folder.parent / "sites" / "cloud_regions" / "ibm_regions.json"
    places = json.loads(known.read_text("utf-8")).values()
    spots = {one["location"]: (one["latitude"], one["longitude"]) for one in places}
    return history, tuple(spots[name] for name in names)


def aptos(folder: Path) -> Matrix:
    """6 regions of two clouds."""
    with (folder / "aptos_six_region_link_stats.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["sending_region"] for row in rows})
    truth = np.full((len(names), len(names)), np.nan)
    for row in rows:
        at = names.index(row["sending_region"]), names.index(row["receiving_region"])
        truth[at] = float(row["avgrtt"])
    return truth


@dataclass(slots=True)
class Tally:
    """What the trials of one world gave."""

    regret: list[float]
    blind: list[float]
    """Regret without any filling: measured pairs alone."""
    sampling: list[float]
    """Regret with no pair hidden, by the values of what is left: what noise alone costs."""
    errors: dict[str, list[float]]
    """Median relative error at the hidden pairs, by model; of the chosen one under ``chosen``."""
    inside: list[float]
    """Share of hidden pairs inside their 95 % interval."""
    factors: list[float]
    """Mean factor by which filled pairs are off, either way (a mean of logarithms)."""
    other_way: float
    """That of the other direction of the same pair: what a path is known by, seen from its end."""


def run(world: World, trials: int, seed: int) -> Tally:
    """All trials of one world."""
    rng = np.random.default_rng(seed)
    tally = Tally([], [], [], defaultdict(list), [], [], factor(world.truth.T, world.truth))
    for _ in range(trials):
        trial(world, rng, tally)
    return tally


def trial(world: World, rng: np.random.Generator, tally: Tally) -> None:
    """Hide, fill, choose, compare."""
    order = rng.permutation(complete(world.truth))
    nodes = len(order)
    sites = order[: min(MOST_SITES, nodes // 2 if nodes < 12 else nodes // 3)]
    regions = order[len(sites) :][:MOST_REGIONS]
    truth = world.truth[np.ix_(regions, sites)]
    hidden = rng.random(truth.shape) < HIDDEN_PAIRS
    weights = rng.lognormal(0, 1, len(regions))
    scene = seen(world, (regions, sites), hidden, weights, rng)
    every = seen(world, (regions, sites), np.zeros_like(hidden), weights, rng)
    every = dataclasses.replace(every, high=every.value, low=every.value)
    guessed = fill_scene(scene)
    if not isinstance(guessed, str):
        note_errors(guessed, known_rows(scene, np.arange(len(regions)))[0], truth, tally)
    for k in SIZES:
        best = cost(truth, scene.weights, choice(full(scene, truth), k))
        tally.sampling.append(cost(truth, scene.weights, choice(every, k)) / best - 1)
        unfilled = cost(truth, scene.weights, choice(scene, k)) / best - 1
        tally.blind.append(unfilled)
        if not isinstance(guessed, str):
            unfilled = cost(truth, scene.weights, choice(guessed, k)) / best - 1
        tally.regret.append(unfilled)


def seen(
    world: World,
    nodes: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
    hidden: npt.NDArray[np.bool_],
    weights: Matrix,
    rng: np.random.Generator,
) -> Scene:
    """What is left of the measurements, as lines with intervals; `nodes` are regions and sites."""
    regions, sites = nodes
    rows = tuple(
        Row(
            RegionInfo(
                name=f"r{i}",
                title="",
                weight=float(w),
                vantages=(),
                latitude=place(world, node)[0],
                longitude=place(world, node)[1],
            ),
            "t",
            1.0,
            None,
        )
        for i, (node, w) in enumerate(zip(regions, weights, strict=True))
    )
    candidates = tuple(
        SiteInfo(
            name=f"s{j:03}",
            title="",
            operator="",
            metro="",
            price_per_month=None,
            capacity=None,
            targets=(),
            latitude=place(world, node)[0],
            longitude=place(world, node)[1],
        )
        for j, node in enumerate(sites)
    )
    scene = empty_scene(rows, candidates, 50.0)
    for i, j in zip(*np.nonzero(~hidden), strict=True):
        if not np.isnan(world.truth[regions[i], sites[j]]):
            measured(scene, (int(i), int(j)), world.draw(int(regions[i]), int(sites[j]), rng))
    return scene


def measured(scene: Scene, at: tuple[int, int], samples: Matrix) -> None:
    """Write one pair as a store would give it: the line of its samples and their table."""
    distribution = Distribution(np.sort(samples), float(len(samples)))
    found = distribution.estimate(0.5, 0.95)
    put(scene, at, (found.value, found.low, found.high), found.n)
    table = of_parts([Part(1.0, distribution)], 0.5)
    scene.tables[at] = without_limit(table, unlimited=not np.isfinite(found.high))


def place(world: World, node: int) -> tuple[float, float] | tuple[None, None]:
    """Latitude and longitude of a node."""
    return (None, None) if world.spots is None else world.spots[node]


def full(scene: Scene, truth: Matrix) -> Scene:
    """The scene with everything known exactly."""
    known = empty_scene(scene.rows, scene.sites, 50.0)
    for i, j in zip(*np.nonzero(~np.isnan(truth)), strict=True):
        exact = float(truth[i, j])
        put(known, (int(i), int(j)), (exact, exact, exact), 1)
    return known


def note_errors(guessed: Scene, known: Known, truth: Matrix, tally: Tally) -> None:
    """How far each model is off at the hidden pairs, and how many the intervals hold."""
    filling = guessed.filling
    assert filling is not None
    there = np.isnan(known.costs) & ~np.isnan(truth) & filling.filled
    for name, model in applicable(known).items():
        tally.errors[name].append(median_error(model(known)[there], truth[there]))
    tally.errors["chosen"].append(median_error(filling.values[there], truth[there]))
    held = (truth >= filling.low) & (truth <= filling.high)
    tally.inside.append(float(np.mean(held[there])))
    tally.factors.append(factor(filling.values[there], truth[there]))


def median_error(predicted: Matrix, true: Matrix) -> float:
    """Median of |predicted - true| / true."""
    return float(np.median(np.abs(predicted - true) / true))


def factor(predicted: Matrix, true: Matrix) -> float:
    """Mean factor between two, either way; unknown ones left out."""
    return float(np.exp(np.nanmean(np.abs(np.log(predicted / true)))))


def choice(scene: Scene, k: int) -> tuple[int, ...]:
    """The product's choice."""
    decision = decide(scene, Wishes(k=min(k, len(scene.sites))), robust=False, solver=timed)
    return tuple(int(name[1:]) for name in decision.sites)


def cost(truth: Matrix, weights: Matrix, columns: tuple[int, ...]) -> float:
    """Mean over the regions, each by its nearest site; ``nan`` where nothing was recommended."""
    return float(weights @ truth[:, list(columns)].min(axis=1)) if columns else float("nan")


def complete(truth: Matrix) -> npt.NDArray[np.intp]:
    """Nodes among which every pair is known: those with the most gaps go, one by one."""
    kept = np.arange(len(truth))
    while True:
        missing = np.isnan(truth[np.ix_(kept, kept)]) & ~np.eye(len(kept), dtype=bool)
        gaps = missing.sum(axis=0) + missing.sum(axis=1)
        if not gaps.any():
            return kept
        kept = np.delete(kept, int(gaps.argmax()))


def line(name: str, tally: Tally) -> str:
    """One line of the table."""
    regret = np.array(tally.regret)
    regret = regret[~np.isnan(regret)]
    error = {one: f"{np.median(values):.1%}" for one, values in tally.errors.items()}
    cells = [
        name,
        f"{len(regret)} of {len(tally.regret)}",
        f"{len(tally.inside)} of {len(tally.regret) // len(SIZES)}",
        f"{np.median(regret):.1%}",
        f"{regret.mean():.1%}",
        f"{np.quantile(regret, 0.9):.1%}",
        "none" if np.isnan(tally.blind).all() else f"{np.nanmedian(tally.blind):.1%}",
        f"{np.median(tally.sampling):.1%}",
        error.get("chosen", "-"),
        error.get("Vivaldi 3-D + height", "-"),
        error.get("light floor x inflation", "-"),
        f"{np.mean(tally.inside):.0%}" if tally.inside else "-",
        f"{np.mean(tally.factors):.2f} / {tally.other_way:.2f}" if tally.factors else "-",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    print(
        "| matrix | choices | filled | regret: median | mean | 90 % | unfilled | no pair hidden "
        "| filled pairs off by | Vivaldi | floor | in interval | factor / other way |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    every: list[float] = []
    for world in worlds(asked.data):
        if asked.only in world.name:
            tally = run(world, asked.trials, asked.seed)
            every += tally.regret
            print(line(world.name, tally), flush=True)
    print(
        f"\nall {len(every)} choices: regret median {np.nanmedian(every):.2%}, "
        f"mean {np.nanmean(every):.2%}, 90 % {np.nanquantile(every, 0.9):.2%}; "
        f"none recommended in {np.count_nonzero(np.isnan(every))}"
    )


if __name__ == "__main__":
    main()
