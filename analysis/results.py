"""Every noun that comes out of the analysis. The JSON report is exactly `Evaluation`, encoded.

Milliseconds throughout (a person reads these). `None` in `value_ms`, `low_ms` or `high_ms` means
*unbounded*: so many probes were lost, or so few were sent, that the data sets no limit there.
"""

from enum import StrEnum

import msgspec

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.request_results import RequestResults
from pathbudget.analysis.siting.decision_results import HeadlineSampling, Robustness, SiteFact
from pathbudget.analysis.stream_results import StreamSummary, TimerInfo, UnderLoad
from pathbudget.analysis.whole_budget.results import WholeBudget

REPORT_SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """The data may be unable to tell, and there may be none: then we say so."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"
    """There is not one sample (n is 0)."""


class Direction(StrEnum):
    """Which term of the end-to-end budget a line is."""

    INGRESS = "ingress"
    EGRESS = "egress"
    STREAM = "stream"
    """Egress of the chunks of a stream: one way back, and what each was delayed beyond that. Only
    where token streams were measured."""
    NETWORK = "network"
    """Ingress plus egress, combined per request, compared with the tier's network allowance."""


class Mode(StrEnum):
    """Connection mode of a line; `mixture` is the traffic mix of the tier."""

    COLD = "cold"
    RESUMED = "resumed"
    EARLY_DATA = "early_data"
    """0-RTT that the server accepted: the request leaves with the first packet of the handshake."""
    IDLE = "idle"
    """Kept open, and not used for longer than its retransmission timer."""
    WARM = "warm"
    MIXTURE = "mixture"


class Carrier(StrEnum):
    """What carries the requests of a line."""

    TLS = "tls"
    QUIC = "quic"
    MIXED = "mixed"
    """A mixture of modes over more than one transport."""


Carriage = tuple[Carrier, Mode]
"""Transport and connection mode of requests."""


class Method(StrEnum):
    """How a line came about (docs/metrics.md)."""

    MEASURED = "measured"
    SYMMETRIC_SPLIT = "measured+symmetric-split"
    DERIVED_FROM_RTT = "derived-from-rtt"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable, and made by keyword."""


class Quantile(Result, frozen=True):
    """One quantile with its distribution-free 95 % interval.

    `n` counts samples, `n_effective` what they are worth after their autocorrelation.
    """

    percentile: float
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    n: int
    n_effective: float


class Summary(Result, frozen=True):
    """One group of samples: (region, site, target, probe, metric, mode, family, transport ...)."""

    region: str
    site: str
    target: str
    address: str
    probe: str
    metric: str
    mode: str | None
    family: str | None
    n: int
    losses: int
    loss_ratio: float
    loss_low: float
    loss_high: float
    minimum_ms: float | None
    maximum_ms: float | None
    quantiles: tuple[Quantile, ...]
    autocorrelation: float | None
    failures: dict[str, int]
    """``kind/stage`` to count."""
    clock_sources: dict[str, int]
    flags: dict[str, int]
    noise_floor_ms: float | None
    """Largest noise floor of the measurements in the group; unknown for imported ones."""
    quantile_curve: tuple[tuple[float, float | None], ...]
    """Points (p, ms) of the empirical quantile function, for drawing; None is a lost share."""
    started_unix_ns: int
    ended_unix_ns: int
    loaded: bool = False
    """Measured while our own traffic loaded the path: in no budget line."""
    transport: str | None = None
    """What carries the requests of the probe: ``tls``, ``quic``, ``tcp``; None if it makes none."""
    variant: str = ""
    """What else tells series of one probe apart: the version of HTTP, the transport of DNS, the
    bytes of an upload."""


class BudgetLine(Result, frozen=True):
    """One term of the budget of one (region, site, tier, mode, percentile)."""

    region: str
    site: str
    tier: str
    direction: Direction
    mode: Mode
    percentile: float
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    n: int
    n_effective: float
    losses: int
    method: Method | None
    """None where there is not one sample."""
    allowance_ms: float | None
    """Only `network` lines have an allowance: the tier gives one number for both directions."""
    verdict: Verdict
    reason: str
    """One sentence: why this verdict."""
    headline: bool = False
    """The one line per (region, site, tier) that the tier's own mode and percentile single out."""
    target: str = ""
    """The target of the site that the line was measured at; empty where none was."""
    family: str | None = None
    """IPv4 or IPv6: never both in one line."""
    round_trips_from: str = ""
    """``icmp`` or another probe, ``connect`` (TCP SYN to SYN-ACK), ``tls`` or ``quic`` (handshake
    flight)."""
    transport: Carrier = Carrier.TLS
    prompt_bytes: int = 0
    """What the request uploads; 0 where the direction does not depend on it."""
    upload: str = ""
    """``measured`` or ``modelled``: where the time of the request's own bytes is from; empty where
    the direction has none, ``both`` in a mixture of the two."""


class Pair(Result, frozen=True):
    """One region x site: distance, light floor, inflation."""

    region: str
    site: str
    distance_km: float | None
    floor_rtt_ms: float | None
    minimum_rtt_ms: float | None
    inflation: float | None


class Finding(Result, frozen=True):
    """One thing noticed. `text` is a full sentence with the numbers in it."""

    kind: FindingKind
    region: str
    site: str
    text: str


class Exclusion(Result, frozen=True):
    """Samples that are in no summary or line, and why. Nothing is left out silently."""

    what: str
    n: int
    why: str


class Objective(StrEnum):
    """What a choice of sites optimises."""

    P_MEDIAN = "p-median"
    """Smallest weighted mean of the regions' cost."""
    COVERING = "covering"
    """Largest weight of regions whose cost is within the allowance."""


class Assignment(Result, frozen=True):
    """Which site serves a region under a choice, and at what cost."""

    region: str
    weight: float
    site: str
    cost_ms: float | None
    """Upper interval end of the headline line: what the choice was made on."""
    value_ms: float | None
    low_ms: float | None
    verdict: Verdict


class Failover(Result, frozen=True):
    """What is left of a choice of sites while one of them is down."""

    lost_site: str
    value: float | None
    """In the unit of `Recommendation.value`, over the regions that are still served."""
    unserved: tuple[str, ...]
    """Regions that no other chosen site serves (covering: within the allowance)."""


class Recommendation(Result, frozen=True):
    """A choice of k sites for one tier, with its margin to the next best."""

    tier: str
    objective: Objective
    k: int
    sites: tuple[str, ...]
    value: float | None
    """p-median: weighted mean cost in ms. Covering: covered share of the weight, 0 to 1."""
    next_best_sites: tuple[str, ...]
    next_best_value: float | None
    margin: float | None
    """Always >= 0, in the unit of `value`."""
    decided: bool
    """False when another choice may be as good, for all that was measured."""
    reasons: tuple[str, ...]
    would_change: tuple[str, ...]
    """What would change the answer: the pairs whose intervals decide it."""
    assignments: tuple[Assignment, ...]
    uncovered: tuple[str, ...]
    """Regions no chosen site serves within the allowance (or at all)."""
    price_per_month: float | None
    failover: tuple[Failover, ...] = ()
    """One entry per chosen site; with k = 1 nothing is left."""
    served_share: float = 1.0
    """Share of the weight whose regions have an upper limit from a chosen site. A p-median value
    is the mean over these regions alone: values of different shares are not comparable."""
    next_best_served_share: float = 1.0
    measured_share: float = 1.0
    """Share of the weight whose regions were measured to at least one site."""
    why_undecided: str = ""
    """What keeps the data from telling; empty where it is decided, or there is no choice."""
    robustness: Robustness | None = None
    """How the choice stands up to its measurements, and what to measure next (docs/siting.md)."""
    facts: tuple[SiteFact, ...] = ()
    """Distance, exchanges, networks, price and power of the chosen sites."""


class RegionInfo(Result, frozen=True):
    """A region as it was used."""

    name: str
    title: str
    latitude: float | None
    longitude: float | None
    weight: float
    vantages: tuple[str, ...]


class SiteInfo(Result, frozen=True):
    """A site as it was used."""

    name: str
    title: str
    operator: str
    metro: str
    latitude: float | None
    longitude: float | None
    price_per_month: float | None
    capacity: float | None
    targets: tuple[str, ...]
    power_kw: float | None = None
    exchanges: tuple[str, ...] = ()
    """Internet exchanges at the facility, as the catalogue says."""
    networks: tuple[int, ...] = ()
    """AS numbers present at the facility, as the catalogue says."""


class TierInfo(Result, frozen=True):
    """A tier as it was used."""

    name: str
    title: str
    target_ms: float
    network_allowance_ms: float
    components: dict[str, float]
    """Component name to its allowance in ms, in the order of the budget; `network` is one."""
    percentile: float
    mode: Mode
    prompt_bytes: int
    mixture: dict[str, float]
    transport: Carrier = Carrier.TLS
    further_prompt_bytes: tuple[int, ...] = ()
    headline_transport: Carrier = Carrier.TLS
    """Of the headline line: ``mixed`` where the tier is judged by a mixture over both."""


class VantageInfo(Result, frozen=True):
    """How one vantage measured, and how far its clock and its timers can be trusted."""

    name: str
    region: str
    software: str
    sync_state: str
    clock_source: str
    offset_bound_ms: float | None
    clock_steps: int
    largest_step_ms: float
    noise_floor_ms: float | None
    stamp_mode: str
    timer_lateness_p99_ms: float | None
    steal_ratio: float | None
    lateness_p99_ms: float | None
    """99th percentile of how late the probes left."""


class Provenance(Result, frozen=True):
    """How it was measured."""

    campaigns: tuple[str, ...]
    software: tuple[str, ...]
    started_unix_ns: int
    ended_unix_ns: int
    measurements: int
    samples: int
    losses: int
    probes: tuple[str, ...]
    schedules: tuple[str, ...]
    confidence: float
    counters: dict[str, int]
    imported_from: tuple[str, ...]
    always_valid: bool = False
    """Intervals of lines hold at every look together, and are wider for it."""


class Evaluation(Result, frozen=True):
    """Everything: what a report shows and what a pipeline reads."""

    title: str
    generated_unix_ns: int
    provenance: Provenance
    regions: tuple[RegionInfo, ...]
    sites: tuple[SiteInfo, ...]
    tiers: tuple[TierInfo, ...]
    vantages: tuple[VantageInfo, ...]
    pairs: tuple[Pair, ...]
    summaries: tuple[Summary, ...]
    lines: tuple[BudgetLine, ...]
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    exclusions: tuple[Exclusion, ...]
    schema: int = REPORT_SCHEMA_VERSION
    alternatives: tuple[BudgetLine, ...] = ()
    """Headline lines of every (target, family) of a pair that has more than one; the one that
    stands for the site is among `lines` too (docs/budget.md)."""
    streams: tuple[StreamSummary, ...] = ()
    """Packets in their order: variation by definition and direction, loss patterns, reordering,
    outages, flows, trains (docs/metrics.md)."""
    under_load: tuple[UnderLoad, ...] = ()
    timer_artefacts: tuple[TimerInfo, ...] = ()
    requests: RequestResults = RequestResults()
    """What requests paid, step by step: set-ups, phases of HTTP, look-ups, uploads, streams."""
    whole_budgets: tuple[WholeBudget, ...] = ()
    """The request as a whole, for every region at the sites recommended to it
    (docs/whole-budget.md)."""
    sampling: tuple[HeadlineSampling, ...] = ()
    """What each headline value may be for all that was measured: siting is resampled from it."""
