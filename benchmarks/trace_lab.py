"""Path sets found in the lab, and probes used, beside scamper's tracelb on the same kernels.

    sudo apt-get install scamper
    .venv/bin/python benchmarks/trace_lab.py [--world tests/lab/paths.toml] [--rounds 3]

Ours in four ways: the promise for the whole trace (95 %), for each vertex by itself (as tracelb
gives it), and full MDA. Of ours every link is compared with the truth. tracelb (2021) names no
links inside a diamond, so of it the addresses by hop limit are compared. It waits 250 ms between
two probes of one trace (150 here, its least); ours go by a rate of packets. With `-P udp-sport` or
`tcp-sport` it sends nothing here, so it is asked by `udp-dport`.
"""

import argparse
import json
import shutil
import statistics
import sys
import time
from collections import defaultdict
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=Path, default=ROOT / "tests" / "lab" / "paths.toml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=1_000)
    told = parser.parse_args()
    world = load_world(told.world)
    sites = [name for name, node in world.nodes.items() if node.kind == "site"]
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with Lab(world) as lab:
        for _ in range(told.rounds):
            for name, options in WAYS.items():
                rows[name].append(ours(lab, world, sites, {**options, "rate": told.rate}))
            if shutil.which("scamper"):
                rows[SCAMPER].append(scamper(lab, world, sites, told.rate))
    show(sites, rows)


def ours(lab: Lab, world: World, sites: list[str], options: Options) -> dict[str, Any]:
    """One campaign: all sites at once."""
    sys.path.insert(0, str(ROOT))
    from tests.lab.tracing import trace_all

    addresses = [world.address_of(site) for site in sites]
    told = {"protocol": "udp", "max_packets": 20_000, **options}
    began = time.monotonic()
    found = lab.call(REGION, lambda: trace_all(addresses, told))
    row: dict[str, Any] = {"seconds": time.monotonic() - began, "false": 0, "wrong": []}
    for site, one in zip(sites, found, strict=True):
        truth = {link for link in world.hop_links(REGION, site) if link[1] and link[2]}
        row[site] = int(one.notes["packets"])
        row["false"] += len(one.links - truth)
        if one.links != truth:
            row["wrong"].append(site)
    return row


def scamper(lab: Lab, world: World, sites: list[str], rate: int) -> dict[str, Any]:
    """The same addresses, all at once."""
    by_address = {world.address_of(site): site for site in sites}
    command = ["scamper", "-p", str(rate), "-O", "json", "-c", "tracelb -P udp-dport -W 15", "-i"]
    began = time.monotonic()
    ran = lab.run(REGION, [*command, *by_address], timeout=300)
    row: dict[str, Any] = {"seconds": time.monotonic() - began, "false": 0, "wrong": list(sites)}
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


def show(sites: list[str], rows: dict[str, list[dict[str, Any]]]) -> None:
    print(f"{'probes (median)':24}" + "".join(f"{site[:8]:>9}" for site in sites)
          + "  seconds  false  wrong")  # fmt: skip
    for name, runs in rows.items():
        counts = [statistics.median(run.get(site, 0) for run in runs) for site in sites]
        wrong = [site for run in runs for site in run["wrong"]]
        print(
            f"{name:24}" + "".join(f"{count:9.0f}" for count in counts)
            + f"{statistics.median(run['seconds'] for run in runs):9.1f}"
            + f"{sum(run['false'] for run in runs):7}"
            + f"  {len(wrong)}/{len(runs) * len(sites)} {' '.join(sorted(set(wrong)))}"
        )  # fmt: skip


if __name__ == "__main__":
    main()
