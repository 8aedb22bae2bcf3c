"""Published optima of small OR-Library instances; all of them in benchmarks/siting_solvers.py."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from pathbudget.analysis.siting.programs import Aim, Program, answer
from pathbudget.analysis.siting.vocabulary import Matrix

pytestmark = pytest.mark.needs("data")


def distances(folder: Path, name: str) -> tuple[Matrix, int]:
    """Edges may repeat and the last one counts; then all shortest paths."""
    with gzip.open(folder / "pmed" / f"{name}.txt.gz", "rt") as file:
        numbers = [int(word) for word in file.read().split()]
    n, edges, k = numbers[:3]
    distance = np.full((n, n), np.inf)
    np.fill_diagonal(distance, 0)
    for at in range(3, 3 + 3 * edges, 3):
        a, b, length = numbers[at : at + 3]
        distance[a - 1, b - 1] = distance[b - 1, a - 1] = length
    for middle in range(n):
        np.minimum(distance, distance[:, middle, None] + distance[middle], out=distance)
    return distance, k


@pytest.mark.parametrize("name", ["pmed1", "pmed5"])
def test_p_median_and_p_center(shared_data: Path, name: str) -> None:
    folder = shared_data / "facility"
    optima = dict(
        line.split() for line in (folder / "pmed" / "pmedopt.txt").read_text().splitlines()
    )
    with (folder / "pmed" / "pcenter_opt.csv").open() as file:
        radii = {row["inst"]: float(row["pcenter_opt_radius"]) for row in csv.DictReader(file)}
    distance, k = distances(folder, name)
    median = answer(Program(distance, np.ones(len(distance)), k=k))
    assert (median.value, median.proved) == (float(optima[name]), True)
    center = answer(Program(distance, np.ones(len(distance)), k=k, aim=Aim.P_CENTER))
    assert (center.value, center.proved) == (radii[name.removeprefix("pmed")], True)


def test_capacitated_p_median(shared_data: Path) -> None:
    text = (shared_data / "facility" / "pmedcap" / "pmedcap2.txt").read_text().split()
    best, n, k, capacity = float(text[1]), int(text[2]), int(text[3]), float(text[4])
    at = np.array(text[5 : 5 + 4 * n], dtype=np.float64).reshape(-1, 4)
    distance = np.floor(np.hypot(at[:, 1, None] - at[:, 1], at[:, 2, None] - at[:, 2]))
    found = answer(
        Program(
            distance,
            np.ones(n),
            k=k,
            capacities=np.full(n, capacity),
            demands=at[:, 3].copy(),
            whole=True,
        )
    )
    assert (found.value, found.proved) == (best, True)
