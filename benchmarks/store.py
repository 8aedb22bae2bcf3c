"""Speed and memory of codec, journal and store: python benchmarks/store.py [SAMPLES].

Run by hand; figures depend on the machine and on what else runs there.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.journal_reader import JournalReader
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import decode_line, encode_line
from pathbudget.probes.identifiers import new_id
from pathbudget.probes.record import (
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)

NOON = 1_764_590_400_000_000_000
RNG = random.Random(7)


def measurement(number: int, samples: int) -> Measurement:
    started = NOON + number * 1_000_000
    return Measurement(
        id=new_id(started, RNG),
        vantage=Vantage(name=f"v{number % 7}", region=f"r{number % 7}"),
        target=Target(name=f"t{number % 11}", host="192.0.2.1", site=f"s{number % 11}"),
        probe="icmp",
        campaign="benchmark",
        address="192.0.2.1",
        started_unix_ns=started,
        samples=tuple(sample(started, seq) for seq in range(samples)),
    )


def sample(started: int, seq: int) -> Sample:
    sent = started + seq * 250_000_000
    if seq % 50 == 49:
        return Sample(seq, "rtt", sent, failure=Failure(FailureKind.TIMEOUT, Stage.WAIT))
    value = 15_000_000 + int(RNG.expovariate(1e-5))
    return Sample(seq, "rtt", sent, value, clock_source=ClockSource.KERNEL, lateness_ns=0, ttl=57)


def stream(total: int, each: int) -> Iterator[Measurement]:
    return (measurement(number, each) for number in range(total // each))


def timed(what: str, number: int, unit: str, action: Callable[[], object]) -> None:
    start, cpu_start = time.perf_counter(), time.process_time()
    action()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    rate, each = number / took, cpu / number * 1e6
    print(f"{what:40} {rate:12,.0f} {unit}/s {each:8.2f} us CPU each")


def of_codec(total: int) -> None:
    records = list(stream(total, 1000))
    lines = [encode_line(record) for record in records]
    timed("encode JSON lines", total, "samples", lambda: [encode_line(r) for r in records])
    timed("decode JSON lines", total, "samples", lambda: [decode_line(line) for line in lines])


def of_journal(total: int, folder: Path) -> None:
    record = measurement(0, total)
    journal = Journal.create(folder / "a.jsonl", reserve_bytes=1 << 20)
    journal.begin(0, record)

    def append() -> None:
        for one in record.samples:
            journal.append(0, one)

    timed("append to the journal", total, "samples", append)
    journal.close()
    timed(
        "read a journal", total, "samples", lambda: list(JournalReader(journal.path).measurements())
    )


def of_store(total: int, each: int, folder: Path) -> None:
    records = list(stream(total, each))
    store = Store(folder / f"store-{each}")
    label = f"({each} samples a measurement)"
    timed(f"write {label}", total, "samples", lambda: store.write(records))
    timed(f"write again {label}", total, "samples", lambda: store.write(records))
    timed(f"read {label}", total, "samples", lambda: sum(1 for _ in store.measurements()))
    timed(f"verify {label}", total, "samples", store.verify)


def largest_memory(total: int, folder: Path) -> None:
    """Write and read a stream in a process of its own; print how large it became."""
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import resource
from store import Store, stream
store = Store({str(folder / f"memory-{total}")!r})
store.write(stream({total}, 1000))
assert sum(len(m.samples) for m in store.measurements()) == {total}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    print(f"largest memory, {total:,} samples written and read: {done.stdout.strip()} MB")


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of_codec(total)
        of_journal(total, folder)
        of_store(total, 1000, folder)
        of_store(total // 5, 3, folder)
        for size in (total, 5 * total):
            largest_memory(size, folder)
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
