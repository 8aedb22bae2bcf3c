"""How fast all budget lines of a lake are made, beside plain pandas and a Dask cluster of two.

python benchmarks/lake_speed.py [SAMPLES [FOLDER [WAY ...]]]

Writes a lake of SAMPLES (default 100 million) in the layout of a store, with a seed, into a new
folder under FOLDER (default: the system's for temporary files), and removes it at the end. A FOLDER
that is a store is taken as it is, and left. WAY is any of `lake`, `dask`, `pandas`, `groupby`,
`duckdb`; default: all of them, in this order. Each runs in a process of its own, whose resident
memory is that of all its children too. Needs 36 bytes of disk per sample, and for pandas 100 bytes
of memory. Stops with a message when lines are not equal. Needs psutil.
"""

import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from lake_world import write_lake

from pathbudget.agents.lake.envelopes import FilePair
from pathbudget.agents.lake.lines import lake_lines
from pathbudget.agents.lake.pairs import Question
from pathbudget.agents.lake.runners import InProcesses, OnDask
from pathbudget.agents.lake.store import file_pairs
from pathbudget.agents.store.layout import Layout
from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.path_choice import path_candidates
from pathbudget.analysis.results import BudgetLine
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.track import Track
from pathbudget.sites.catalogue import Tier
from pathbudget.sites.shipped import shipped_catalogue

WORKERS = 2


# --- three ways to the lines

Lines = dict[tuple[str, ...], tuple[float | None, float | None, float | None]]
WAYS: dict[str, Callable[[Path], Lines]] = {}


def way(function: Callable[[Path], Lines]) -> Callable[[Path], Lines]:
    WAYS[function.__name__.removeprefix("by_")] = function
    return function


def tiers() -> tuple[Tier, ...]:
    return tuple(shipped_catalogue().tiers.values())


def as_table(lines: Iterable[BudgetLine]) -> Lines:
    return {
        (one.region, one.site, one.tier, str(one.direction), str(one.mode), f"{one.percentile:g}",
         str(one.prompt_bytes)): (one.value_ms, one.low_ms, one.high_ms)
        for one in lines
    }  # fmt: skip


def files_of(folder: Path) -> list[FilePair]:
    return list(file_pairs(Layout(folder)))


@way
def by_lake(folder: Path) -> Lines:
    """Two processes of this machine."""
    with InProcesses(WORKERS) as runner:
        found = lake_lines(
            files_of(folder), Question(tiers()), runner=runner, scratch=folder.parent
        )
    return as_table(found.lines)


@way
def by_dask(folder: Path) -> Lines:
    """A cluster of two worker processes. Its start is not what is measured, but is in the time."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        found = lake_lines(
            files_of(folder), Question(tiers()), runner=OnDask(WORKERS), scratch=folder.parent
        )
    return as_table(found.lines)


@way
def by_pandas(folder: Path) -> Lines:
    """Read the table, group it, sort each series, and ask `PathBudget` for the lines.

    Words as categories, which plain `read_parquet` does not do, or the table would not fit.
    """
    import pandas as pd

    words = ["region", "site", "vantage", "target", "address", "probe", "transport", "family",
             "metric", "mode"]  # fmt: skip
    columns = [*words, "sent_unix_ns", "seq", "value_ns"]
    table = pq.read_table(folder / "samples", columns=columns, read_dictionary=words)
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    del table
    frame["value_ns"] = frame["value_ns"].fillna(np.inf)
    for word in words:
        frame[word] = frame[word].astype("category")
    keys = [word for word in words if word != "vantage"]
    numbers = {name: i for i, name in enumerate(sorted(frame["vantage"].cat.categories))}
    by_pair: dict[tuple[str, str], list[Series]] = {}
    for key, rows in frame.groupby(keys, observed=True, dropna=False, sort=True):
        named = dict(zip(keys, (None if pd.isna(one) else one for one in key), strict=True))
        if named["metric"] == "connect" and named["probe"] == "tls":
            named["transport"] = "tls"
        ordered = rows.assign(number=rows["vantage"].map(numbers).astype(np.int64)).sort_values(
            ["sent_unix_ns", "number", "seq", "value_ns"]
        )
        track = Track(
            ordered["sent_unix_ns"].to_numpy(),
            ordered["value_ns"].to_numpy(dtype=np.float64),
            ordered["number"].to_numpy(),
        )
        series = Series(SeriesKey(**named), track, Counter(), Counter(), Counter(), 26_000,
                        Counter())  # fmt: skip
        by_pair.setdefault((named["region"], named["site"]), []).append(series)
    lines: list[BudgetLine] = []
    for series in by_pair.values():
        budget = PathBudget(path_candidates(series)[0])
        for tier in tiers():
            lines += budget.lines(tier, (50.0, 95.0, 99.0))
    return as_table(lines)


@way
def by_groupby(folder: Path) -> Lines:
    """No lines: only what pandas needs to read the table and to sort each group for quantiles."""
    words = ["region", "site", "probe", "metric", "mode"]
    table = pq.read_table(folder / "samples", columns=[*words, "value_ns"], read_dictionary=words)
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    groups = frame.groupby(words, observed=True, dropna=False)["value_ns"]
    groups.quantile([0.5, 0.95, 0.99], interpolation="higher")
    return {}


@way
def by_duckdb(folder: Path) -> Lines:
    """No lines either: exact quantiles of each series, which is a small part of the work."""
    import duckdb

    duckdb.sql("set threads = 2")
    duckdb.sql(
        f"""select region, site, probe, metric, mode, count(*),
            quantile_disc(value_ns, [0.5, 0.95, 0.99])
            from read_parquet('{folder}/samples/*/*.parquet') group by all"""
    ).fetchall()
    return {}


# --- running them


def run(name: str, folder: Path, out: Path) -> None:
    """In a process of its own, so that its children can be told from those of others."""
    begun = time.perf_counter()
    found = WAYS[name](folder)
    out.write_bytes(pickle.dumps((time.perf_counter() - begun, found)))


def watch(process: Any) -> tuple[int, float]:
    """Largest resident bytes of a process with all its descendants, and their CPU seconds."""
    import psutil

    top, largest, used = psutil.Process(process.pid), 0, dict[int, float]()
    while process.is_alive():
        resident = 0
        for one in [top, *top.children(recursive=True)]:
            try:
                resident += one.memory_info().rss
                used[one.pid] = sum(one.cpu_times()[:2])
            except psutil.Error:
                continue
        largest = max(largest, resident)
        process.join(0.25)  # looking at all processes takes time from the two cores
    return largest, sum(used.values())


def measure(name: str, folder: Path) -> tuple[float, float, float, Lines]:
    out = folder.parent / f"{name}.pickle"
    process = multiprocessing.get_context("spawn").Process(target=run, args=(name, folder, out))
    process.start()
    peak, used = watch(process)
    process.join()
    if process.exitcode:
        raise SystemExit(f"{name}: ended with code {process.exitcode}")
    seconds, found = pickle.loads(out.read_bytes())
    return seconds, used, peak, found


def compare(name: str, found: Lines, reference: Lines) -> str:
    if not found:
        return "-"
    wrong = [key for key in reference if reference[key] != found.get(key)]
    if wrong or len(found) != len(reference):
        raise SystemExit(f"{name}: {len(wrong)} of {len(reference)} lines differ: {wrong[:3]}")
    return "equal" if found is not reference else f"{len(found)} lines"


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    base = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    names = sys.argv[3:] or list(WAYS)
    kept = base is not None and (base / "samples").is_dir()
    folder = Path(tempfile.mkdtemp(prefix="lake-speed-", dir=base.parent if kept else base))
    try:
        lake = folder / "lake"
        if kept:
            lake.symlink_to(base.resolve())
            total = sum(pq.read_metadata(one.samples).num_rows for one in files_of(lake))
        else:
            total = write_lake(lake, samples)
        size = sum(one.stat().st_size for one in lake.resolve().rglob("*.parquet"))
        print(f"{total:,} samples, {size / total:.1f} bytes each; load {os.getloadavg()[0]:.1f}")
        reference: Lines = {}
        first = 0.0
        for name in names:
            seconds, used, peak, found = measure(name, lake)
            reference, first = reference or found, first or seconds
            print(
                f"{name:8} {seconds:7.1f} s {used:7.1f} CPU s {total / seconds / 1e6:6.2f} M/s "
                f"{peak / 1e9:5.2f} GB  x{seconds / first:5.1f}  "
                f"{compare(name, found, reference)}  load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
