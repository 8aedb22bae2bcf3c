"""How fast MRT is read, beside mrtparse: ``python benchmarks/bgp_read.py FILE...`` (CPU seconds).

Ours makes a `RouteUpdate` of every route; mrtparse makes dictionaries of every record.
"""

import bz2
import gzip
import sys
import time
from io import BytesIO
from pathlib import Path

from pathbudget.analysis.routes.bgp_state import RouteTable
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.record import FeedKind


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return bz2.decompress(data) if data.startswith(b"BZh") else data


def main() -> None:
    import mrtparse

    for path in map(Path, sys.argv[1:]):
        data = unpacked(path)
        began = time.process_time()
        reader = MrtReader(Channel(path.name, FeedKind.MRT))
        updates = [*reader.feed(data, 2**62), *reader.end(2**62)]
        ours = time.process_time() - began
        began = time.process_time()
        table = RouteTable()
        events = sum(len(table.see(update)) for update in updates)
        state = time.process_time() - began
        began = time.process_time()
        try:
            records = str(sum(1 for _ in mrtparse.Reader(BytesIO(data))))
        except KeyError:
            records = "none: it ends with a KeyError"
        theirs = time.process_time() - began
        print(f"{path.name}: {reader.records} records, {len(updates)} updates in {ours:.2f} s")
        print(f"  route table: {events} events in {state:.2f} s")
        print(f"  mrtparse: {records} records in {theirs:.2f} s")


if __name__ == "__main__":
    main()
