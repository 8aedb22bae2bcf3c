"""Siting programs against published optima, and beside spopt. Run by hand:

chrt -i 0 nice -n 19 python benchmarks/siting_solvers.py FOLDER [PART ...]

FOLDER holds the OR-Library files in pmed/, pmedcap/ and cap/. Parts: pmed, center, pmedcap, cap,
flat, map, peer; all without one. The peer needs spopt, pulp and highspy, which nothing here
installs. Seconds are of the processor (the machine is shared) and of the wall; limits are on the
processor's, which the general solver's own limit is not.
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

SECONDS = {"pmed": 60, "center": 240, "pmedcap": 20, "cap": 20, "flat": 60, "map": 60, "peer": 120}
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


REGIONS, CANDIDATES = 1000, 200


def run_flat(_: Path) -> None:
    """Costs that no geometry orders: every pair on a plane has its own detour."""
    rng = np.random.default_rng(7)
    at, sites = rng.random((REGIONS, 2)), rng.random((CANDIDATES, 2))
    weights = np.round(rng.lognormal(0, 1, REGIONS), 3)
    way = np.hypot(at[:, None, 0] - sites[:, 0], at[:, None, 1] - sites[:, 1])
    cost = np.round(way * 100 * rng.uniform(1.2, 2.2, way.shape), 3)
    show_large("flat", cost, weights, rng, (30.0,), 80.0)


def run_map(_: Path) -> None:
    """Round trips of a map: both ends in metros, great circles, detours shared by pairs of metros.

    A detour of its own per pair is small: facilities of one metro are reached by the same ways.
    """
    rng = np.random.default_rng(11)
    metros = 60
    centre = np.column_stack([rng.uniform(-35, 60, metros), rng.uniform(-180, 180, metros)])
    size = rng.pareto(1.2, metros) + 0.3
    of_site = rng.choice(metros, CANDIDATES, p=size / size.sum())
    of_region = rng.choice(metros, REGIONS, p=size / size.sum())
    sites = on_sphere(centre[of_site] + rng.normal(0, 0.3, (CANDIDATES, 2)))
    regions = on_sphere(centre[of_region] + rng.normal(0, 4.0, (REGIONS, 2)))
    kilometres = 6371 * np.arccos(np.clip(regions @ sites.T, -1, 1))
    detour = rng.normal(-0.7, 0.4, (metros, metros))[of_region][:, of_site]
    detour += rng.normal(0, 0.2, (REGIONS, 1)) + rng.normal(0, 0.1, kilometres.shape)
    light = kilometres / 100  # there and back, 200 km a millisecond
    access = rng.uniform(0.5, 3, (REGIONS, 1))
    cost = np.round(light * (1 + np.exp(detour)) + access, 3)
    weights = np.round(rng.lognormal(0, 1, REGIONS), 3)
    show_large("map", cost, weights, rng, (40.0, 60.0), 120.0)


def on_sphere(degrees: np.ndarray) -> np.ndarray:
    latitude, longitude = np.radians(degrees).T
    flat = np.cos(latitude)
    return np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])


def show_large(
    name: str,
    cost: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
    limits: tuple[float, ...],
    backup_limit: float,
) -> None:
    """1,000 regions x 200 sites; capacities hold about twice the demand."""
    room = rng.uniform(0.08, 0.2, CANDIDATES) * weights.sum()
    plain: dict[str, Any] = {"cost": cost, "weights": weights, "k": 10}
    larger = plain | {"k": 12, "capacities": room}
    near = {f"covering within {limit:g}": {"limit": limit} for limit in limits}
    programs = {
        "p-median": plain,
        "p-median with one backup": plain | {"backup": 1, "backup_limit": backup_limit},
        "p-median, mean loss": plain | {"survive": Survive.MEAN},
        "p-median, worst loss": plain | {"survive": Survive.WORST},
        "p-center": plain | {"aim": Aim.P_CENTER},
    }
    for word, limit in near.items():
        programs[word] = plain | limit | {"aim": Aim.COVERING}
        programs[f"{word} with one backup"] = programs[word] | {"backup": 1}
    programs["split capacities"] = larger
    programs["whole capacities"] = larger | {"whole": True}
    for word, asked in programs.items():
        show(f"{name} {word}", None, Program(**asked), SECONDS[name])


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
    theirs.close()  # so that a peer that breaks down is seen as such, and not as a slow one
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
