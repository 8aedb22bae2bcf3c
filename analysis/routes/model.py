"""The words of routes: what was seen, what changed, and what it cost. Read this first.

    PathSeries       which packets: vantage, target address, protocol
    FlowPath         hops of one flow in one trace
    PathObservation  all flows of one trace: the path set
    RouteEvent       the path set changed beyond what sampling explains
    LevelShift       delay or its variation moved to another level
    BgpEvent         k of n peers changed their minds about a site's prefix
    FeedEvent        a feed fell silent or came back
    MemberFinding    one member of a group of parallel links is sick
    Incident         what of all this belongs together, who did it, and its cost in ms
    RouteStability   prevalence and persistence of the routes of one series (Paxson 1996)
    FeedStatus       what a BGP feed is worth now

`route_report.py` puts all of it together.

Times are windows: a change between two looks lies somewhere between them, never at the second.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from pathbudget.probes.record import AddressFamily


class Window(NamedTuple):
    """A change happened after `after_unix_ns` and not later than `by_unix_ns`."""

    after_unix_ns: int
    by_unix_ns: int


class Estimate(NamedTuple):
    """A number in ns with its interval, at the confidence that goes with it."""

    value_ns: float
    low_ns: float
    high_ns: float
    confidence: float = 0.95


class PathSeries(NamedTuple):
    """Whose path it is. Traces explain the probes of the same vantage and address."""

    vantage: str
    region: str
    site: str
    target: str
    address: str
    family: AddressFamily | None
    protocol: str = ""


Hop = frozenset[str]
"""What answered at one hop limit: addresses, routers or AS numbers; empty: nobody did (wild)."""

WILD: Hop = frozenset()


@dataclass(frozen=True, slots=True)
class FlowPath:
    """What one flow passed, from hop limit 1 on. `reached`: the last hop is the destination."""

    flow: int | None
    hops: tuple[Hop, ...]
    reached: bool
    hop_rtt_ns: tuple[float | None, ...] = ()
    """Smallest round trip of each hop, None where nobody answered."""
    labels: tuple[str, ...] = ()
    """MPLS stack by hop, empty text where there is none."""
    sent: tuple[int, ...] = ()
    """Packets sent with each hop limit; empty where that is not known."""
    answered: tuple[int, ...] = ()
    """How many of them were answered."""
    gap: int | None = None
    """Where the last hop is at an unknown distance (nobody answered for long, then one try with a
    large hop limit was): index of the first of the silent hops, of which there may be any number.
    """


@dataclass(frozen=True, slots=True)
class PathObservation:
    """One trace. `confidence` is that of its stopping rule, None where it had none."""

    series: PathSeries
    started_unix_ns: int
    ended_unix_ns: int
    flows: tuple[FlowPath, ...]
    confidence: float | None = None
    measurement: str = ""


class Granularity(StrEnum):
    """What a hop is."""

    ADDRESS = "address"
    ROUTER = "router"
    AS = "as"


class RouteEventKind(StrEnum):
    """Kinds of change of a path set."""

    FLUTTER = "flutter"
    """The same set; a load balancer did its job. Never part of an incident."""
    FLAP = "flap"
    """A to B and back to A within ten minutes."""
    SHIFT = "shift"
    """Another set is the dominant one from now on."""
    LOST = "lost"
    """The destination is no longer reached."""
    FOUND = "found"
    """It is reached again."""


@dataclass(frozen=True, slots=True)
class RouteEvent:
    """One change of one series. `before` and `after` are path sets in words of `granularity`."""

    kind: RouteEventKind
    series: PathSeries
    window: Window
    granularity: Granularity
    before: frozenset[tuple[str, ...]]
    after: frozenset[tuple[str, ...]]
    as_before: tuple[str, ...] = ()
    as_after: tuple[str, ...] = ()
    back: Window | None = None
    """Of a flap: when it returned."""
    first_difference: int | None = None
    """Hop limit at which the sets begin to differ."""


@dataclass(frozen=True, slots=True)
class LevelShift:
    """The level of `metric` moved. `what`: ``rtt`` for its level, ``pdv`` for its spread, ``loss``.

    `false_alarms` is the stated rate: expected false shifts per 1,000 samples of a calm series.
    """

    series: PathSeries
    metric: str
    what: str
    window: Window
    before: Estimate
    after: Estimate
    cost: Estimate
    """after minus before."""
    false_alarms: float
    gradual: bool = False
    """It swells and falls over hours (a queue at busy hour), and comes back by itself."""
    floor_ns: float | None = None
    """Of `rtt`: by how much the quickest twentieth moved. A queue leaves it where it was."""


class FeedState(StrEnum):
    """What a feed is worth at the moment."""

    LIVE = "live"
    STALE = "stale"
    """Nothing for longer than its heartbeat allows: silence there is no news of stability."""
    DOWN = "down"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """A feed or peer changed its state."""

    feed: str
    peer: str
    window: Window
    before: FeedState
    after: FeedState
    detail: str = ""


class BgpEventKind(StrEnum):
    """What peers said of a prefix."""

    PATH = "path"
    """Another AS path, prepends apart."""
    WITHDRAWN = "withdrawn"
    ANNOUNCED = "announced"
    ORIGIN = "origin"
    """Another AS announces it: MOAS, or a hijack."""
    INVALID = "invalid"
    """RPKI says that this origin may not announce it (RFC 6811)."""


@dataclass(frozen=True, slots=True)
class BgpEvent:
    """`peers_changed` of `peers_live` peers; withdrawn of some and alive at others is PATH."""

    kind: BgpEventKind
    prefix: str
    site: str
    window: Window
    peers_changed: int
    peers_live: int
    before: str
    """AS path of most peers that changed, without prepends; empty: no route. `after` is theirs."""
    after: str
    rpki: str = ""
    back: Window | None = None
    """Of a flap: when it returned to `before`; `after` is where it was meanwhile."""


class OutageKind(StrEnum):
    """How it was away."""

    OUTAGE = "outage"
    FLAPPING = "flapping"


@dataclass(frozen=True, slots=True)
class Outage:
    """Nothing came back from `began` to `ended`; `ended` is None while it lasts."""

    kind: OutageKind
    series: PathSeries
    began: Window
    ended: Window | None
    lost: int
    times: int = 1
    """Of flapping: how often it went away."""


@dataclass(frozen=True, slots=True)
class MemberFinding:
    """One flow (member of a LAG or ECMP group) differs from its group.

    `what` is ``loss`` or ``rtt``. `p_value` is corrected for the number of flows looked at
    (`method`), so that over hundreds of healthy members a finding is a false alarm with at most
    `alpha`.
    """

    series: PathSeries
    window: Window
    flows: tuple[int, ...]
    what: str
    value: float
    """Loss of these flows (share), or their median RTT minus the group's (ns)."""
    low: float
    high: float
    group: float
    p_value: float
    alpha: float
    method: str
    flows_seen: int


class Cause(StrEnum):
    """What an incident is."""

    PATH_MOVED = "path_moved"
    """Packets go another way since."""
    FLAP = "flap"
    WITHDRAWN = "withdrawn"
    """Nobody carries packets there any more, and BGP says so."""
    OUTAGE = "outage"
    """Nothing arrives, and routing does not say why."""
    MEMBER = "member"
    """One of several parallel links is sick."""
    QUEUE = "queue"
    """A queue swells and falls: congestion."""
    LEVEL = "level"
    """Delay moved and the path that we can see did not (below IP, or on the way back)."""
    LOSS = "loss"
    BLACK_HOLE = "black_hole"
    """Large packets vanish without a word (RFC 2923)."""
    FEED = "feed"
    """A BGP feed fell silent: what it does not say is unknown."""
    ORIGIN = "origin"
    """Somebody else announces the prefix."""
    ROUTING_ONLY = "routing_only"
    """BGP changed, and no packet of ours noticed."""


@dataclass(frozen=True, slots=True)
class MovedLine:
    """A budget line that the incident moved. Verdicts in the words of `analysis.verdict`."""

    region: str
    site: str
    tier: str
    line: str
    before_ms: float
    after_ms: float
    allowance_ms: float | None
    verdict_before: str
    verdict_after: str


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened once, however many series, peers and probes noticed it.

    `cost` is the change of the round trip with its interval, None where it cannot be told (nothing
    came back). `blamed` is an AS (``AS65012``) or a link (``10.1.0.1 > 10.1.6.1``), empty where
    nobody can be named; `reason` says why, in one sentence. `over`: when it was back to normal.
    """

    cause: Cause
    window: Window
    series: tuple[PathSeries, ...]
    cost: Estimate | None
    blamed: str
    reason: str
    over: Window | None = None
    lines: tuple[MovedLine, ...] = ()
    evidence: tuple["Evidence", ...] = field(default=())


Evidence = RouteEvent | LevelShift | BgpEvent | FeedEvent | Outage | MemberFinding


@dataclass(frozen=True, slots=True)
class RouteShare:
    """One route (path set) of a series. `prevalence` is its share of the observations."""

    paths: frozenset[tuple[str, ...]]
    observations: int
    prevalence: float
    low: float
    high: float
    """Interval of the prevalence (Clopper-Pearson), as if observations were independent."""
    sojourns: int
    """How often it was entered."""
    mean_sojourn_ns: float
    """From first to last observation of a stay, mean; interval-censored by `gap_ns`."""
    first_unix_ns: int
    last_unix_ns: int


@dataclass(frozen=True, slots=True)
class RouteStability:
    """How stable the way of one series was. Routes in order of prevalence, the dominant one first.

    Returns within `gap_ns` (median time between two observations) are unseen.
    """

    series: PathSeries
    granularity: Granularity
    observations: int
    first_unix_ns: int
    last_unix_ns: int
    gap_ns: float
    routes: tuple[RouteShare, ...]
    entropy_bits: float
    flutters: int
    changes: int
    changes_per_day: float
    """-ln(1 - c/m)/gap of c changes in m gaps."""
    changes_low: float
    changes_high: float
    as_paths: tuple[tuple[str, ...], ...] = ()
    """AS path of each route, where prefixes are known."""


@dataclass(frozen=True, slots=True)
class FeedStatus:
    """`age_ns`: since the last message. `peers_live` of `peers` have a session or spoke lately."""

    feed: str
    kind: str
    state: FeedState
    last_unix_ns: int | None
    age_ns: int | None
    lag_ns: int | None
    """Arrival minus the source's own time, median of late."""
    peers: int
    peers_live: int
    prefixes: int
    updates: int
    quarantined: int
    """Stamped in the future, or unreadable."""
    detail: str = ""
