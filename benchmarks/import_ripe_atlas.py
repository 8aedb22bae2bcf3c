"""How fast RIPE Atlas results are read, beside ripe.atlas.sagan, and in how much memory.

    python benchmarks/import_ripe_atlas.py [--data FOLDER] [--rounds 9] [--no-memory]

Speed: the readers take turns in short rounds on the same lines, in one process on one core, so that
whatever else the machine does hits all; printed are medians of the rounds, the median of the ratios
within a round, and the best rounds. ``parsed`` is results as typed objects, which is what sagan
makes of them; ``records`` goes on to measurements with samples, vantage, target and id. Memory:
peak resident size of a child process that reads a file a hundred times the largest real one, in
four forms, and of one that also writes it into a store.
"""

import argparse
import collections
import gzip
import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from pathbudget.agents.importers.atlas_wire import Ping, SslCert, Traceroute
from pathbudget.agents.importers.byte_stream import read_chunks
from pathbudget.agents.importers.json_blocks import split
from pathbudget.agents.importers.ripe_atlas import read_results

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ripe_atlas"
LINES_A_ROUND = 6_000
TIMES_LARGEST = 100
PARSERS = {
    kind: msgspec.json.Decoder(shape, strict=False).decode_lines
    for kind, shape in (("ping", Ping), ("traceroute", Traceroute), ("sslcert", SslCert))
}


def real_lines(folder: Path, kind: str) -> list[str]:
    """Every real line of a type, without the wrapping of some fixtures.

    Left out is the one ping without packets (firmware 0), of which sagan makes nothing.
    """
    lines: list[str] = []
    for path in sorted([*folder.rglob("*.jsonl"), *folder.glob("*.ndjson")]):
        if path.parent.name in ("expected_sagan", "probe_firmware"):
            continue
        for line in path.read_text().splitlines():
            content: dict[str, Any] = json.loads(line)
            result = content.get("raw", content)
            if result.get("type") == kind and (kind != "ping" or "result" in result):
                lines.append(line if result is content else json.dumps(result))
    return lines


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def records(path: Path) -> None:
    collections.deque(read_results([path]), maxlen=0)


def sagan(path: Path) -> None:
    from ripe.atlas.sagan import Result

    with path.open() as file:
        for line in file:
            Result.get(line)


def parsed(path: Path) -> None:
    """Results as typed objects and no more, which is what sagan makes of them."""
    for block in split(read_chunks(path, ignore), ignore):
        PARSERS[path.stem](block.text)


def ignore(_: object) -> None:
    pass


def compare(folder: Path, kind: str, lines: list[str], rounds: int) -> None:
    lines = (lines * (LINES_A_ROUND // len(lines) + 1))[:LINES_A_ROUND]
    path = folder / f"{kind}.jsonl"
    path.write_text("\n".join(lines))
    readers: dict[str, Callable[[Path], object]] = {
        "sagan": sagan, "parsed": parsed, "records": records,
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, reader in readers.items():
            times[name].append(seconds(lambda reader=reader: reader(path)))
    for name in readers:
        pairs = zip(times["sagan"], times[name], strict=True)
        ratio = statistics.median(slow / quick for slow, quick in pairs)
        rate, best = len(lines) / statistics.median(times[name]), len(lines) / min(times[name])
        best_ratio = min(times["sagan"]) / min(times[name])
        print(
            f"{kind:10} {name:8} {rate:9,.0f}/s {ratio:5.1f} x sagan"
            f"   best round {best:9,.0f}/s {best_ratio:5.1f} x"
        )


def write_form(path: Path, lines: list[str], form: str, packed: bool, times: int = 1) -> None:
    """`times` copies of `lines`, one after the other, without holding them."""
    with gzip.open(path, "wb", 1) if packed else path.open("wb") as file:
        separator = b",\n" if form == "array" else b"\n"
        block = separator.join(line.encode() for line in lines)
        file.write(b"[" if form == "array" else b"")
        for number in range(times):
            file.write((separator if number else b"") + block)
        file.write(b"]\n" if form == "array" else b"\n")


def forms() -> Iterator[tuple[str, bool]]:
    for form in ("lines", "array"):
        for packed in (False, True):
            yield form, packed


def compare_forms(folder: Path, lines: list[str], rounds: int) -> None:
    lines = (lines * 40)[: 3 * LINES_A_ROUND]
    for form, packed in forms():
        path = folder / f"form-{form}-{packed}"
        write_form(path, lines, form, packed)
        times = [seconds(lambda path=path: records(path)) for _ in range(rounds)]
        rate = len(lines) / statistics.median(times)
        print(f"ping, records, {form + (', gzip' if packed else ''):12} {rate:9,.0f}/s")


def with_store(folder: Path, lines: list[str], rounds: int) -> None:
    from pathbudget.agents.store.parquet import Store

    path = folder / "stored.jsonl"
    results = [json.loads(line) for line in (lines * 20)[:LINES_A_ROUND]]
    for number, result in enumerate(results):
        result["timestamp"] += number  # else the store has them already
    path.write_text("\n".join(map(json.dumps, results)))
    rates = [
        len(results)
        / seconds(
            lambda number=number: Store(folder / f"store{number}").write(read_results([path]))
        )
        for number in range(max(3, rounds // 3))
    ]
    print(f"ping, records, stored    {statistics.median(rates):9,.0f}/s")


CHILD = """
import sys
from pathlib import Path
from pathbudget.agents.importers.ripe_atlas import ImportReport, read_results
report = ImportReport()
measurements = read_results([Path(sys.argv[1])], report=report)
if len(sys.argv) > 2:
    from pathbudget.agents.store.parquet import Store
    Store(Path(sys.argv[2])).write(measurements)
else:
    for _ in measurements:
        pass
assert report.results == report.measurements == int(sys.stdin.read()), report
# Not getrusage: its maximum is inherited from the parent, from before the child's program began.
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(peak.split()[1]) // 1024)
"""


def memory(folder: Path, largest: Path) -> None:
    lines = largest.read_text().splitlines()
    results = len(lines) * TIMES_LARGEST
    print(
        f"{largest.name} x {TIMES_LARGEST}: {results:,} results, "
        f"{largest.stat().st_size * TIMES_LARGEST / 1e6:.0f} MB"
    )
    for form, packed in forms():
        path = folder / "large"
        write_form(path, lines, form, packed, TIMES_LARGEST)
        print(f"  {form + (', gzip' if packed else ''):12} {peak(path, results):4} MB resident")
        if form == "lines" and not packed:
            print(
                f"  {'and stored':12} {peak(path, results, folder / 'large-store'):4} MB resident"
            )


def peak(path: Path, results: int, store: Path | None = None) -> int:
    arguments = [sys.executable, "-c", CHILD, str(path), *([str(store)] if store else [])]
    child = subprocess.run(
        arguments, input=str(results), capture_output=True, text=True, check=True
    )
    return int(child.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of real result files")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory() as name:
        folder = Path(name)
        lines = {kind: real_lines(options.data, kind) for kind in PARSERS}
        for kind in PARSERS:
            compare(folder, kind, lines[kind], options.rounds)
        compare_forms(folder, lines["ping"], options.rounds)
        with_store(folder, lines["ping"], options.rounds)
        if options.memory:
            files = [*options.data.glob("*.ndjson"), *options.data.glob("*.jsonl")]
            memory(folder, max(files, key=lambda path: path.stat().st_size))


if __name__ == "__main__":
    main()
