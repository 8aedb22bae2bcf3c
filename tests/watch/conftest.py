"""What is watched: measurements made by hand, an agent on loopback, a receiver of OTLP."""

import gzip
import http.server
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pathbudget.probes.record import (
    AddressFamily,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Transport,
    Vantage,
)

BEGAN = 1_790_000_000_000_000_000
MS = 1_000_000


def sample(metric: str, at_ms: float, value_ms: float | None, **more: Any) -> Sample:
    """One sample of shot 0, `at_ms` after the beginning; a failure without a value."""
    failure = None if value_ms is not None else Failure(FailureKind.TIMEOUT, Stage.WAIT, "none")
    found: dict[str, Any] = {
        "seq": 0,
        "metric": metric,
        "sent_unix_ns": BEGAN + round(at_ms * MS),
        "value_ns": None if value_ms is None else round(value_ms * MS),
        "failure": failure,
    }
    return Sample(**(found | more))


def request_of(*samples: Sample, **more: Any) -> Measurement:
    """A measurement of the http probe."""
    found: dict[str, Any] = {
        "id": "0199-a",
        "vantage": Vantage("office", "here", host="probe-1"),
        "target": Target("lo", "shop.example", "loop", port=443),
        "probe": "http",
        "started_unix_ns": BEGAN,
        "duration_ns": 60_000 * MS,
        "samples": samples,
        "address": "192.0.2.7",
        "family": AddressFamily.IPV4,
        "transport": Transport.TLS,
        "options": {"version": "1.1", "method": "GET", "path": "/", "timeout_ns": 2_000 * MS},
        "software": "pathbudget 1.2.3",
    }
    return Measurement(**(found | more))


def whole_request() -> Measurement:
    """One request: every step of it, with times that are known."""
    mode = ConnectionMode.COLD
    return request_of(
        sample(Metric.RESOLVE, 0, 3),
        sample(Metric.CONNECT, 3, 20),
        sample(Metric.TLS_HANDSHAKE, 24, 21, mode=mode, notes={"cipher": "TLS_AES_128"}),
        sample(Metric.CLIENT_COMPUTE, 24, 1, mode=mode),
        sample(Metric.SETUP, 0, 44, mode=mode),
        sample(Metric.SEND, 46, 2, mode=mode),
        sample(Metric.WAIT, 48, 30, mode=mode),
        sample(Metric.TTFB, 46, 32, mode=mode),
        sample(Metric.RECEIVE, 78, 22, mode=mode),
        sample(Metric.DELIVERY_GAP, 80, 10, part=1),
        sample(Metric.DELIVERY_VARIATION, 80, -1, part=1),
        sample(Metric.DELIVERY_GAP, 90, 10, part=2),
        sample(Metric.FIRST_BYTE, 0, 76, mode=mode, lateness_ns=5_000, notes={"status": 200}),
    )


@dataclass
class OtlpReceiver:
    """Keeps what is posted. `answers` are given first, one each; then 200."""

    requests: list[tuple[str, bytes, dict[str, str]]] = field(
        default_factory=list[tuple[str, bytes, dict[str, str]]]
    )
    answers: list[tuple[int, dict[str, str], bytes]] = field(
        default_factory=list[tuple[int, dict[str, str], bytes]]
    )
    url: str = ""

    def bodies(self, path: str) -> list[bytes]:
        return [body for where, body, _ in self.requests if where == path]


@pytest.fixture
def otlp() -> Iterator[OtlpReceiver]:
    """A receiver of traces and metrics in this process."""
    receiver = OtlpReceiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, headers, answer = (
                receiver.answers.pop(0) if receiver.answers else (200, {}, b"")
            )
            if status == 200:
                kept = gzip.decompress(body), dict(self.headers.items())
                receiver.requests.append((self.path, *kept))
            self.send_response(status)
            for name, value in (*headers.items(), ("content-length", str(len(answer)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield receiver
    server.shutdown()
    thread.join()
    server.server_close()


Say = Callable[[str], None]
