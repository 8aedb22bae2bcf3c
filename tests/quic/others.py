"""QUIC servers that others wrote, on loopback: caddy (quic-go) and gtlsserver (ngtcp2)."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs import program

HERE = "127.0.0.1"

CADDYFILE = """
{{
  admin off
  auto_https off
  storage file_system {folder}/caddy
  servers :{port} {{
    protocols h3
  }}
}}
https://localhost:{port} {{
  bind 127.0.0.1
  tls {folder}/{certificate} {folder}/key.pem
  log {{
    output file {log}
    format json
  }}
  respond /hello "hello" 200
  respond "caddy" 200
}}
"""


@dataclass
class Other:
    """One server: where it listens and what it writes down."""

    port: int
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """The access log of caddy; lines that it is still writing are left out."""
        found: list[dict[str, Any]] = []
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    def said(self) -> str:
        """Everything that gtlsserver has told."""
        return self.log.read_text(errors="replace")


def free_port() -> int:
    """A UDP port that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HERE, 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], port: int, log: Path, said: Path) -> Generator[Other]:
    """The server, from when it answers to the end of the block."""
    with said.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(port, process, said)
        yield Other(port, log)
    finally:
        process.kill()  # in good order they would wait for their connections
        process.wait()


def wait_for(port: int, process: "subprocess.Popen[bytes]", said: Path) -> None:
    """Until the server answers a version that nobody speaks (RFC 9000, 6)."""
    hello = b"\xc0\x0a\x0a\x0a\x0a\x08" + bytes(8) + b"\x08" + bytes(8)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((HERE, port))
        one.settimeout(0.1)
        until = time.monotonic() + 15
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                one.send(hello.ljust(1200, b"\0"))
                one.recv(2_000)
                return
            assert process.poll() is None, said.read_text(errors="replace")
            time.sleep(0.02)
    raise AssertionError(f"no answer on port {port}: {said.read_text(errors='replace')}")


@contextlib.contextmanager
def caddy(folder: Path, place: Path) -> Generator[Other]:
    """HTTP/3 alone, with an access log in JSON."""
    port, log = free_port(), place / "access.json"
    file = place / "Caddyfile"
    text = CADDYFILE.format(folder=folder, port=port, log=log, certificate="certificate.pem")
    file.write_text(text)
    command = [program("caddy"), "run", "--config", str(file), "--adapter", "caddyfile"]
    with running(command, port, log, place / "caddy.log") as other:
        yield other


@contextlib.contextmanager
def gtlsserver(
    folder: Path, place: Path, *options: str, certificate: str = "certificate.pem"
) -> Generator[Other]:
    """ngtcp2's server, which tells each packet and frame."""
    port, log = free_port(), place / "gtlsserver.log"
    pages = place / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "index.html").write_text("hello\n")
    (pages / "large").write_bytes(bytes(300_000))
    ends = [str(folder / "key.pem"), str(folder / certificate)]
    dumps = ["--no-quic-dump", "--no-http-dump"]
    command = [program("gtlsserver"), *dumps, "-d", str(pages), *options, HERE, str(port), *ends]
    with running(command, port, log, log) as other:
        yield other
