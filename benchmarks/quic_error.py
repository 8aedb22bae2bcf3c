"""Error of QUIC handshake times against a packet capture on the prober's own interface.

    sudo .venv/bin/python benchmarks/quic_error.py [--handshakes 300]

The server is ngtcp2's (Debian package ngtcp2-server), with a certificate that makes its flight
three datagrams, the last one short: the wire's own time is from our first datagram to that one.
One at a time, and 100 in flight on a path of 40 ms, each with the event loop at rest and busy half
of the time. Columns are the median and the 99th percentile of the absolute error, and the largest.
"""

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "wire"))

from capture import Capture  # noqa: E402
from path import ADDRESS, PEER, PROBER, Delay, Veth, inside  # noqa: E402
from quic_rate import make_certificate  # noqa: E402

from pathbudget.probes.clock import SystemClock  # noqa: E402
from pathbudget.probes.contract import ProbeEnvironment, Shot  # noqa: E402
from pathbudget.probes.network import SystemNetwork  # noqa: E402
from pathbudget.probes.quic.probe import QUIC  # noqa: E402
from pathbudget.probes.record import AddressFamily, Sample, Target  # noqa: E402

PORT = 4433
UDP, UDP_HEADER = 17, 8
SAME_NS = 500_000_000
"""A handshake of the capture and a sample of the same port that began so close are the same."""
TIMEOUT_NS = 10_000_000_000
LAST_BYTES = 200, 1_200
"""Between these is the datagram that ends the server's flight: those before it are full, and what
only acknowledges is shorter.
"""
PADDING_BYTES = 1_900


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[None]:
    program = shutil.which("gtlsserver", path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert program is not None, "Debian package ngtcp2-server"
    # One datagram each: several in one would be one packet to the capture.
    command = [program, "-q", "--max-gso-dgrams=1", "-d", str(folder), ADDRESS[4][1], str(PORT)]
    command += [str(folder / "key.pem"), str(folder / "certificate.pem")]
    server = subprocess.Popen(inside(PEER, *command), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(0.5)
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def wire_times(capture: Capture) -> dict[int, list[tuple[int, int]]]:
    """By the prober's port: when each of its handshakes began, and how long it took.

    A port is used again now and then: the connection id that we chose tells the handshakes apart.
    """
    began: dict[bytes, tuple[int, int]] = {}
    ended: set[bytes] = set()
    wire: dict[int, list[tuple[int, int]]] = {}
    for packet in capture.packets():
        data = packet.payload[UDP_HEADER:]
        if packet.protocol != UDP or len(data) < 24 or not data[0] & 0x80:
            continue
        source = int.from_bytes(packet.payload[:2], "big")
        after_first = 6 + data[5]
        if int.from_bytes(packet.payload[2:4], "big") == PORT:
            own = data[after_first + 1 : after_first + 1 + data[after_first]]
            began.setdefault(own, (source, packet.unix_ns))
        elif source == PORT and (own := data[6:after_first]) in began:
            size = int.from_bytes(packet.payload[4:6], "big") - UDP_HEADER
            if own not in ended and LAST_BYTES[0] < size < LAST_BYTES[1]:
                ended.add(own)
                port, start = began[own]
                wire.setdefault(port, []).append((start, packet.unix_ns - start))
    return wire


def on_wire(sample: dict, wire: dict[int, list[tuple[int, int]]]) -> int | None:
    """How long it took by the capture; None where that has not seen it."""
    for began, span in wire.get(sample["flow"], ()):
        if abs(began - sample["sent_unix_ns"]) < SAME_NS:
            return span
    return None


def compare(
    title: str, samples: Sequence[dict], wire: dict[int, list[tuple[int, int]]], dropped: int
) -> None:
    errors: list[int] = []
    for one in samples:
        span = on_wire(one, wire)
        if span is not None and one["value_ns"] is not None and one["source"] == "kernel":
            errors.append(abs(one["value_ns"] - span))
    if not errors:
        print(f"{title:34} nothing to compare of {len(samples)}")
        return
    errors.sort()
    p50, p99 = errors[len(errors) // 2], errors[min(len(errors) - 1, int(len(errors) * 0.99))]
    note = f"capture dropped {dropped}" if dropped else ""
    print(f"{title:34}{p50 / 1e3:9.1f}{p99 / 1e3:9.1f}{errors[-1] / 1e3:9.1f} us  "
          f"{len(errors)}/{len(samples)} {note}", flush=True)  # fmt: skip


async def spin() -> None:
    """What a busy agent does to its loop: 3 ms of work at a time, half of the time."""
    while True:
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass
        await asyncio.sleep(0.003)


async def measure(ca_file: str, count: int, at_once: int, busy: bool) -> None:
    samples: list[Sample] = []

    def emit(series: int, sample: Sample) -> None:
        del series
        if sample.metric == "quic_handshake":
            samples.append(sample)

    network, clock = SystemNetwork(), SystemClock()
    await asyncio.sleep(0.2)
    environment = ProbeEnvironment(network, clock, random.Random(), emit, lambda *_: None)
    probe = QUIC.open(environment, {"ca_file": ca_file})
    spinning = asyncio.create_task(spin()) if busy else None
    target = Target("peer", "localhost", port=PORT)
    for start in range(0, count, at_once):
        for number in range(start, min(count, start + at_once)):
            probe.fire(Shot(0, number, target, ADDRESS[4][1], AddressFamily.IPV4, TIMEOUT_NS))
        await probe.drain()
    if spinning is not None:
        spinning.cancel()
    probe.close()
    network.close()
    for one in samples:
        said = {"value_ns": one.value_ns, "flow": one.flow, "source": one.clock_source}
        print(json.dumps({**said, "sent_unix_ns": one.sent_unix_ns}))


def run(folder: Path, count: int, at_once: int, *, busy: bool) -> list[dict]:
    command = [sys.executable, __file__, "--child", str(folder / "ca.pem"), str(count)]
    command += [str(at_once), "busy" if busy else "calm"]
    done = subprocess.run(inside(PROBER, *command), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--handshakes", type=int, default=300)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        ca_file, count, at_once, word = asked.child
        asyncio.run(measure(ca_file, int(count), int(at_once), word == "busy"))
        return
    print(f"{'':34}{'p50':>9}{'p99':>9}{'largest':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_certificate(folder, padding=PADDING_BYTES)
        for path in (Veth(), Delay(20)):
            with path, serving(folder):
                for at_once in (1, 100):
                    for busy in (False, True):
                        capture = Capture(PROBER, folder / "wire.pcap")
                        with capture:
                            samples = run(folder, asked.handshakes, at_once, busy=busy)
                        title = f"{path.name}, {at_once} at once{', busy loop' if busy else ''}"
                        compare(title, samples, wire_times(capture), capture.dropped)


if __name__ == "__main__":
    main()
