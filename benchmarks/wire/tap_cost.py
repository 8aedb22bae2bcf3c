"""How much of the error against a capture is the capture's own.

    sudo .venv/bin/python benchmarks/wire/tap_cost.py

The kernel can stamp a packet twice on its way out: as it enters the queue of the device
(TX_SCHED, before the tap of a capture) and as the driver takes it (TX_SOFTWARE, after it). The time
between the two is what the kernel spends there, with and without somebody capturing. Ours is the
second stamp, the capture's lies between them: so the difference of the two rows below is an error
of the capture and not of the probe.
"""

import contextlib
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capture import Capture
from path import ADDRESS, PROBER, Veth, inside

SO_TIMESTAMPING, MSG_ERRQUEUE = 37, 0x2000
TX_SOFTWARE, SOFTWARE, TX_SCHED, OPT_ID, OPT_TSONLY = 1 << 1, 1 << 4, 1 << 8, 1 << 7, 1 << 11
COUNT = 1_000


def spans(address: str, gap: float) -> list[int]:
    """TX_SOFTWARE minus TX_SCHED of each packet, nanoseconds."""
    found: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        flags = TX_SOFTWARE | SOFTWARE | TX_SCHED | OPT_ID | OPT_TSONLY
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
        sock.setblocking(False)
        for _ in range(COUNT):
            with contextlib.suppress(OSError):  # port unreachable, from the packet before
                sock.sendto(b"x" * 64, (address, 9))
            time.sleep(gap)
            stamps: list[int] = []
            with contextlib.suppress(BlockingIOError):
                while True:
                    _, messages, _, _ = sock.recvmsg(0, 256, MSG_ERRQUEUE)
                    for level, kind, data in messages:
                        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
                            seconds, nanoseconds = struct.unpack_from("qq", data)
                            stamps.append(seconds * 1_000_000_000 + nanoseconds)
            if len(stamps) == 2:
                found.append(stamps[1] - stamps[0])
    return found


def row(title: str, gap: float) -> None:
    done = subprocess.run(
        inside(PROBER, sys.executable, __file__, str(gap)), stdout=subprocess.PIPE, check=True
    )
    found = sorted(json.loads(done.stdout))
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    print(f"{title:32}{p50 / 1e3:8.1f}{p99 / 1e3:8.1f}{len(found):8}/{COUNT}", flush=True)


def main() -> None:
    print(f"{'queue to driver, us':32}{'p50':>8}{'p99':>8}{'n':>8}/sent")
    with tempfile.TemporaryDirectory() as folder, Veth():
        for title, gap in (("100/s", 0.01), ("2,000/s", 0.0005)):
            row(f"{title}, nobody captures", gap)
            with Capture(PROBER, Path(folder) / "tap.pcap"):
                row(f"{title}, tcpdump running", gap)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(spans(ADDRESS[4][1], float(sys.argv[1]))))
    else:
        main()
