"""A running nginx: HTTP/1.1 and 2 with tickets and early data, and what its own log says."""

import contextlib
import datetime
import ipaddress
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.programs import program

CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  log_format proof '$server_port|$connection|$connection_requests|$ssl_session_reused|'
    '$early|$server_protocol|$status|$request_length|$http_authorization|$request';
  access_log access.log proof;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s; client_max_body_size 10m;
  ssl_certificate certificate.pem; ssl_certificate_key key.pem;
  ssl_protocols TLSv1.3; ssl_session_ticket_key ticket.key; ssl_early_data on;
  server {{ listen 127.0.0.1:{one} ssl; include pages; }}
  server {{ listen 127.0.0.1:{two} ssl http2; include pages; }}
  server {{ listen 127.0.0.1:{once} ssl; keepalive_timeout 0; include pages; }}
  server {{ listen 127.0.0.1:{short} ssl http2; keepalive_requests 2; include pages; }}
  server {{ listen 127.0.0.1:{clear} http2; include pages; }}
}}
"""
PAGES = """
set $early $ssl_early_data;  # as of the request: by the end the handshake is complete
location = / { add_header Server-Timing 'cache;desc="hit";dur=2.5'; return 200 hi; }
location = /large { root .; try_files /large =404; }
location = /moved { return 302 /; }
location = /away { return 301 https://other.example/; }
location = /secret { if ($http_authorization = "") { return 401 no; } return 200 yes; }
location = /upload { proxy_pass http://127.0.0.1:1/; error_page 502 =200 /; }
"""


@dataclass(frozen=True)
class Line:
    """What nginx logs of one request."""

    port: str
    connection: str
    number: str
    """Of the request on its connection, from 1."""
    reused: str
    """``r`` where the TLS session was resumed."""
    early: str
    """``1`` where the request came as early data."""
    protocol: str
    status: str
    length: str
    authorization: str
    request: str


@dataclass(frozen=True)
class Nginx:
    """Ports: HTTP/1.1; HTTP/2; one request per connection; HTTP/2 with two; HTTP/2 without TLS."""

    folder: Path
    one: int
    two: int
    once: int
    short: int
    clear: int

    @property
    def ca_file(self) -> str:
        """The certificate, to be trusted."""
        return str(self.folder / "certificate.pem")

    def lines(self, count: int) -> list[Line]:
        """The requests since the log was emptied, which are so many: it is written behind them."""
        text = ""
        for _ in range(500):
            text = (self.folder / "access.log").read_text()
            if text.count("\n") >= count:
                break
            time.sleep(0.01)
        found = [Line(*line.split("|")) for line in text.splitlines()]
        assert len(found) == count
        return found

    def forget(self) -> None:
        """Empty the log."""
        (self.folder / "access.log").write_text("")


def running(folder: Path) -> Iterator[Nginx]:
    """Start it; it ends when the iterator does."""
    make_certificate(folder)
    found = Nginx(folder, *free_ports(5))
    (folder / "ticket.key").write_bytes(os.urandom(80))
    (folder / "large").write_bytes(bytes(3_000_000))
    (folder / "pages").write_text(PAGES)
    ports = {name: getattr(found, name) for name in ("one", "two", "once", "short", "clear")}
    (folder / "nginx.conf").write_text(CONFIGURATION.format(**ports))
    command = [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(found.clear)
        yield found
        process.terminate()


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in held]


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nobody listens on {port}")


def make_certificate(folder: Path) -> None:
    """A self-signed certificate for localhost and 127.0.0.1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), address])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(secret)
