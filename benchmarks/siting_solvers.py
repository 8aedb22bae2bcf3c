"""Siting programs against published optima, and beside spopt. Run by hand:

chrt -i 0 nice -n 19 python benchmarks/siting_solvers.py FOLDER [PART ...]

FOLDER holds the OR-Library files in pmed/, pmedcap/ and cap/. Parts: pmed, center, pmedcap, cap,
large, peer; all without one. Seconds are those of the processor (the machine is shared) and of the
wall; limits are on the processor's, which the general solver's own limit is not.
"""

import csv
import gzip
import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from pathbudget.analysis.siting.programs import Aim, Answer, Program, Survive, answer

SECONDS = {"pmed": 60, "center": 240, "pmedcap": 20, "cap": 20, "large": 60, "peer": 120}
PEER_NUMBERS = (1, 5, 7)


def main() -> None:
    folder = Path(sys.argv[1])
    parts = sys.argv[2:] or list(SECONDS)
    print("instance | published | ours | bound | gap % | CPU s | wall s | first s: value")
    for part in parts:
        globals()[f"run_{part}"](folder)


def show(name: str, published: float | None, program: Program, seconds: float) -> Answer:
    first: list[Answer] = []
    wall, begun = time.monotonic(), time.process_time()
    found = answer(program, seconds=seconds, on_better=first.append, clock=time.process_time)
    spent, wall = time.process_time() - begun, time.monotonic() - wall
    gap = "proved" if found.proved else "none" if found.gap is None else f"{100 * found.gap:.2f}"
    start = f"{first[0].seconds:.2f}: {first[0].value:.10g}" if first else "-"
    bound = "-" if found.bound is None else f"{found.bound:.10g}"
    value = "-" if found.value is None else f"{found.value:.10g}"
    known = "-" if published is None else f"{published:g}"
    print(
        f"{name} | {known} | {value} | {bound} | {gap} | {spent:.1f} | {wall:.1f} | {start}",
        flush=True,
    )
    return found


def read_pmed(path: Path) -> tuple[np.ndarray, int]:
    """Edges may repeat and the last one counts; then all shortest paths."""
    with gzip.open(path, "rt") as file:
        numbers = np.array(file.read().split(), dtype=float)
    n, edges, k = (int(number) for number in numbers[:3])
    distance = np.full((n, n), np.inf)
    np.fill_diagonal(distance, 0)
    for a, b, length in numbers[3 : 3 + 3 * edges].reshape(-1, 3):
        distance[int(a) - 1, int(b) - 1] = distance[int(b) - 1, int(a) - 1] = length
    for middle in range(n):
        np.minimum(distance, distance[:, middle, None] + distance[middle], out=distance)
    return distance, k


def instances(folder: Path) -> list[tuple[int, Path]]:
    paths = (folder / "pmed").glob("pmed*.txt.gz")
    return sorted((int(path.name[4:].split(".")[0]), path) for path in paths)


def run_pmed(folder: Path) -> None:
    lines = (folder / "pmed" / "pmedopt.txt").read_text().split()
    optima = dict(zip(lines[::2], map(float, lines[1::2]), strict=True))
    for number, path in instances(folder):
        distance, k = read_pmed(path)
        program = Program(distance, np.ones(len(distance)), k=k)
        show(f"pmed{number}", optima[f"pmed{number}"], program, SECONDS["pmed"])


def run_center(folder: Path) -> None:
    with (folder / "pmed" / "pcenter_opt.csv").open() as file:
        radii = {int(row["inst"]): float(row["pcenter_opt_radius"]) for row in csv.DictReader(file)}
    for number, path in instances(folder):
        distance, k = read_pmed(path)
        program = Program(distance, np.ones(len(distance)), k=k, aim=Aim.P_CENTER)
        show(f"p-center {number}", radii[number], program, SECONDS["center"])


def run_pmedcap(folder: Path) -> None:
    for number in range(1, 11):
        text = (folder / "pmedcap" / f"pmedcap{number}.txt").read_text().split()
        _, best, n, k, capacity = (float(word) for word in text[:5])
        at = np.array(text[5 : 5 + 4 * int(n)], dtype=float).reshape(-1, 4)
        distance = np.floor(np.hypot(at[:, 1, None] - at[:, 1], at[:, 2, None] - at[:, 2]))
        program = Program(
            distance,
            np.ones(int(n)),
            k=int(k),
            capacities=np.full(int(n), capacity),
            demands=at[:, 3].copy(),
            whole=True,
        )
        show(f"pmedcap{number}", best, program, SECONDS["pmedcap"])


def run_cap(folder: Path) -> None:
    lines = (folder / "cap" / "capopt.txt").read_text().split()
    for name, best in zip(lines[::2], map(float, lines[1::2]), strict=True):
        with gzip.open(folder / "cap" / f"{name}.txt.gz", "rt") as file:
            numbers = np.array(file.read().split(), dtype=float)
        sites, regions = int(numbers[0]), int(numbers[1])
        about = numbers[2 : 2 + 2 * sites].reshape(-1, 2)
        rows = numbers[2 + 2 * sites :].reshape(regions, sites + 1)
        program = Program(
            rows[:, 1:].copy(),
            np.ones(regions),
            opening=about[:, 1].copy(),
            capacities=about[:, 0].copy(),
            demands=rows[:, 0].copy(),
        )
        show(name, best, program, SECONDS["cap"])


def run_large(_: Path) -> None:
    """1,000 regions x 200 sites, costs like round trips; capacities hold about twice the demand."""
    rng = np.random.default_rng(7)
    at, sites = rng.random((1000, 2)), rng.random((200, 2))
    weights = np.round(rng.lognormal(0, 1, 1000), 3)
    way = np.hypot(at[:, None, 0] - sites[:, 0], at[:, None, 1] - sites[:, 1])
    cost = np.round(way * 100 * rng.uniform(1.2, 2.2, way.shape), 3)
    room = rng.uniform(0.08, 0.2, 200) * weights.sum()
    programs = {
        "p-median": Program(cost, weights, k=10),
        "p-median with one backup": Program(cost, weights, k=10, backup=1, backup_limit=80.0),
        "p-median, mean loss": Program(cost, weights, k=10, survive=Survive.MEAN),
        "p-median, worst loss": Program(cost, weights, k=10, survive=Survive.WORST),
        "covering": Program(cost, weights, k=10, aim=Aim.COVERING, limit=30.0),
        "split capacities": Program(cost, weights, k=12, capacities=room),
        "whole capacities": Program(cost, weights, k=12, capacities=room, whole=True),
    }
    for name, program in programs.items():
        show(f"1000 x 200 {name}", None, program, SECONDS["large"])


def run_peer(folder: Path) -> None:
    """spopt with HiGHS through PuLP on the same matrix, and the two hard ones of 900."""
    paths = dict(instances(folder))
    cases = [(f"pmed{number}", *read_pmed(paths[number])) for number in PEER_NUMBERS]
    distance, _ = read_pmed(paths[39])
    cases += [(f"900, p = {k}", distance, k) for k in (90, 5)]
    for name, matrix, k in cases:
        show(name, None, Program(matrix, np.ones(len(matrix)), k=k), SECONDS["peer"])
        beside(matrix, k)


def beside(distance: np.ndarray, k: int) -> None:
    """The peer in a process of its own, which is ended when its seconds of the wall are over."""
    begun = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=solve_with_spopt, args=(distance, k, theirs))
    process.start()
    told = mine.poll(SECONDS["peer"])
    value = f"{mine.recv():g}" if told else f"no answer in {SECONDS['peer']} s"
    process.kill()
    process.join()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    wall = time.monotonic() - begun
    print(f"  spopt | - | {value} | - | - | {spent:.1f} | {wall:.1f} | -", flush=True)


def solve_with_spopt(distance: np.ndarray, k: int, answer_to: Connection) -> None:
    import pulp
    from spopt.locate import PMedian

    model = PMedian.from_cost_matrix(distance, np.ones(len(distance)), p_facilities=k)
    model.solve(pulp.HiGHS(msg=False))
    found: Any = pulp.value(model.problem.objective)
    answer_to.send(float(found))


if __name__ == "__main__":
    main()
