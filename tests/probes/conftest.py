"""A fake network, a collector of samples, TLS servers on the fake network and on loopback."""

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Sample
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000


@pytest.fixture
def fake() -> FakeNetwork:
    return FakeNetwork(FakeClock())


@pytest.fixture
def fake_collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock)


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    """The real network of this host."""
    network = SystemNetwork()
    await asyncio.sleep(0.02)  # until the kernel stamps
    yield network
    network.close()


@pytest.fixture
def collector(network: SystemNetwork) -> Collector:
    """On the real network of this host."""
    return Collector(network, SystemClock())


Holds = Callable[[], object]


@pytest.fixture
def until() -> Callable[[Holds], Awaitable[None]]:
    """Wait until a condition holds that another thread brings about."""

    async def wait(holds: Holds) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    return wait


@pytest.fixture(scope="session")
def certificate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost, site.example, 127.0.0.1 and ::1, with its key."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("site.example")]
    names += [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "certificate.pem").write_bytes(pem)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(secret)
    return folder


@pytest.fixture
def ca_file(certificate_folder: Path) -> str:
    """The certificate, to be trusted."""
    return str(certificate_folder / "certificate.pem")


@pytest.fixture
def server_context(certificate_folder: Path) -> ssl.SSLContext:
    """A TLS server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = certificate_folder
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


@pytest.fixture
def tls_path(fake: FakeNetwork, server_context: ssl.SSLContext) -> FakePath:
    """A TLS server 20 ms away on the fake network: site.example, 192.0.2.1."""
    fake.names["site.example"] = {AddressFamily.IPV4: ("192.0.2.1",)}
    fake.paths["192.0.2.1"] = FakePath(round_trip_ns=20 * MS, tls=server_context)
    return fake.paths["192.0.2.1"]


Shoot = Callable[..., list[Sample]]


@pytest.fixture
def shoot_tls(fake: FakeNetwork, fake_collector: Collector, ca_file: str) -> Shoot:
    """Open the TLS probe and fire one shot after the other; the samples in their order."""

    def run(*, shots: int = 1, resolve: bool = False, **options: str | bool) -> list[Sample]:
        probe = fake_collector.open(TLS, {"ca_file": ca_file, **options})
        for seq in range(shots):
            probe.fire(shot_at("192.0.2.1", seq=seq, host="site.example", resolve=resolve))
            fake.clock.advance(3_000 * MS)
        return [sample for _, sample in fake_collector.emitted]

    return run


Handler = Callable[[socket.socket], None]
"""Plays the server on one accepted connection; the socket is closed behind it."""


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Start a server on loopback, one thread per connection; returns its port."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def play(handler: Handler, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handler(connection)

    def accept(listener: socket.socket, handler: Handler) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=play, args=(handler, connection))
                threads.append(thread)
                thread.start()

    def start(handler: Handler, address: str = "127.0.0.1") -> int:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 0), family=family, backlog=128)
        listeners.append(listener)
        thread = threading.Thread(target=accept, args=(listener, handler))
        threads.append(thread)
        thread.start()
        port: int = listener.getsockname()[1]
        return port

    yield start
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join()


@pytest.fixture
def closed_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
