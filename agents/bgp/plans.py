"""What a file of feeds asks for, valid as it stands (`feeds_file` reads it)."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.bgp_watch import Watch
from pathbudget.probes.bgp.bmp import View
from pathbudget.probes.bgp.record import FeedKind

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
RIS_LIVE_URL = "wss://ris-live.ripe.net/v1/ws/"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and port to listen on."""

    address: str
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else (f"{self.address}:{self.port}")
        )


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A BGP session that one router opens to us; nothing is announced."""

    listen: Endpoint
    peer: str
    peer_asn: int
    local_asn: int
    router_id: str
    families: tuple[str, ...] = ("ipv4", "ipv6")
    add_path: bool = False
    hold_time_s: int = 90


@dataclass(frozen=True, slots=True)
class RisLivePlan:
    """RIS Live by WebSocket; or a file of its messages, which is followed as it grows."""

    url: str = RIS_LIVE_URL
    collectors: tuple[str, ...] = ()
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class MrtPlan:
    """A file of updates that is followed as it grows, behind a dump of the table to start from."""

    file: Path
    table: Path | None = None
    collector: str = ""


@dataclass(frozen=True, slots=True)
class BmpPlan:
    """Where routers send BMP to, and which may."""

    listen: Endpoint
    allow: tuple[Network, ...]
    view: View | None = None


Source = SessionPlan | RisLivePlan | MrtPlan | BmpPlan


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """One feed: where it comes from, and what is expected of it."""

    name: str
    kind: FeedKind
    source: Source
    rules: FeedRules = field(default_factory=FeedRules)


@dataclass(frozen=True, slots=True)
class BgpPlan:
    """All of a file. `prefixes` are pairs of site and prefix (or address)."""

    feeds: tuple[FeedPlan, ...]
    prefixes: tuple[tuple[str, str], ...]
    settle_ns: int
    vrps: Path | None = None

    @property
    def watch(self) -> Watch:
        """What a route table keeps."""
        return Watch.of_sites(self.prefixes)

    @property
    def heartbeats(self) -> frozenset[str]:
        """Of all feeds."""
        return frozenset[str]().union(*(feed.rules.heartbeats for feed in self.feeds))
