"""Error of TLS handshake times against a capture on the prober's own interface.

    sudo apt-get install nginx-light openssl tcpdump
    sudo .venv/bin/python benchmarks/wire/tls_error.py [--handshakes 400]

nginx at the other end of a veth pair or of a path of 20 ms. From the capture: the last segment of
the ClientHello to the last segment of the server's flight before our next one, per connection. One
handshake at a time, then 100 in flight while the event loop is kept busy in bursts of 3 ms. Beside
it the time that user space would have told, as asyncio's own transports do.
"""

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from capture import Capture, Packet
from path import ADDRESS, PEER, PROBER, Delay, Veth, inside

PORT = 443
TCP = 6
CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error;
events {{ worker_connections 1024; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen {port} ssl backlog=1024; ssl_protocols TLSv1.3;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location / {{ return 200 "x"; }} }} }}
"""


def child(options: argparse.Namespace) -> None:
    """Inside the prober's namespace: one line of JSON per handshake."""
    from pathbudget.probes.clock import SystemClock
    from pathbudget.probes.fake_collector import Collector, shot_at
    from pathbudget.probes.network import SystemNetwork
    from pathbudget.probes.tls.probe import TLS

    async def keep_busy() -> None:
        while True:
            until = time.monotonic() + 0.003
            while time.monotonic() < until:
                pass
            await asyncio.sleep(0.003)

    async def run() -> None:
        network = SystemNetwork()
        await asyncio.sleep(0.2)
        collector = Collector(network, SystemClock(), random.Random())
        probe = collector.open(TLS, {"verify": False})
        busy = asyncio.create_task(keep_busy()) if options.at_once > 1 else None
        for first in range(0, options.handshakes, options.at_once):
            for seq in range(first, min(options.handshakes, first + options.at_once)):
                address = ADDRESS[4][1]
                shot = shot_at(address, seq=seq, port=PORT, timeout_ns=20_000_000_000)
                probe.fire(shot)
            await probe.drain()
            if options.at_once == 1:
                await asyncio.sleep(0.005)
        if busy is not None:
            busy.cancel()
        flows = {one.seq: one.flow for one in collector.of("connect")}
        for one in collector.of("tls_handshake"):
            if one.value_ns is not None and one.stamps is not None:
                stamps = one.stamps
                user = (stamps.user_received_ns or 0) - (stamps.user_sent_ns or 0)
                found = (flows[one.seq], one.value_ns, user, one.clock_source)
                sys.stdout.write(json.dumps(found) + "\n")
        probe.close()
        network.close()

    asyncio.run(run())


def on_the_wire(packets: Sequence[Packet]) -> dict[int, int]:
    """Local port to ns from the ClientHello's last segment to the flight's last one."""
    hello: dict[int, int] = {}
    flight: dict[int, int] = {}
    spoke_again: set[int] = set()
    for packet in packets:
        if packet.protocol != TCP or len(packet.payload) < 20:
            continue
        source, destination = struct.unpack_from("!HH", packet.payload)
        if len(packet.payload) <= (packet.payload[12] >> 4) * 4:
            continue
        if destination == PORT and source not in spoke_again:
            if source in flight:
                spoke_again.add(source)
            else:
                hello[source] = packet.unix_ns
        elif source == PORT and destination in hello and destination not in spoke_again:
            flight[destination] = packet.unix_ns
    return {port: flight[port] - hello[port] for port in flight}


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(name: str, handshakes: int, at_once: int, folder: Path) -> None:
    capture = Capture(PROBER, folder / "wire.pcap")
    with capture:
        command = [sys.executable, __file__, "--child", "--handshakes", str(handshakes),
                   "--at-once", str(at_once)]  # fmt: skip
        done = subprocess.run(
            inside(PROBER, *command), check=True, capture_output=True, text=True, timeout=300
        )
    wire = on_the_wire(list(capture.packets()))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    matched = [(value - wire[port], user - wire[port]) for port, value, user, _ in told
               if port in wire]  # fmt: skip
    kernel = sum(source == "kernel" for *_, source in told)
    error = [abs(one) / 1e3 for one, _ in matched]
    by_user = [other / 1e3 for _, other in matched]
    print(
        f"{name:34} {len(matched)}/{handshakes} matched, {kernel} by kernel stamps: |error| median "
        f"{statistics.median(error):.1f} us, p99 {quantile(error, 0.99):.1f}, "
        f"max {max(error):.1f}; user space +{statistics.median(by_user):,.0f} us, "
        f"p99 {quantile(by_user, 0.99):,.0f}"
    )


@contextlib.contextmanager
def server(folder: Path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "1",
         "-subj", "/CN=peer"],
        check=True, capture_output=True,
    )  # fmt: skip
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, port=PORT))
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin") or sys.exit("nginx is missing")
    process = subprocess.Popen(inside(PEER, nginx, "-c", str(config)))
    time.sleep(0.5)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--handshakes", type=int, default=400)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    for path in (Veth(), Delay(10)):
        with path, tempfile.TemporaryDirectory() as folder, server(Path(folder)):
            for at_once in (1, 100):
                name = f"{path.name}, {at_once} at once" + (", busy loop" if at_once > 1 else "")
                measure(name, options.handshakes, at_once, Path(folder))


if __name__ == "__main__":
    main()
