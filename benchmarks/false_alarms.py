"""How often a calm series is said to have shifted: by kind of noise, and beside a naive rule.

    .venv/bin/python benchmarks/false_alarms.py [--samples 60000] [--seed 1] [--labelled DIR]

Also how soon and how surely a true step is found. With the folder of labelled series, precision and
recall on them. Everything is drawn by seed. Figures: docs/accuracy.md.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.route_changes import labelled
from tests.route_changes.conftest import MS, SERIES, Times, Values
from tests.route_changes.noises import NOISES

from pathbudget.analysis.routes.level_shifts import LevelWatch, level_shifts
from pathbudget.analysis.routes.model import LevelShift

LENGTH = 6000
TOLERANCE = 5


def watched(times: Times, values: Values) -> list[LevelShift]:
    watch = LevelWatch(SERIES)
    return watch.see_all(times.tolist(), values.tolist()) + watch.finish()


def calm(samples: int, seed: int) -> None:
    print("False shifts per 1,000 samples (steps; gradual ones apart)\n")
    print(f"{'noise':32}{'batch':>8}{'gradual':>9}{'watch':>8}{'gradual':>9}{'naive':>8}{'us':>6}")
    for name, make in NOISES.items():
        rng = np.random.default_rng(seed)
        counts, spent, total = np.zeros(5), 0.0, 0
        while total < samples:
            values = make(rng, LENGTH) * MS
            times = np.cumsum(rng.exponential(1e9, LENGTH)).astype(np.int64)
            began = time.process_time()
            batch = level_shifts(SERIES, "rtt", times, values)
            spent += time.process_time() - began
            live = watched(times, values)
            for place, found in ((0, batch), (2, live)):
                counts[place] += sum(not one.gradual for one in found)
                counts[place + 1] += sum(one.gradual for one in found)
            counts[4] += len(labelled.naive(values, threshold_ns=1 * MS))
            total += LENGTH
        rates = "".join(
            f"{1000 * n / total:>{w}.3f}" for n, w in zip(counts, (8, 9, 8, 9, 8), strict=True)
        )
        print(f"{name:32}{rates}{1e6 * spent / total:>6.0f}", flush=True)


def steps(seed: int) -> None:
    print("\nA true step, 200 series each: found, within 1 sample, and how soon by the watch\n")
    for cost in (0.2, 0.5, 1.0, 12.0):
        for name in ("gamma, shape 0.5", "AR(1), 0.9", "bursts: exp of AR(1), 0.9"):
            rng, found, near, held, delays = np.random.default_rng(seed), 0, 0, 0, list[int]()
            for _ in range(200):
                values = NOISES[name](rng, 600) * MS
                values[400:] += cost * MS
                times = np.arange(600, dtype=np.int64)
                shifts = [
                    one for one in level_shifts(SERIES, "rtt", times, values) if one.what == "rtt"
                ]
                mine = [
                    s for s in shifts if s.window.after_unix_ns < 405 and s.window.by_unix_ns >= 395
                ]
                found += bool(mine)
                near += any(abs(s.window.by_unix_ns - 400) <= 1 for s in mine)
                held += any(s.cost.low_ns <= cost * MS <= s.cost.high_ns for s in mine)
                watch = LevelWatch(SERIES)
                told = [n for n in range(600) if watch.see(n, float(values[n])) and n >= 400]
                delays += [told[0] - 400] if told else []
            delay = f"{np.median(delays):.0f}" if delays else "-"
            print(
                f"{cost:5.1f} ms in {name:28} found {found / 200:.2f}  placed {near / 200:.2f}  "
                f"cost held {held / max(1, found):.2f}  watch after {delay} samples",
                flush=True,
            )


def real(folder: Path) -> None:
    print("\nLabelled series, within 5 samples: hits / found / labels (naive: hits / found)\n")
    for file in sorted(folder.glob("*/*.csv.gz")):
        data = labelled.read(file)
        if np.mean(np.isinf(data.values_ns)) > 0.3:
            continue  # values were taken off a base: below zero is no loss there
        places = np.arange(len(data.values_ns), dtype=np.int64)
        found = [
            one.window.by_unix_ns for one in level_shifts(SERIES, "rtt", places, data.values_ns)
        ]
        other = labelled.naive(data.values_ns)
        print(
            f"{file.parent.name}/{file.name}: "
            f"{labelled.hits(found, data.labels, TOLERANCE)} / {len(found)} / {len(data.labels)} "
            f"({labelled.hits(other, data.labels, TOLERANCE)} / {len(other)})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labelled", type=Path)
    options = parser.parse_args()
    calm(options.samples, options.seed)
    steps(options.seed)
    if options.labelled:
        real(options.labelled)


if __name__ == "__main__":
    main()
