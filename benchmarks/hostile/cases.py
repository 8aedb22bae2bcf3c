"""Which probe is opened how, and who is at the other end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hostile import dns_server, http_server
from hostile.malice import MS
from hostile.network import Peer
from hostile.tls_server import MadTls

from pathbudget.probes.contract import Option, Options


@dataclass
class Case:
    """One way to open one probe, and who is at the other end."""

    name: str
    probe: str
    options: Options
    peers: Callable[[Random], Peer] | None = None
    service: Any = None
    """Over UDP: a `FakeService` with `rng`, and `forget`."""
    port: int = 443
    share: float = 1.0
    """Of the rounds asked for."""
    extra_ns: int = 0
    """How much longer than its timeout a shot may take: a stream has its own length too."""

    @property
    def keeps(self) -> bool:
        """Whether connections may stay from round to round."""
        return self.options.get("mode") in ("warm", "idle")


def tls_cases(folder: Path) -> list[Case]:
    """Both libraries."""
    trusted: dict[str, Option] = {"ca_file": str(folder / "certificate.pem")}
    cases: list[Case] = []
    for library, mode, share in (
        ("openssl", "cold", 0.3),
        ("openssl", "resumed", 0.4),
        ("openssl", "early_data", 0.3),
        ("ssl", "cold", 0.95),
        ("ssl", "resumed", 0.05),
    ):
        options = {**trusted, "library": library, "mode": mode}
        peers = MadTls(folder).peer
        cases.append(Case(f"tls {library} {mode}", "tls", options, peers, share=share))
    return cases


def over_http(
    probe: str, body: http_server.Body, more: Options, shares: dict[str, float]
) -> list[Case]:
    """HTTP/1.1 and 2 in clear, on new connections and kept ones."""
    cases: list[Case] = []
    for name, share in shares.items():
        version, mode = name.split()

        def peers(rng: Random, version: str = version) -> Peer:
            if version == "1.1":
                return http_server.Http1Peer(rng, body)
            return http_server.Http2Peer(rng, body)

        options = {"scheme": "http", "version": version, "mode": mode, **more}
        form = f" {more['form']}" if "form" in more else ""
        long = 50 * MS if form else 0
        cases.append(
            Case(f"{probe}{form} {name}", probe, options, peers, share=share, extra_ns=long)
        )
    return cases


def over_tls(probe: str, body: http_server.Body, more: Options, folder: Path, share: float) -> Case:
    """HTTP/1.1 where TLS below it goes mad too."""
    options = {"ca_file": str(folder / "certificate.pem"), **more}
    long = 50 * MS if "chunks" in more else 0
    peers = MadTls(folder, body).peer
    return Case(f"{probe} 1.1 https", probe, options, peers, share=share, extra_ns=long)


def http_cases(folder: Path) -> list[Case]:
    """The phases of one request."""
    plain = http_server.plain
    follow: Options = {"follow_redirects": True}
    return [
        *over_http("http", plain, {}, {"1.1 cold": 0.3, "2 cold": 0.2}),
        *over_http("http", plain, follow, {"1.1 warm": 0.2, "2 warm": 0.2}),
        over_tls("http", plain, {}, folder, 0.1),
    ]


def upload_cases(folder: Path) -> list[Case]:
    """A small body; what is looked at are answers."""
    shares = {"1.1 cold": 0.4, "1.1 warm": 0.2, "1.1 idle": 0.1, "2 cold": 0.15, "2 warm": 0.1}
    few: Options = {"bytes": 4_000}
    return [
        *over_http("upload", http_server.receipt, few, shares),
        over_tls("upload", http_server.receipt, few, folder, 0.05),
    ]


def stream_cases(folder: Path) -> list[Case]:
    """Every form."""
    few: Options = {"chunks": 5, "interval_ms": 10.0}

    def websocket(rng: Random) -> Peer:
        return http_server.Http1Peer(rng, http_server.chunk_messages, upgrades=True)

    shares = {"1.1 cold": 0.2, "1.1 warm": 0.1, "2 cold": 0.09}
    options: Options = {**few, "scheme": "http", "form": "websocket"}
    sse, lines = http_server.chunk_events, http_server.chunk_lines
    return [
        *over_http("token_stream", sse, {**few, "form": "sse"}, shares),
        *over_http("token_stream", lines, {**few, "form": "chunked"}, shares),
        over_tls("token_stream", sse, few, folder, 0.02),
        Case(
            "token_stream websocket",
            "token_stream",
            options,
            websocket,
            share=0.2,
            extra_ns=50 * MS,
        ),
    ]


def completion_cases(folder: Path) -> list[Case]:
    """Short prompts."""
    shares = {"1.1 cold": 0.5, "1.1 warm": 0.3, "2 cold": 0.15}
    few: Options = {"prompt_tokens": 20}
    return [
        *over_http("completion", http_server.completion, few, shares),
        over_tls("completion", http_server.completion, few, folder, 0.05),
    ]


def dns_cases(_: Path) -> list[Case]:
    """Over UDP answers that are cut short lead to the same resolver's TCP."""
    names: Options = {"name": "www.example.org", "zone": "example.org"}
    udp, tcp = dns_server.DatagramResolver, dns_server.StreamResolver
    again: Options = {**names, "retries": 3, "retry_ms": 150, "dnssec": True}
    once: Options = {"name": "www.example.org", "transport": "tcp"}
    return [
        Case("dns udp", "dns", names, tcp, udp(), port=53, share=0.5),
        Case("dns udp retries", "dns", again, tcp, udp(), port=53, share=0.5),
        Case("dns tcp cold", "dns", once, tcp, port=53, share=0.6),
        Case("dns tcp warm", "dns", {**once, "mode": "warm"}, tcp, port=53, share=0.4),
    ]


def quic_cases(folder: Path) -> list[Case]:
    """Where most connections never stand, and where most do."""
    from hostile.quic_server import MadQuic

    cases: list[Case] = []
    for mode, handshakes, share in (("cold", 1, 0.6), ("resumed", 8, 0.2), ("early_data", 8, 0.2)):
        options: Options = {"verify": False, "mode": mode}
        server = MadQuic(folder, handshakes=handshakes)
        cases.append(Case(f"quic {mode}", "quic", options, service=server, share=share))
    return cases


def http3_cases(folder: Path) -> list[Case]:
    """Answers of HTTP/3."""
    from hostile.quic_server import MadQuic

    cases: list[Case] = []
    for mode, share in (("cold", 0.6), ("warm", 0.4)):
        options: Options = {"verify": False, "version": "3", "mode": mode}
        server = MadQuic(folder, handshakes=9)
        cases.append(Case(f"http 3 {mode}", "http", options, service=server, share=share))
    return cases


CASES: dict[str, Callable[[Path], list[Case]]] = {
    "tls": tls_cases,
    "http": http_cases,
    "upload": upload_cases,
    "token_stream": stream_cases,
    "completion": completion_cases,
    "dns": dns_cases,
    "quic": quic_cases,
    "http3": http3_cases,
}
