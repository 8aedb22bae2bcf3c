"""Path sets found in the lab, and probes used, beside scamper's tracelb on the same kernels.

    sudo apt-get install scamper
    .venv/bin/python benchmarks/trace_lab.py --seeds 200 [--ways 4] [--peer-every 10] [--keep FILE]
    .venv/bin/python benchmarks/trace_lab.py --show FILE [FILE ...]

Each seed is another lab: its routers hash flows in another way, and the probe draws other flows.
Ours in up to four ways: the promise for the whole trace (95 %), for each vertex by itself (as
tracelb gives it), and full MDA. Of ours every link is compared with the truth. tracelb (2021) names
no links inside a diamond, so of it the addresses by hop limit are compared. It waits 250 ms between
two probes of one trace (150 here, its least); ours go by a rate of packets. With `-P udp-sport` or
`tcp-sport` it sends nothing here, so it is asked by `udp-dport`. A run is wrong where what was
found is not all of the truth, or more than it.
"""

import argparse
import dataclasses
import json
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.contract import Options

ROOT = Path(__file__).resolve().parents[1]
REGION = "office"
WAYS: dict[str, Options] = {
    "ours, whole trace 95 %": {},
    "ours, each vertex 95 %": {"confidence_of": "vertex"},
    "ours, mda": {"algorithm": "mda"},
    "ours, mda 99 %": {"algorithm": "mda", "confidence": 0.99},
}
SCAMPER = "scamper tracelb 95 %"
Vertices = set[tuple[int, str]]
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--world", type=Path, default=ROOT / "tests" / "lab" / "paths.toml")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--ways", type=int, default=len(WAYS), help="how many of the four")
    parser.add_argument("--peer-every", type=int, default=1, help="tracelb for every nth seed")
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--keep", type=Path, help="write each run there, one JSON object a line")
    parser.add_argument("--show", type=Path, nargs="+", help="only tell what was kept")
    told = parser.parse_args()
    world = load_world(told.world)
    rows: list[Row] = []
    if told.show:
        rows += [json.loads(line) for file in told.show for line in file.open()]
    else:
        for row in measured(world, told):
            rows.append(row)
            if told.keep:
                with told.keep.open("a") as kept:
                    kept.write(json.dumps(row) + "\n")
    show(sites_of(world), rows)


def sites_of(world: World) -> list[str]:
    return [name for name, node in world.nodes.items() if node.kind == "site"]


def measured(world: World, told: argparse.Namespace) -> Iterator[Row]:
    """One run after the other, each in the lab of its seed."""
    sites = sites_of(world)
    for seed in range(told.first, told.first + told.seeds):
        seeded = dataclasses.replace(world, seed=seed)
        with Lab(seeded) as lab:
            for name, options in list(WAYS.items())[: told.ways]:
                row = ours(lab, seeded, sites, {**options, "rate": told.rate}, seed)
                yield {"name": name, "seed": seed, **row}
            if seed % told.peer_every == 0 and shutil.which("scamper"):
                yield {"name": SCAMPER, "seed": seed, **scamper(lab, seeded, sites, told.rate)}


def ours(lab: Lab, world: World, sites: list[str], options: Options, seed: int) -> Row:
    """One campaign: all sites at once."""
    sys.path.insert(0, str(ROOT))
    from tests.lab.tracing import trace_all

    addresses = [world.address_of(site) for site in sites]
    told = {"protocol": "udp", "max_packets": 20_000, **options}
    began = time.monotonic()
    found = lab.call(REGION, lambda: trace_all(addresses, told, seed))
    row: Row = {"seconds": time.monotonic() - began, "false": 0, "wrong": [], "sure": []}
    for site, one in zip(sites, found, strict=True):
        truth = {link for link in world.hop_links(REGION, site) if link[1] and link[2]}
        row[site] = int(one.notes["packets"])
        row["false"] += len(one.links - truth)
        if one.links != truth:
            row["wrong"].append(site)
            row["sure"] += [site] if one.notes["complete"] else []
    return row


def scamper(lab: Lab, world: World, sites: list[str], rate: int) -> Row:
    """The same addresses, all at once."""
    by_address = {world.address_of(site): site for site in sites}
    command = ["scamper", "-p", str(rate), "-O", "json", "-c", "tracelb -P udp-dport -W 15", "-i"]
    began = time.monotonic()
    ran = lab.run(REGION, [*command, *by_address], timeout=300)
    row: Row = {"seconds": time.monotonic() - began, "false": 0, "wrong": list(sites)}
    for line in ran.stdout.splitlines():
        said = json.loads(line)
        if said.get("type") != "tracelb":
            continue
        site = by_address[said["dst"]]
        hops = world.hops(REGION, site)
        truth = {(n, one) for n, hop in enumerate(hops, 1) for one in hop if one}
        found = vertices(said)
        row[site] = said["probec"]
        row["false"] += len(found - truth)
        if found == truth:
            row["wrong"].remove(site)
    return row


def vertices(said: dict[str, Any]) -> Vertices:
    """Addresses by hop limit, as the probes of each tell; the first node has none of its own."""
    found: Vertices = set()
    for node in said.get("nodes", []):
        for link in node.get("links", []):
            for hop in link:
                for one in hop if isinstance(hop, list) else [hop]:
                    if one.get("addr") not in (None, "*"):
                        found |= {(probe["ttl"], one["addr"]) for probe in one["probes"]}
        if not found or node is said["nodes"][0]:
            found.add((said["firsthop"], node["addr"]))
    return found


def show(sites: list[str], rows: list[Row]) -> None:
    """A line for each way: probes (median), and the runs whose path set is not the true one."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    print(f"{'probes (median)':24}" + "".join(f"{site[:8]:>9}" for site in sites)
          + "  seconds  false  right")  # fmt: skip
    for name, runs in by_name.items():
        counts = [statistics.median(run[site] for run in runs if site in run) for site in sites]
        wrong = [f"{site} of seed {run['seed']}" for run in runs for site in run["wrong"]]
        sure = sum(len(run.get("sure", [])) for run in runs)
        of = len(runs) * len(sites)
        print(
            f"{name:24}" + "".join(f"{count:9.0f}" for count in counts)
            + f"{statistics.median(run['seconds'] for run in runs):9.1f}"
            + f"{sum(run['false'] for run in runs):7}  {of - len(wrong)}/{of} over"
            + f" {len(runs)} seeds; called complete though wrong: {sure} {', '.join(wrong[:9])}"
        )  # fmt: skip


if __name__ == "__main__":
    main()
