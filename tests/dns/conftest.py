"""A certificate for localhost; servers of others, once for all; a real network."""

import contextlib
import datetime
import ipaddress
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.programs import program


@dataclass(frozen=True)
class Certificate:
    """For localhost, signed by itself."""

    file: Path
    key: Path


WAIT_SECONDS = 20.0


def free_port() -> int:
    """A port that is free for TCP and UDP, and is no other test's: the system chooses it."""
    for _ in range(100):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = int(tcp.getsockname()[1])
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


Ports = dict[str, int]
"""Of a server, by transport."""


@contextlib.contextmanager
def running(
    command: list[str], log: Path, ports: Ports, ready: Callable[[], bool]
) -> Generator[Ports]:
    """A server that answers, until the end of the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program(command[0]), *command[1:]], stdin=subprocess.PIPE, stdout=out, stderr=out
        )
    try:
        until = time.monotonic() + WAIT_SECONDS
        while not ready():
            said = log.read_text(errors="replace")[-2000:]
            assert process.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.02)
        yield ports
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()


def listens(port: int) -> bool:
    """Whether somebody accepts TCP connections there."""
    with socket.socket() as one:
        one.settimeout(0.5)
        return one.connect_ex(("127.0.0.1", port)) == 0


UNBOUND = """
server:
    directory: "{folder}"
    chroot: ""
    username: ""
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    use-systemd: no
    logfile: ""
    verbosity: 0
    log-queries: yes
    log-replies: yes
    do-ip6: no
    num-threads: 1
    interface: 127.0.0.1@{udp}
    interface: 127.0.0.1@{dot}
    tls-port: {dot}
    tls-service-key: "{key}"
    tls-service-pem: "{certificate}"
    access-control: 127.0.0.0/8 allow
    module-config: "iterator"
    root-hints: ""
    nsid: "ascii_unbound-here"
    max-udp-size: 1232
    local-zone: "lan." static
    local-data: "host.lan. 300 IN A 192.0.2.7"
    local-data: "host.lan. 300 IN A 192.0.2.3"
    local-data: "host.lan. 300 IN AAAA 2001:db8::7"
{big}
    local-zone: "wild.lan." redirect
    local-data: "wild.lan. 60 IN A 192.0.2.9"
    local-zone: "denied.lan." refuse
    do-not-query-localhost: no
stub-zone:
    name: "cached.example."
    stub-addr: 127.0.0.1@{authority}
stub-zone:
    name: "broken.example."
    stub-addr: 127.0.0.1@1
remote-control:
    control-enable: no
"""


def run_unbound(
    folder: Path, certificate: Certificate, authority: int
) -> contextlib.AbstractContextManager[Ports]:
    """A resolver: zones of its own, and one that it has to ask the authority for."""
    ports = {"udp": free_port(), "dot": free_port(), "authority": authority}
    ports["tcp"] = ports["udp"]
    big = "\n".join(
        f'    local-data: "big.lan. 300 IN TXT {number}{"x" * 200}"' for number in range(10)
    )
    text = UNBOUND.format(
        folder=folder, certificate=certificate.file, key=certificate.key, big=big, **ports
    )
    config = folder / "unbound.conf"
    config.write_text(text)
    return running(
        ["unbound", "-d", "-p", "-c", str(config)],
        folder / "unbound.log",
        ports,
        lambda: listens(ports["udp"]) and listens(ports["dot"]),
    )


KNOT = """
server:
    listen: 127.0.0.1@{udp}
    rundir: "{folder}"
    nsid: "knot-here"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{folder}"
log:
  - target: stderr
    any: info
template:
  - id: default
    storage: "{folder}"
    file: "%s.zone"
mod-stats:
  - id: default
    request-protocol: on
    response-code: on
zone:
  - domain: wild.example
    dnssec-signing: on
    module: mod-stats/default
  - domain: cached.example
    module: mod-stats/default
control:
    listen: "{folder}/knot.sock"
"""

WILD_ZONE = """$ORIGIN wild.example.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
host A 192.0.2.7
alias CNAME edge.host
edge.host A 192.0.2.8
*.many A 192.0.2.9
"""

CACHED_ZONE = """$ORIGIN cached.example.
$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
host A 192.0.2.7
* 300 A 192.0.2.9
"""


def run_knot(folder: Path) -> contextlib.AbstractContextManager[Ports]:
    """An authoritative server: a signed zone with a wildcard, and one for the resolver to ask."""
    ports = {"udp": free_port()}
    ports["tcp"] = ports["udp"]
    (folder / "wild.example.zone").write_text(WILD_ZONE)
    (folder / "cached.example.zone").write_text(CACHED_ZONE)
    config = folder / "knot.conf"
    config.write_text(KNOT.format(folder=folder, **ports))
    log = folder / "knot.log"
    return running(
        ["knotd", "-c", str(config)],
        log,
        ports,
        lambda: "server started" in log.read_text(errors="replace") and listens(ports["tcp"]),
    )


DNSDIST = """
setSecurityPollSuffix("")
setACL("127.0.0.0/8")
setLocal("127.0.0.1:{udp}")
addTLSLocal("127.0.0.1:{dot}", "{certificate}", "{key}")
addDOHLocal("127.0.0.1:{doh}", "{certificate}", "{key}", "/dns-query", {{ reusePort=false }})
newServer({{ address="127.0.0.1:{backend}" }}):setUp()
webserver("127.0.0.1:{web}")
setWebserverConfig({{ statsRequireAuthentication=false, acl="127.0.0.0/8" }})
"""


def run_dnsdist(
    folder: Path, certificate: Certificate, backend: int
) -> contextlib.AbstractContextManager[Ports]:
    """A balancer in front of a resolver: DNS over TLS and HTTPS."""
    ports = {name: free_port() for name in ("udp", "dot", "doh", "web")}
    config = folder / "dnsdist.conf"
    text = DNSDIST.format(
        certificate=certificate.file, key=certificate.key, backend=backend, **ports
    )
    config.write_text(text)
    return running(
        ["dnsdist", "--supervised", "--disable-syslog", "-C", str(config)],
        folder / "dnsdist.log",
        ports,
        lambda: listens(ports["doh"]) and listens(ports["dot"]),
    )


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), here]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    found = Certificate(folder / "certificate.pem", folder / "key.pem")
    found.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return found


@pytest.fixture(scope="session")
def knot_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("knot")


@pytest.fixture(scope="session")
def unbound_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unbound")


@pytest.fixture(scope="session")
def knot(knot_folder: Path) -> Generator[Ports]:
    with run_knot(knot_folder) as ports:
        yield ports


@pytest.fixture(scope="session")
def unbound(unbound_folder: Path, certificate: Certificate, knot: Ports) -> Generator[Ports]:
    with run_unbound(unbound_folder, certificate, knot["udp"]) as ports:
        yield ports


@pytest.fixture(scope="session")
def dnsdist(
    tmp_path_factory: pytest.TempPathFactory, certificate: Certificate, unbound: Ports
) -> Generator[Ports]:
    with run_dnsdist(tmp_path_factory.mktemp("dnsdist"), certificate, unbound["udp"]) as ports:
        yield ports
