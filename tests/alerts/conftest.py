"""Measurements, signals and rules, and servers of others that listen."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.responder.conftest import certificates as certificates  # noqa: PLC0414

from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.analysis.alerts.model import AlertKind, Severity, Signal
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    SyncState,
    Target,
    Transport,
    Vantage,
)

AT = 1_790_000_000_000_000_000 // 3_600_000_000_000 * 3_600_000_000_000
SECOND, MINUTE, HOUR = 1_000_000_000, 60_000_000_000, 3_600_000_000_000
RULES = """
every = "30s"
[[receiver]]
name = "hook"
kind = "webhook"
url = "{url}"
"""


def a_signal(bad: bool | None = True, key: str = "r/one", **values: Any) -> Signal:
    """What a rule `r` says of one subject."""
    given: dict[str, Any] = {
        "rule": "r",
        "kind": AlertKind.AGENT_SILENT,
        "severity": Severity.TICKET,
        "summary": "agent one is silent.",
        **values,
    }
    return Signal(key=key, bad=bad, **given)


def echoes(
    values_ms: Sequence[float | None], begin: int = AT, every: int = SECOND, name: str = ""
) -> Measurement:
    """Round trips of one vantage, one after the other; None is a loss."""
    samples = tuple(
        Sample(
            i,
            "rtt",
            begin + i * every,
            value_ns=round(value * 1e6),
            clock_source=ClockSource.KERNEL,
        )
        if value is not None
        else Sample(i, "rtt", begin + i * every, failure=Failure(FailureKind.TIMEOUT, Stage.WAIT))
        for i, value in enumerate(values_ms)
    )
    return Measurement(
        id=name or f"echo-{begin}",
        vantage=Vantage("tokyo-1", "tokyo"),
        target=Target("fra", "192.0.2.1", "frankfurt"),
        probe="icmp",
        started_unix_ns=begin,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        duration_ns=len(samples) * every,
    )


def handshakes(resumed: list[bool], begin: int = AT, every: int = SECOND) -> Measurement:
    """Handshakes that offer a ticket."""
    samples = tuple(
        Sample(i, "setup", begin + i * every, value_ns=20_000_000, mode=ConnectionMode.RESUMED)
        if one
        else Sample(
            i,
            "setup",
            begin + i * every,
            failure=Failure(FailureKind.NOT_RESUMED, Stage.HANDSHAKE),
        )
        for i, one in enumerate(resumed)
    )
    return Measurement(
        id=f"tls-{begin}",
        vantage=Vantage("tokyo-1", "tokyo"),
        target=Target("fra", "192.0.2.1", "frankfurt", 443),
        probe="tls",
        started_unix_ns=begin,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        options={"mode": "resumed"},
        transport=Transport.TLS,
        clock=ClockQuality(),
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def a_heartbeat(name: str, at: int, sync: SyncState = SyncState.SYNCHRONISED) -> AgentStatus:
    """What an agent says of itself."""
    fields = [one.name for one in msgspec.structs.fields(SpoolState) if one.required]
    spool = msgspec.convert(dict.fromkeys(fields, 0), SpoolState)
    clock = ClockQuality(sync, "chrony", 1_000_000)
    return AgentStatus(agent=name, software="x", at_unix_ns=at, spool=spool, clock=clock)


@dataclass
class Post:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        """What it said."""
        found: dict[str, object] = json.loads(self.body)
        return found


@dataclass
class Hook:
    """A webhook that listens; answers with `codes` in turn, then 200."""

    posts: list[Post] = field(default_factory=list[Post])
    codes: list[int] = field(default_factory=list[int])
    port: int = 0
    hold: threading.Event = field(default_factory=threading.Event)
    """While cleared, requests wait for their answer."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/alerts"


def serve(hook: Hook) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.hold.wait(30)
            hook.posts.append(Post(self.path, dict(self.headers.items()), body))
            code = hook.codes.pop(0) if hook.codes else 200
            self.send_response(code)
            if code in (301, 307):
                self.send_header("Location", f"{hook.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", hook.port), Handler)
    hook.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    found.hold.set()
    server = serve(found)
    yield found
    found.hold.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def rules(tmp_path: Path, hook: Hook) -> Path:
    """A file of rules about tier chat (45 ms at p95), told to the hook."""
    path = tmp_path / "rules.toml"
    path.write_text(
        RULES.format(url=hook.url)
        + """
[[rule]]
name = "lines"
kind = "budget_at_risk"
tiers = ["chat"]
fade = "1m"
[[rule.window]]
long = "10m"
short = "2m"
burn_rate = 5
"""
    )
    return path
