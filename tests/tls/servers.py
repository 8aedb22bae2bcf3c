"""TLS servers that others wrote, as the tests run them, and a relay between."""

import contextlib
import datetime
import ipaddress
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(folder: Path, *, more_names: int = 0) -> Path:
    """A self-signed certificate for localhost, site.example, 127.0.0.1 and ::1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("site.example")]
    names += [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
    names += [
        x509.DNSName(f"one-more-name-of-it-{number:04}.example") for number in range(more_names)
    ]
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


def carry(source: socket.socket, sink: socket.socket, window: int) -> None:
    """Carry bytes one way; what follows the first `window` of them waits for 60 ms."""
    carried = 0
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            if carried < window < carried + len(data):
                sink.sendall(data[: window - carried])
                time.sleep(0.06)
                sink.sendall(data[window - carried :])
            else:
                sink.sendall(data)
            carried += len(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


# Early or not is read as of the request: by the time of its line the handshake may be complete.
NGINX = """
daemon off; master_process off; pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  map $early $arrived_early {{ 1 1; default -; }}
  log_format proof '$server_port $ssl_session_reused $arrived_early $ssl_client_verify $request';
  access_log access.log proof;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s;
  ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;
  ssl_protocols TLSv1.3; ssl_session_ticket_key ticket.key;
  server {{ listen 127.0.0.1:{early} ssl http2; ssl_early_data on;
    set $early $ssl_early_data; location / {{ return 200 hi; }} }}
  server {{ listen 127.0.0.1:{plain} ssl;
    set $early $ssl_early_data; location / {{ return 200 hi; }} }}
  server {{ listen 127.0.0.1:{forgets} ssl; ssl_session_tickets off;
    set $early $ssl_early_data; location / {{ return 200 hi; }} }}
  server {{ listen 127.0.0.1:{mutual} ssl; ssl_verify_client on; ssl_early_data on;
    ssl_client_certificate {folder}/certificate.pem;
    set $early $ssl_early_data; location / {{ return 200 hi; }} }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    """A running nginx. Ports: with tickets and early data, with tickets only, with tickets that it
    forgets, and one that asks for our certificate.
    """

    folder: Path
    early: int
    plain: int
    forgets: int
    mutual: int

    def said(self, port: int, count: int) -> list[list[str]]:
        """Of each request to a port: reused (r or .), early (1 or -), client verified, method.

        nginx writes a line when the request is over; so many are waited for.
        """
        found: list[str] = []
        for _ in range(500):
            lines = (self.folder / "access.log").read_text().splitlines()
            found = [line for line in lines if line.startswith(f"{port} ")]
            if len(found) >= count:
                break
            time.sleep(0.01)
        return [line.split()[1:5] for line in found]


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


@dataclass
class Server:
    """A running ``openssl s_server``."""

    port: int
    log: Path
    process: "subprocess.Popen[bytes]"

    def count(self, words: str, at_least: int = 0) -> int:
        """How often it has said so; it may take a moment to write it down."""
        found = 0
        for _ in range(500):
            found = self.log.read_text(errors="replace").count(words)
            if found >= at_least:
                break
            time.sleep(0.01)
        return found
