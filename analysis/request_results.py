"""What requests paid, step by step. Part of the JSON report, as `Evaluation.requests`.

Milliseconds throughout, and `None` for *unbounded*, as in `results`.
"""

import msgspec

from pathbudget.analysis.stream_results import Bounded


class RequestResult(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable, and made by keyword."""


class Range(RequestResult, frozen=True):
    """A number without unit, with its interval; None is unbounded."""

    value: float | None
    low: float | None
    high: float | None


class TicketAge(RequestResult, frozen=True):
    """Tickets of one age that were offered, and how many the server took."""

    at_least_s: float
    below_s: float | None
    offered: int
    accepted: int


class SetupSummary(RequestResult, frozen=True):
    """Set-ups of one mode over one transport to one target."""

    region: str
    site: str
    target: str
    family: str | None
    probe: str
    transport: str
    mode: str
    asked: int
    """Set-ups that were tried in this mode, whatever came of them."""
    n: int
    """Those that count: answered in this mode, or lost."""
    losses: int
    other_mode: int
    """Answered, and in another mode: a ticket, or its early data, was not taken."""
    unavailable: int
    """This client cannot do it."""
    reasons: dict[str, int]
    """Why not, as the probe says, to how often."""
    accepted_share: Range | None
    """Of those that offered a ticket (resumed) or early data: share from 0 to 1 that the server
    took, with its interval. None for cold ones."""
    ticket_ages: tuple[TicketAge, ...]
    setup_p50_ms: Bounded | None
    setup_p95_ms: Bounded | None
    round_trips_p50: Range | None
    """(set-up - look-up of the name) / round trip nearest in time, of each set-up: its median. None
    where that counts no round trips: they are shorter than a millisecond, or the time is more than
    half a one off the whole flights that were seen."""
    round_trip_p50_ms: float | None
    """Median of those round trips."""
    hello_retries: int
    second_flights: int
    retries: int
    version_negotiations: int
    amplification_stalls: int
    groups: dict[str, int]
    certificate_bytes: int | None
    """Median; None where nobody noted it."""
    flight_bytes: int | None
    """Median length of the server's first flight."""
    client_compute_p50_ms: float | None
    """Processor time of our own client; in no other number."""


class Resumption(RequestResult, frozen=True):
    """What taking a ticket, or early data, changes at one target; differences are cold less it."""

    region: str
    site: str
    target: str
    family: str | None
    probe: str
    transport: str
    mode: str
    saved_ms: Bounded
    """Difference of the medians of the set-ups."""
    saved_round_trips: float | None
    """Difference of the medians of set-ups in round trips."""
    saved_bytes: int | None
    """Of the server's first flight, or of certificates where only those are known."""
    saved_compute_ms: float | None
    """Processor time of our client."""


class PhaseTime(RequestResult, frozen=True):
    """One phase of requests."""

    phase: str
    n: int
    losses: int
    p50_ms: float | None
    p95_ms: Bounded


class HttpPhases(RequestResult, frozen=True):
    """Phases of requests of one version of HTTP in one mode."""

    region: str
    site: str
    target: str
    family: str | None
    version: str
    transport: str | None
    mode: str
    phases: tuple[PhaseTime, ...]
    """In the order of a request; those that did not happen are left out."""
    statuses: dict[str, int]
    server_timing: dict[str, float]
    """Name of the server's own step to its median, ms (Server-Timing)."""


class Gateway(RequestResult, frozen=True):
    """The same request with credentials less without, paired within one shot."""

    region: str
    site: str
    target: str
    family: str | None
    version: str
    transport: str | None
    mode: str
    pairs: int
    unpaired: int
    """Shots in which only one of the two was answered."""
    with_p50_ms: float | None
    without_p50_ms: float | None
    difference_p50_ms: Bounded
    difference_p95_ms: Bounded


class LookUp(RequestResult, frozen=True):
    """Hits and misses of one name server over one transport."""

    region: str
    site: str
    target: str
    family: str | None
    over: str
    mode: str | None
    metric: str
    n: int
    losses: int
    p50_ms: Bounded
    p95_ms: Bounded
    truncated: int
    retried: int


class Edge(RequestResult, frozen=True):
    """To which addresses a name sends one region."""

    name: str
    kind: str
    """Record type asked for."""
    region: str
    site: str
    over: str
    subnet: str
    """Network that the question was asked on behalf of (RFC 7871)."""
    addresses: dict[str, int]
    """Addresses of one answer, to how often it came."""
    servers: dict[str, int]
    """What the name servers call themselves (NSID), to how often."""


class UploadSummary(RequestResult, frozen=True):
    """Uploads of one size in one mode, beside the model of slow start."""

    region: str
    site: str
    target: str
    family: str | None
    transport: str
    mode: str
    version: str
    """Of HTTP."""
    bytes: int
    n: int
    losses: int
    measured_p50_ms: Bounded
    measured_p95_ms: Bounded
    model_p50_ms: float | None
    """(1 + extra round trips) x the round trip nearest in time, of each upload: its median."""
    model_error_ms: Bounded | None
    """Measured less model, paired: its median. Above zero the model is too short."""
    acknowledged_p50_ms: float | None
    flights_model: int
    flights_seen: int | None
    """Median of the flights that the packets left in; None where the probe did not see them."""
    round_trips_measured: float | None
    """Median of upload / round trip; None where computing takes the time, as for set-ups."""
    flow_stalls: int
    retransmitted: int
    refused_status: int


class TokenStreams(RequestResult, frozen=True):
    """Paced streams from one target: how evenly their chunks came (docs/metrics.md)."""

    region: str
    site: str
    target: str
    family: str | None
    transport: str | None
    variant: str
    streams: int
    chunks_expected: int
    chunks_received: int
    stall_limit_ms: float
    """A longer gap is a stall."""
    stalls: int
    stall_share: Range
    """Of gaps, 0 to 1."""
    burst_share: Range
    """Share of gaps under a millisecond, 0 to 1."""
    gap_p95_ms: Bounded
    gap_p99_ms: Bounded
    variation_p95_ms: Bounded
    """Of the absolute difference of the gap as it came and as it was sent (RFC 3393)."""
    pdv_p50_ms: Bounded
    pdv_p95_ms: Bounded
    pdv_p99_ms: Bounded
    """Delay of a chunk over that of the quickest one of its stream (RFC 5481)."""
    first_chunk_pdv_p95_ms: Bounded
    """The same of the first chunk of each stream: how late it came on its way, not how long it was
    waited for."""
    ttft_p50_ms: Bounded | None
    """From the request to the first chunk, the server's time included; failed streams are losses.
    """
    ttft_p95_ms: Bounded | None
    playout_buffer_ms: Bounded
    """What a player must hold back for `underrun_rate` of the chunks to come too late."""
    underrun_rate: float
    buffering: str
    """``bursts``, ``smooths``, ``no`` or ``undecided``: whether something holds chunks back."""
    releases: int
    releases_held: int


class Completions(RequestResult, frozen=True):
    """Requests to an endpoint that answers token by token."""

    region: str
    site: str
    target: str
    family: str | None
    transport: str | None
    variant: str
    n: int
    losses: int
    ttft_p50_ms: Bounded
    ttft_p95_ms: Bounded
    server_p50_ms: Bounded | None
    """Between which values the server's part lies, whatever its dependence on the network; no value
    in between is likelier. None where no round trip was measured."""
    server_p95_ms: Bounded | None


class RequestResults(RequestResult, frozen=True):
    """Everything about requests; empty where no request was made."""

    setups: tuple[SetupSummary, ...] = ()
    resumptions: tuple[Resumption, ...] = ()
    http: tuple[HttpPhases, ...] = ()
    gateways: tuple[Gateway, ...] = ()
    look_ups: tuple[LookUp, ...] = ()
    edges: tuple[Edge, ...] = ()
    uploads: tuple[UploadSummary, ...] = ()
    token_streams: tuple[TokenStreams, ...] = ()
    completions: tuple[Completions, ...] = ()
