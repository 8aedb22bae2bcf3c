"""A client of OTLP/HTTP: what is refused for a while is sent again, what is refused is counted.

As the OTLP specification has it: 429, 502, 503 and 504 and a connection that cannot be made or
breaks are tried again, no sooner than `Retry-After` says; anything else is not.
"""

import gzip
import http.client
import os
import random
import ssl
import threading
import urllib.parse
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.probes.errors import WatchError

TRACES, METRICS = "/v1/traces", "/v1/metrics"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""``name=value,name=value``, percent-encoded: where a token is given without the command line."""
RETRIED = frozenset({429, 502, 503, 504})
TIMEOUT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
ANSWER_OCTETS = 65_536


class RefusedError(WatchError):
    """The other end does not take it, now or ever."""


class Endpoint(NamedTuple):
    """Where traces and metrics go. `path` is before `/v1/traces`."""

    secure: bool
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.secure else ''}://{host}:{self.port}{self.path}"


def parse_endpoint(text: str) -> Endpoint:
    """``http://host:4318``. Raises ValueError with what is wrong."""
    parts = urllib.parse.urlsplit(text)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{text!r} is no http or https address")
    if not parts.hostname:
        raise ValueError(f"{text!r} names no host")
    if parts.username or parts.password:
        raise ValueError(f"a password in an address is seen by others; set {HEADERS}")
    if parts.query or parts.fragment:
        raise ValueError(f"{text!r} has more than host, port and path")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 4318)
    return Endpoint(secure, parts.hostname, port, parts.path.rstrip("/"))


def headers_of(environment: dict[str, str]) -> dict[str, str]:
    """What `HEADERS` asks for. Raises ValueError."""
    found: dict[str, str] = {}
    for one in filter(None, environment.get(HEADERS, "").split(",")):
        name, equals, value = one.partition("=")
        name, value = name.strip(), urllib.parse.unquote(value.strip())
        if not equals or not name or any(c in name + value for c in "\r\n"):
            raise ValueError(f"{HEADERS} is not of the form name=value,name=value")
        found[name] = value
    return found


@dataclass(slots=True)
class OtlpClient:
    """One connection at a time, for one thread. `stop` ends waiting for a next try."""

    endpoint: Endpoint
    headers: dict[str, str] = field(default_factory=lambda: headers_of(dict(os.environ)))
    attempts: int = 6
    """Tries of one request before it is given up."""
    stop: threading.Event = field(default_factory=threading.Event)
    rng: random.Random = field(default_factory=random.Random)
    trouble: str = ""
    """Why the last try failed; empty when it did not."""
    _connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes) -> int:
        """Deliver one request; how many parts of it the other end rejected.

        Raises WatchError when it was tried often enough, RefusedError where trying is of no use.
        """
        packed = gzip.compress(body, 1)
        for attempt in range(self.attempts):
            status, answer, wait_s = self._try(path, packed)
            if status == http.HTTPStatus.OK:
                self.trouble = ""
                return _rejected(answer)
            if status and status not in RETRIED:
                self.close()
                raise RefusedError(f"{self.endpoint}{path}: {self.trouble}")
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt) * self.rng.uniform(0.5, 1.0)
            last = attempt == self.attempts - 1
            if last or self.stop.wait(max(pause_s, min(wait_s, LONGEST_PAUSE_S))):
                break
        raise WatchError(f"{self.endpoint}{path}: {self.trouble}")

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _try(self, path: str, packed: bytes) -> tuple[int, bytes, float]:
        """Status (0: none), answer, and how long the other end wants us to wait."""
        connection = self._connection or self._connect()
        headers = {
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
            **self.headers,
        }
        try:
            connection.request("POST", self.endpoint.path + path, packed, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_OCTETS)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.trouble = f"{str(error) or type(error).__name__}"
            self.close()
            return 0, b"", 0.0
        if response.status != http.HTTPStatus.OK:
            self.trouble = f"answered {response.status} {response.reason}"[:200]
        self._connection = connection
        if response.will_close or not response.isclosed():
            self.close()
        told = response.getheader("retry-after", "")
        return response.status, answer, float(told) if told.isdecimal() else 0.0

    def _connect(self) -> http.client.HTTPConnection:
        where = self.endpoint
        if where.secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                where.host, where.port, timeout=TIMEOUT_S, context=context
            )
        return http.client.HTTPConnection(where.host, where.port, timeout=TIMEOUT_S)


def _rejected(answer: bytes) -> int:
    """Of a partial success. Both answers have the same fields, so one message reads them."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    try:
        told = trace_service_pb2.ExportTraceServiceResponse.FromString(answer)
    except DecodeError:
        return 0
    return max(0, int(told.partial_success.rejected_spans))
