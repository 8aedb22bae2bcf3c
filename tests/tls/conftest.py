"""TLS servers on the fake network, in threads, and those of others."""

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.programs import program
from tests.tls.servers import (
    NGINX,
    Nginx,
    Server,
    carry,
    free_ports,
    make_certificate,
    wait_for,
)

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.record import AddressFamily, Sample
from pathbudget.probes.tls import stream
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000


Holds = Callable[[], object]


@pytest.fixture(scope="session")
def certificate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def large_certificate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than ten segments of it."""
    return make_certificate(tmp_path_factory.mktemp("large"), more_names=600)


@pytest.fixture(scope="session")
def locked_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A key that a password is needed for. Nobody may be asked for it."""
    file = tmp_path_factory.mktemp("locked") / "locked.pem"
    secret = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    file.write_bytes(secret)
    return str(file)


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


@pytest.fixture(params=["ssl", "openssl"])
def library(request: pytest.FixtureRequest) -> str:
    """What does the cryptography on our side."""
    return str(request.param)


@pytest.fixture
def shoot_tls(fake: FakeNetwork, fake_collector: Collector, ca_file: str, library: str) -> Shoot:
    """Open the TLS probe and fire one shot after the other; the samples in their order."""

    def run(*, shots: int = 1, resolve: bool = False, **options: str | bool) -> list[Sample]:
        probe = fake_collector.open(TLS, {"ca_file": ca_file, "library": library, **options})
        for seq in range(shots):
            probe.fire(shot_at("192.0.2.1", seq=seq, host="site.example", resolve=resolve))
            fake.clock.advance(3_000 * MS)
        return [sample for _, sample in fake_collector.emitted]

    return run


Handler = Callable[[socket.socket], None]
"""Plays the server on one accepted connection; the socket is closed behind it."""


Relay = Callable[[list[int], int], int]
"""Starts a relay (see `relay`) and returns its port."""


@pytest.fixture
def relay(serve: Callable[..., int]) -> Relay:
    """Carries connections to other ports: the first to the first one, and so on, then the last.

    Where `window` is given it holds what follows the first so many bytes from the server back for
    60 ms, as an initial window does; and every answer to the client takes 20 ms.
    """

    def start(ports: list[int], window: int = 0) -> int:
        left = list(ports)

        def handle(connection: socket.socket) -> None:
            port = left.pop(0) if len(left) > 1 else left[0]
            with socket.create_connection(("127.0.0.1", port)) as there:
                back = threading.Thread(target=carry, args=(there, connection, window))
                back.start()
                carry(connection, there, 0)
                back.join()

        return serve(handle)

    return start


@pytest.fixture(scope="session")
def nginx_process(
    tmp_path_factory: pytest.TempPathFactory, certificate_folder: Path
) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    found = Nginx(folder, *free_ports(4))
    ports = {name: getattr(found, name) for name in ("early", "plain", "forgets", "mutual")}
    (folder / "ticket.key").write_bytes(os.urandom(80))
    (folder / "nginx.conf").write_text(NGINX.format(folder=certificate_folder, **ports))
    command = [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(found.mutual)
        yield found
        process.terminate()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tickets are waited for however busy this machine is."""
    monkeypatch.setattr(stream, "TICKET_WAIT_NS", 4_000 * MS)


@pytest.fixture
def nginx(nginx_process: Nginx, patience: None) -> Nginx:
    (nginx_process.folder / "access.log").write_text("")
    return nginx_process


@pytest.fixture
def s_server(
    tmp_path: Path, certificate_folder: Path, patience: None
) -> Iterator[Callable[..., Server]]:
    """Start ``openssl s_server`` with these options."""
    running: list[Server] = []

    def start(*options: str, folder: Path = certificate_folder) -> Server:
        (port,) = free_ports(1)
        log = tmp_path / f"s_server-{len(running)}.log"
        listen = ["-accept", f"127.0.0.1:{port}", "-tls1_3", "-www"]
        command = [program("openssl"), "s_server", *listen]
        command += ["-cert", str(folder / "certificate.pem"), "-key", str(folder / "key.pem")]
        if "-early_data" in options:
            command.remove("-www")
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*command, *options], stdin=subprocess.PIPE, stdout=sink, stderr=sink
            )
        running.append(Server(port, log, process))
        running[-1].count("ACCEPT", 1)
        return running[-1]

    yield start
    for server in running:
        server.process.kill()
        server.process.communicate()
