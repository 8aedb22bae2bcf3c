"""Error of the dns probe over UDP against a packet capture on the prober's own interface.

    sudo .venv/bin/python benchmarks/dns_error.py [--count 2000] [--rate 200]

unbound answers at the other end of a veth pair, from data of its own. Every `dns_hit` and every
`dns_miss` is compared with the capture's own time between the same question and its answer; the
first shot, which asks twice for the name at hand to prime the server, is left out. Columns are the
median, the 99th percentile and the largest of the absolute error, idle and beside a busy loop (half
of the time in 3 ms pieces); `n` of `sent` were compared.
"""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "wire"))

from capture import Capture, Packet  # noqa: E402
from path import ADDRESS, PEER, PROBER, Veth, inside  # noqa: E402

PORT = 5300
UDP = 17
SECOND = 1_000_000_000
CONFIG = """
server:
    directory: "{folder}"
    chroot: ""
    username: ""
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    logfile: ""
    interface: 0.0.0.0@{port}
    access-control: 0.0.0.0/0 allow
    module-config: "iterator"
    root-hints: ""
    local-zone: "lan." static
    local-data: "host.lan. 300 IN A 192.0.2.7"
remote-control:
    control-enable: no
"""


def wire(packets: Iterable[Packet]) -> dict[str, list[int | None]]:
    """Round trips on the wire by metric, in the order of sending; None where no answer came."""
    rows: dict[tuple[int, bytes], list[int | None]] = {}
    sent: dict[tuple[int, bytes], int] = {}
    trips: dict[str, list[list[int | None]]] = {"dns_hit": [], "dns_miss": []}
    for packet in packets:
        if packet.protocol != UDP or len(packet.payload) < 8 + 12:
            continue
        source = int.from_bytes(packet.payload[:2], "big")
        target = int.from_bytes(packet.payload[2:4], "big")
        message = packet.payload[8:]
        name = message[12 : message.index(0, 12)]
        key = (target if source == PORT else source, message[:2] + name)
        if target == PORT:
            sent[key], rows[key] = packet.unix_ns, [None]
            kind = "dns_hit" if name.lower() == b"\x04host\x03lan" else "dns_miss"
            trips[kind].append(rows[key])
        elif source == PORT and key in rows and rows[key] == [None]:
            rows[key][0] = packet.unix_ns - sent[key]
    hits, misses = trips["dns_hit"][2:], trips["dns_miss"][1:]
    return {"dns_hit": [one[0] for one in hits], "dns_miss": [one[0] for one in misses]}


async def measure(count: int, rate: float, busy: bool) -> None:
    from pathbudget.probes.clock import SystemClock
    from pathbudget.probes.contract import Shot
    from pathbudget.probes.dns.probe import DNS
    from pathbudget.probes.fake_collector import Collector
    from pathbudget.probes.network import SystemNetwork
    from pathbudget.probes.record import AddressFamily, Target

    async def spin() -> None:
        while True:
            until = time.monotonic() + 0.003
            while time.monotonic() < until:
                pass
            await asyncio.sleep(0.003)

    network = SystemNetwork()
    await asyncio.sleep(0.1)
    collector = Collector(network, SystemClock(), random.Random())
    probe = collector.open(DNS, {"name": "host.lan", "zone": "lan"})
    target = Target("peer", ADDRESS[4][1], port=PORT)
    probe.fire(Shot(0, 0, target, target.host, AddressFamily.IPV4, SECOND))
    await probe.drain()
    collector.emitted.clear()
    spinning = asyncio.create_task(spin()) if busy else None
    finished = asyncio.Event()
    start = time.monotonic_ns() + SECOND // 2

    def fire(due: Sequence[tuple[int, int]]) -> None:
        for at, seq in due:
            late_ns = max(0, time.monotonic_ns() - at)
            probe.fire(
                Shot(0, seq, target, target.host, AddressFamily.IPV4, SECOND, late_ns, due_ns=at)
            )

    gap = round(SECOND / rate)
    network.pace(((start + seq * gap, seq) for seq in range(count)), fire, finished.set)
    await finished.wait()
    await probe.drain()
    probe.close()
    if spinning is not None:
        spinning.cancel()
    network.close()
    for _, sample in collector.emitted:
        line = (sample.seq, str(sample.metric), sample.value_ns, str(sample.clock_source))
        sys.stdout.write(json.dumps(line) + "\n")


def row(title: str, file: Path, count: int, rate: float, busy: bool) -> None:
    word = "busy" if busy else "idle"
    command = [sys.executable, __file__, "--child", word, "--count", str(count)]
    with Capture(PROBER, file) as capture:
        done = subprocess.run(
            inside(PROBER, *command, "--rate", str(rate)), check=True, capture_output=True
        )
    trips = wire(capture.packets())
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    complete = all(len(found) == count for found in trips.values())
    errors: list[float] = []
    for seq, metric, value_ns, _ in samples:
        on_wire = trips[metric][seq] if complete else None
        if value_ns is not None and on_wire is not None:
            errors.append(abs(value_ns - on_wire) / 1e3)
    sources = ",".join(sorted({source for _, _, _, source in samples}))
    errors.sort()
    p99 = errors[min(len(errors) - 1, int(len(errors) * 0.99))] if errors else float("nan")
    middle = statistics.median(errors) if errors else float("nan")
    largest = errors[-1] if errors else float("nan")
    print(f"{title:24}{middle:9.1f}{p99:9.1f}{largest:9.1f}{len(errors):8}/{2 * count} {sources}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        asyncio.run(measure(asked.count, asked.rate, asked.child == "busy"))
        return
    unbound = shutil.which("unbound", path="/usr/sbin:/usr/bin")
    assert unbound is not None, "unbound is not installed"
    print(f"{'error against the wire, us':24}{'p50':>9}{'p99':>9}{'max':>9}{'n':>8}/sent")
    with tempfile.TemporaryDirectory() as name, Veth():
        folder = Path(name)
        config = folder / "unbound.conf"
        config.write_text(CONFIG.format(folder=folder, port=PORT))
        server = subprocess.Popen(
            inside(PEER, unbound, "-d", "-c", str(config)), stderr=subprocess.DEVNULL
        )
        time.sleep(1)
        try:
            row("DNS UDP, idle", folder / "idle.pcap", asked.count, asked.rate, False)
            row("DNS UDP, busy loop", folder / "busy.pcap", asked.count, asked.rate, True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
