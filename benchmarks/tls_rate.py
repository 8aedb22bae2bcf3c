"""TLS 1.3 handshakes per CPU second of the client, beside plain `ssl` and `openssl s_time`.

    python benchmarks/tls_rate.py [--handshakes 500] [--rounds 5]

The server is a process of its own, so only the client's CPU time is counted: TCP included, full and
resumed. Of s_time it is its whole user and system time; what it prints leaves the system's share
out. It verifies as ours does. Rounds are interleaved and medians taken: numbers of one machine and
minute mean little, the ratios are what is compared.
"""

import argparse
import asyncio
import contextlib
import datetime
import functools
import multiprocessing
import random
import re
import resource
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Sample, Target
from pathbudget.probes.tls.probe import TLS

HERE = "127.0.0.1"
TIMEOUT_NS = 10_000_000_000
AT_ONCE = 16
"""Of ours; a campaign has many under way. The others know one at a time."""


def cpu_seconds() -> float:
    """Of this process and of its children that have ended (not of the server)."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def make_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "pair.pem").write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def serve(folder: Path, listener: socket.socket) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair.pem")

    def handle(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as tls,
        ):
            tls.sendall(b"x")
            tls.recv(10)

    while True:
        threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()


def plain(ca_file: str, port: int, count: int, *, resumed: bool) -> int:
    """What anybody would write first. Returns how many were of the kind asked for."""
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    session = None
    done = 0
    for _ in range(count):
        with (
            socket.create_connection((HERE, port)) as connection,
            context.wrap_socket(connection, server_hostname="localhost", session=session) as tls,
        ):
            done += tls.session_reused == (session is not None)
            if resumed:
                tls.recv(1)
                session = tls.session
    return done


def ours(ca_file: str, port: int, count: int, *, resumed: bool) -> int:
    return asyncio.run(_ours(ca_file, port, count, "resumed" if resumed else "cold"))


def count_nothing(series: int, word: str) -> None:
    del series, word


async def _ours(ca_file: str, port: int, count: int, mode: str) -> int:
    samples: list[Sample] = []

    def emit(series: int, sample: Sample) -> None:
        del series
        if sample.metric == "tls_handshake" and sample.value_ns is not None:
            samples.append(sample)

    network = SystemNetwork()
    environment = ProbeEnvironment(network, SystemClock(), random.Random(), emit, count_nothing)
    probe = TLS.open(environment, {"ca_file": ca_file, "mode": mode})
    target = Target("here", "localhost", port=port)
    for first in range(0, count, AT_ONCE):
        for number in range(first, min(count, first + AT_ONCE)):
            probe.fire(Shot(0, number, target, HERE, AddressFamily.IPV4, TIMEOUT_NS))
        await probe.drain()
    probe.close()
    network.close()
    return sum(sample.mode == mode for sample in samples)


def s_time(ca_file: str, port: int, count: int, *, resumed: bool) -> int:
    """`openssl s_time` for as long as about so many take; it cannot be told a number."""
    seconds = max(1, count // 800)
    words = ["-reuse", "-www", "/"] if resumed else ["-new"]
    command = ["openssl", "s_time", "-connect", f"{HERE}:{port}", "-CAfile", ca_file, "-tls1_3",
               "-verify", "1", "-time", str(seconds), *words]  # fmt: skip
    said = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    found = re.findall(r"(\d+) connections in \d+ real seconds", said)
    return int(found[0]) if found else 0


def measure(run: Callable[[], int]) -> tuple[float, int]:
    before = cpu_seconds()
    done = run()
    return cpu_seconds() - before, done


def compare(ca_file: str, port: int, options: argparse.Namespace, *, resumed: bool) -> None:
    word = "resumed" if resumed else "full"
    clients = {"pathbudget": ours, "blocking ssl": plain, "openssl s_time": s_time}
    costs: dict[str, list[float]] = {name: [] for name in clients}
    dones: dict[str, int] = dict.fromkeys(clients, 0)
    for _ in range(options.rounds):
        for name, run in clients.items():
            call = functools.partial(run, ca_file, port, options.handshakes, resumed=resumed)
            used, done = measure(call)
            costs[name].append(1e6 * used / max(1, done))
            dones[name] += done
    medians = {name: statistics.median(cost) for name, cost in costs.items()}
    for name, cost_us in medians.items():
        print(f"{word:8} {name:15} {1e6 / cost_us:6.0f} per CPU second, {cost_us:6.0f} us each, "
              f"{dones[name]} {word}")  # fmt: skip
    for name in ("blocking ssl", "openssl s_time"):
        print(f"{word:8} pathbudget / {name}: {medians[name] / medians['pathbudget']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--handshakes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_certificate(folder)
        ca_file = str(folder / "ca.pem")
        with socket.create_server((HERE, 0), backlog=128) as listener:
            port = listener.getsockname()[1]
            server = multiprocessing.get_context("fork").Process(
                target=serve, args=(folder, listener), daemon=True
            )
            server.start()
            for resumed in (False, True):
                compare(ca_file, port, options, resumed=resumed)
            server.terminate()
            server.join()


if __name__ == "__main__":
    main()
