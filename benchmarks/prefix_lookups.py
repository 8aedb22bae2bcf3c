"""Longest match over a million prefixes: our table beside pytricia, py-radix and DuckDB.

    python benchmarks/prefix_lookups.py [--prefixes 1000000] [--addresses 1000000] [--only NAME]

Prefixes have the lengths of a real table and as many origins, addresses are anywhere (hardly any
twice: the worst case for caches), and once more 5,000 different ones, as in traces. Times are CPU
seconds, the best of three, from addresses as text to what is known of them. Every library answers
the same questions and must answer them alike. Others are measured where they are installed
(``pip install pytricia py-radix duckdb``).
"""

import argparse
import importlib
import random
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pathbudget.sites.prefix_table import Prefix, PrefixTable

LENGTHS = (
    [24] * 600 + [23] * 98 + [22] * 112 + [21] * 50 + [20] * 45 + [19] * 26 + [18] * 14 + [17] * 8
    + [16] * 13 + [15] * 2 + [14] * 2 + [13] + [12] + [11] + [10] + [9] + [8]
)  # fmt: skip
"""Lengths of prefixes by how many of a thousand have them."""
ORIGINS = 80_000
"""So many ASes announce something."""
SEED = 7
T = TypeVar("T")
Answers = list[int | None]


def text(number: int) -> str:
    return socket.inet_ntoa(struct.pack(">I", number))


def make(prefixes: int, addresses: int) -> tuple[dict[tuple[int, int], int], list[str]]:
    """Prefix to a number, and addresses, outside of what nobody announces."""
    rng = random.Random(SEED)
    table: dict[tuple[int, int], int] = {}
    while len(table) < prefixes:
        bits = rng.choice(LENGTHS)
        network = rng.randrange(11 << 24, 100 << 24) >> (32 - bits) << (32 - bits)
        table[network, bits] = 1 + len(table) % ORIGINS
    return table, [text(rng.randrange(11 << 24, 100 << 24)) for _ in range(addresses)]


def ours(table: dict[tuple[int, int], int], addresses: Sequence[str]) -> Answers:
    prefixes = [Prefix(4, *prefix, (number,)) for prefix, number in table.items()]
    began = time.process_time()
    known = PrefixTable(prefixes)
    built_s = time.process_time() - began
    found, asked_s = best(lambda: known.look_up_all(addresses))
    say("ours, all at once", built_s, asked_s)
    _, asns_s = best(lambda: known.asns_of_all(addresses))
    say("ours, AS numbers", built_s, asns_s)
    some = addresses[: len(addresses) // 10]
    _, part_s = best(lambda: [known.look_up(address) for address in some])
    say("ours, one by one", built_s, 10 * part_s)
    few = [addresses[at % 5_000] for at in range(len(addresses))]
    _, few_s = best(lambda: known.look_up_all(few))
    say("ours, as in traces", built_s, few_s)
    return [None if one is None else one.asns[0] for one in found]


def best(ask: Callable[[], list[T]]) -> tuple[list[T], float]:
    """The quickest of three: the machine does other things too."""
    times: list[float] = []
    found: list[T] = []
    for _ in range(3):
        began = time.process_time()
        found = ask()
        times.append(time.process_time() - began)
    return found, min(times)


def pytricia(table: dict[tuple[int, int], int], addresses: Sequence[str]) -> Answers:
    began = time.process_time()
    known: Any = importlib.import_module("pytricia").PyTricia(32)
    for (network, bits), number in table.items():
        known[f"{text(network)}/{bits}"] = number
    built = time.process_time()

    def ask() -> Answers:
        return [known.get(address) for address in addresses]

    found, asked_s = best(ask)
    say("pytricia", built - began, asked_s)
    return found


def py_radix(table: dict[tuple[int, int], int], addresses: Sequence[str]) -> Answers:
    began = time.process_time()
    known: Any = importlib.import_module("radix").Radix()
    for (network, bits), number in table.items():
        known.add(f"{text(network)}/{bits}").data["number"] = number
    built = time.process_time()
    nodes, asked_s = best(lambda: [known.search_best(address) for address in addresses])
    say("py-radix", built - began, asked_s)
    return [None if node is None else node.data["number"] for node in nodes]


def duckdb(table: dict[tuple[int, int], int], addresses: Sequence[str]) -> Answers:
    """Joined once for each length of prefix, the longest kept."""
    import duckdb as library
    import numpy as np
    import pandas as pd

    began = time.process_time()
    session = library.connect()
    rows = np.array([(*prefix, number) for prefix, number in table.items()], dtype=np.int64)
    prefixes = pd.DataFrame(rows, columns=["network", "bits", "number"])
    session.execute("create table prefixes as select * from prefixes")
    del prefixes
    built = time.process_time()
    keys = np.frombuffer(b"".join(map(socket.inet_aton, addresses)), dtype=">u4").astype(np.int64)
    asked = pd.DataFrame({"place": np.arange(len(keys)), "address": keys})
    session.register("asked", asked)
    joined = session.execute(
        "select a.place, arg_max(p.number, p.bits) from asked a,"
        " (select distinct bits from prefixes) l join prefixes p on p.bits = l.bits and"
        " p.network = ((a.address >> (32 - l.bits)) << (32 - l.bits)) group by a.place"
    ).fetchnumpy()
    found: Answers = [None] * len(addresses)
    places, numbers = (column.astype(np.int64).tolist() for column in joined.values())
    for place, number in zip(places, numbers, strict=True):
        found[place] = number
    say("duckdb", built - began, time.process_time() - built)
    return found


def say(name: str, built_s: float, asked_s: float) -> None:
    print(f"{name:<20} {built_s:8.2f} s to build {asked_s:8.2f} s to look up (CPU)", flush=True)


OTHERS: dict[str, Callable[[dict[tuple[int, int], int], Sequence[str]], Answers]] = {
    "pytricia": pytricia,
    "py-radix": py_radix,
    "duckdb": duckdb,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Longest match over a million prefixes.")
    parser.add_argument("--prefixes", type=int, default=1_000_000)
    parser.add_argument("--addresses", type=int, default=1_000_000)
    parser.add_argument("--only", choices=[*OTHERS, "ours"])
    wish = parser.parse_args()
    table, addresses = make(wish.prefixes, wish.addresses)
    print(f"{len(table):,} prefixes, {len(addresses):,} addresses")
    expected = ours(table, addresses)
    for name, look_up in OTHERS.items():
        if wish.only not in (None, name):
            continue
        try:
            assert look_up(table, addresses) == expected, f"{name} answers otherwise"
        except ImportError:
            print(f"{name:<20} is not installed")


if __name__ == "__main__":
    main()
