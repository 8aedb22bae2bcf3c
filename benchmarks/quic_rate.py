"""QUIC handshakes per CPU second of the client, beside `aioquic.asyncio.connect` in the same run.

    python benchmarks/quic_rate.py [--handshakes 300]

The server is ngtcp2's (Debian package ngtcp2-server) on loopback, a process of its own, so only
the client's CPU time is counted: sockets included, full and resumed, one after the other. Numbers
of one machine and minute mean little; the ratios are what is compared. The two take turns.
"""

import argparse
import asyncio
import contextlib
import datetime
import random
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.tls import SessionTicket
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.record import AddressFamily, Sample, Target

HERE = "127.0.0.1"
TIMEOUT_NS = 10_000_000_000
TURNS = 10


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def make_certificate(folder: Path, padding: int = 0) -> None:
    """`certificate.pem` with its `key.pem`, and the same as `ca.pem`; `padding` makes it longer."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if padding:
        filler = x509.UnrecognizedExtension(
            x509.ObjectIdentifier("1.3.6.1.4.1.32473.1"), bytes(padding)
        )
        builder = builder.add_extension(filler, critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(pem)
    (folder / "ca.pem").write_bytes(pem)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[int]:
    program = shutil.which("gtlsserver", path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert program is not None, "Debian package ngtcp2-server"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HERE, 0))
        port = int(one.getsockname()[1])
    command = [program, "-q", "-d", str(folder), HERE, str(port)]
    command += [str(folder / "key.pem"), str(folder / "certificate.pem")]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    try:
        yield port
    finally:
        server.terminate()
        server.wait()


async def plain(ca_file: str, port: int, count: int, *, resumed: bool) -> int:
    """What anybody would write first. Returns how many were of the kind asked for."""
    tickets: list[SessionTicket] = []
    came = asyncio.Event()

    def take(ticket: SessionTicket) -> None:
        tickets.append(ticket)
        came.set()

    done = 0
    for _ in range(count):
        configuration = QuicConfiguration(
            alpn_protocols=["h3"], cafile=ca_file, server_name="localhost"
        )
        if tickets:
            configuration.session_ticket = tickets.pop()
            tickets.clear()
        came.clear()
        async with connect(
            HERE,
            port,
            configuration=configuration,
            session_ticket_handler=take if resumed else None,
        ) as client:
            if resumed:
                await came.wait()
                done += client._quic.tls.session_resumed  # noqa: SLF001
            else:
                done += 1
    return done


async def ours(ca_file: str, port: int, count: int, *, resumed: bool) -> int:
    samples: list[Sample] = []

    def emit(series: int, sample: Sample) -> None:
        del series
        if sample.metric == "quic_handshake" and sample.value_ns is not None:
            samples.append(sample)

    network = SystemNetwork()
    environment = ProbeEnvironment(network, SystemClock(), random.Random(), emit, lambda *_: None)
    mode = "resumed" if resumed else "cold"
    probe = QUIC.open(environment, {"ca_file": ca_file, "mode": mode})
    target = Target("here", "localhost", port=port)
    for number in range(count):
        probe.fire(Shot(0, number, target, HERE, AddressFamily.IPV4, TIMEOUT_NS))
        await probe.drain()
    probe.close()
    network.close()
    return sum(sample.mode == mode for sample in samples)


Run = Callable[..., Awaitable[int]]


def compare(ca_file: str, port: int, count: int, *, resumed: bool) -> None:
    word = "resumed" if resumed else "full"
    runs: dict[str, Run] = {"pathbudget": ours, "aioquic": plain}
    used, done = dict.fromkeys(runs, 0.0), dict.fromkeys(runs, 0)
    for _ in range(TURNS):
        for label, run in runs.items():
            before = cpu_seconds()
            done[label] += asyncio.run(run(ca_file, port, count // TURNS, resumed=resumed))  # type: ignore[arg-type]
            used[label] += cpu_seconds() - before
    total = count // TURNS * TURNS
    for label in runs:
        each_us = 1e6 * used[label] / total
        print(f"{word:8} {label:11} {total / used[label]:6.0f} per CPU second, "
              f"{each_us:6.0f} us each, {done[label]}/{total} {word}")  # fmt: skip
    print(f"{word:8} pathbudget / aioquic: {used['aioquic'] / used['pathbudget']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--handshakes", type=int, default=300)
    count = parser.parse_args().handshakes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_certificate(folder)
        with serving(folder) as port:
            for resumed in (False, True):
                compare(str(folder / "ca.pem"), port, count, resumed=resumed)


if __name__ == "__main__":
    main()
