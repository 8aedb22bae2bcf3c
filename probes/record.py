"""The vocabulary: every noun that travels through the product. Read this page first.

    Vantage      where an agent measures from
    Target       what is probed
    Sample       one number or one failure
    Stamps       when it was due, left and came back, by every clock that saw it
    Failure      why there is no number
    Measurement  the envelope around the samples of one run
    ClockQuality, NoiseFloor   how far to trust the numbers

All records are immutable. Integers named ``_ns`` are intervals, ``_unix_ns`` are wall-clock times
(UTC, nanoseconds since 1970); milliseconds exist only where a person reads.
The StrEnum values are the words on disk: they never change meaning.
"""

from enum import StrEnum

import msgspec

SCHEMA_VERSION = 5
"""Version of the record schema, counted apart from the package (docs/record-schema.md)."""


class AddressFamily(StrEnum):
    """IPv4 and IPv6 are separate series, always."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"


class ConnectionMode(StrEnum):
    """In which state the connection of a request is when the request comes."""

    COLD = "cold"
    RESUMED = "resumed"
    EARLY_DATA = "early_data"
    """The request leaves with the first packet of a resumed handshake (0-RTT), and was accepted."""
    IDLE = "idle"
    """Reused after lying idle past the retransmission timer: slow start begins again (RFC 5681)."""
    WARM = "warm"


class Transport(StrEnum):
    """What carries requests. Each is a series of its own."""

    TLS = "tls"
    """TLS 1.3 over TCP."""
    QUIC = "quic"
    """QUIC, with TLS 1.3 inside (RFC 9000, RFC 9001)."""
    TCP = "tcp"
    """TCP without encryption."""


class Metric(StrEnum):
    """What the number of a sample means (docs/metrics.md has the formulas).

    `Sample.metric` is a plain string, so that a third-party probe can bring its own word; these are
    the built-in ones.
    """

    RTT = "rtt"
    """Round trip of one packet, RFC 2681, on the wire where the clock source says kernel."""
    HOP_RTT = "hop_rtt"
    """Probe with hop limit `Sample.part` sent to the answer of whoever dropped it (`responder`;
    None: the destination had it). `Sample.flow` is the flow, `Sample.seq` the trace."""
    RESOLVE = "resolve"
    """Name to address, through the system's resolver."""
    TRANSIT_FORWARD = "transit_forward"
    """STAMP T2 - T1: one-way delay there (RFC 7679) plus the unknown offset between two clocks. May
    be negative. Differences mean something (RFC 3393, RFC 5481); the value only with `error_ns`."""
    TRANSIT_REVERSE = "transit_reverse"
    """STAMP T4 - T3: the same on the way back."""
    RESIDENCE = "residence"
    """STAMP T3 - T2: how long the reflector held the packet; already taken out of the RTT."""
    CONNECT = "connect"
    """TCP SYN to SYN-ACK (or to the RST that refuses it, `Flag.REFUSED`)."""
    ECHO = "echo"
    """Payload sent on an open TCP connection to the last byte of the same payload back."""
    TLS_HANDSHAKE = "tls_handshake"
    """ClientHello sent to the last byte of the server's flight received (RFC 8446)."""
    QUIC_HANDSHAKE = "quic_handshake"
    """First Initial sent to the datagram received that completes the server's flight (RFC 9001)."""
    SETUP = "setup"
    """What a new connection costs before the request can leave: resolve + connect + TLS, or resolve
    + QUIC. Of early data without the handshake that the request travels in; zero on a warm one."""
    CLIENT_COMPUTE = "client_compute"
    """CPU time that our own client spent in the handshake; never part of a network number."""
    SEND = "send"
    """First byte of the request sent to its last byte sent."""
    WAIT = "wait"
    """Last byte of the request sent to the first byte of the answer received."""
    RECEIVE = "receive"
    """First byte of the answer received to its last byte."""
    TTFB = "ttfb"
    """First byte of the request sent to the first byte of the answer received."""
    TTFB_ANONYMOUS = "ttfb_anonymous"
    """The same of the same request without its credentials, in the same shot."""
    FIRST_BYTE = "first_byte"
    """What a user waits for: `setup` and `ttfb` of one shot. A sum, so that what our own host did
    in between is not in it."""
    UPLOAD = "upload"
    """First byte of the request body sent to the answer that its last byte has been read, without
    the time that the other end says it took to answer."""
    UPLOAD_ACKNOWLEDGED = "upload_acknowledged"
    """First byte of the request body sent to the acknowledgement of its last one, by the kernel."""
    TTFT = "ttft"
    """Request sent to the first chunk of an answer that carries content (a token)."""
    DELIVERY_GAP = "delivery_gap"
    """Arrival of a chunk of a stream minus that of the chunk before it; `Sample.part` counts."""
    DELIVERY_VARIATION = "delivery_variation"
    """Delivery gap minus send gap, by the sender's stamps (RFC 3393). May be negative."""
    DNS_HIT = "dns_hit"
    """Question to answer for a name that the resolver has at hand."""
    DNS_MISS = "dns_miss"
    """Question to answer for a name that nobody has asked for before."""


class FailureKind(StrEnum):
    """Why a sample has no number. A closed list."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    RESET = "reset"
    CLOSED = "closed"
    UNREACHABLE = "unreachable"
    TIME_EXCEEDED = "time_exceeded"
    NAME_NOT_FOUND = "name_not_found"
    RESOLVER = "resolver"
    NO_ADDRESS = "no_address"
    NO_ROUTE = "no_route"
    CERTIFICATE = "certificate"
    PROTOCOL = "protocol"
    NOT_RESUMED = "not_resumed"
    EARLY_DATA_REJECTED = "early_data_rejected"
    UNAVAILABLE = "unavailable"
    STATUS = "status"
    PERMISSION = "permission"
    LOCAL = "local"
    CORRUPT = "corrupt"
    OTHER = "other"


class Stage(StrEnum):
    """At which step of a probe it failed. A closed list."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    HANDSHAKE = "handshake"
    SEND = "send"
    WAIT = "wait"
    PARSE = "parse"


class Direction(StrEnum):
    """Which way a packet was lost, where the other end can tell (RFC 8762 stateful reflector)."""

    FORWARD = "forward"
    REVERSE = "reverse"


class ClockSource(StrEnum):
    """Which clocks the number was read from, best first."""

    KERNEL = "kernel"
    """Kernel send and kernel receive stamps."""
    TCP_INFO = "tcp_info"
    """The kernel's own round-trip estimate of this connection's handshake."""
    KERNEL_RECEIVE = "kernel_receive"
    """User-space send stamp, kernel receive stamp: too long by the time of the send call."""
    USER = "user"
    """Monotonic clock in user space: includes the scheduling delay of this host."""
    FOREIGN = "foreign"
    """Somebody else's tool measured it and does not say."""


class SyncState(StrEnum):
    """What the kernel says of the discipline of the wall clock."""

    SYNCHRONISED = "synchronised"
    UNSYNCHRONISED = "unsynchronised"
    UNKNOWN = "unknown"


class Flag(StrEnum):
    """Marks on a sample that has a number; `Sample.flags` holds these words."""

    CLOCK_STEP = "clock_step"
    """The wall clock was stepped while the sample was under way."""
    SYN_RETRANSMITTED = "syn_retransmitted"
    """The connect time contains a retransmission timer (RFC 6298): it is no round trip."""
    UNVERIFIED = "unverified"
    """The server's certificate was not checked, because the user said so."""
    DUPLICATED = "duplicated"
    """More than one answer came (RFC 5560); the first one counts."""
    LATE = "late"
    """The answer came after the deadline, or belongs to an earlier run."""
    REFUSED = "refused"
    """The other side refused the connection at once: that answer has been a round trip too."""
    LOADED = "loaded"
    """Measured while our own traffic loaded the path (off by default)."""
    HOST_BUSY = "host_busy"
    """This host was late by more than `HOST_BUSY_NS` to send, or to read what the kernel had."""
    HELLO_RETRY = "hello_retry"
    """The server asked for another ClientHello: one more round trip (RFC 8446, 4.1.4)."""
    SECOND_FLIGHT = "second_flight"
    """The server's first flight did not fit its initial window: one more round trip."""
    RETRY = "retry"
    """The server made the client prove its address first: one more round trip (RFC 9000, 8.1)."""
    VERSION_NEGOTIATION = "version_negotiation"
    """The server does not speak the version offered: one more round trip (RFC 9000, 6)."""
    AMPLIFICATION_STALL = "amplification_stall"
    """The server had to stop at three times what it had received (RFC 9000, 8.1)."""
    FLOW_STALL = "flow_stall"
    """Sending stopped because the other end's flow-control window was full (HTTP/2, QUIC)."""
    TRUNCATED = "truncated"
    """The answer over UDP was cut short, and asked for again over TCP (RFC 7766)."""
    RETRIED = "retried"
    """The number contains the timer of a repeated question or packet: it is no round trip."""
    LOW_CONFIDENCE = "low_confidence"
    """Two events that the number lies between came in one packet, or could not be told apart."""
    RECONSTRUCTED = "reconstructed"
    """Worked out of the minimum, mean and maximum that somebody else's tool gave; order unknown."""


HOST_BUSY_NS = 10_000_000
"""Lateness beyond which a sample is marked `Flag.HOST_BUSY`."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why there is no number: kind x stage, with the router's own words where there are any."""

    kind: FailureKind
    stage: Stage
    detail: str = ""
    icmp_type: int | None = None
    icmp_code: int | None = None
    direction: Direction | None = None
    """Which way it was lost; None where that cannot be told."""


Note = str | int | float | bool
"""Something that a probe saw: a group, a status, a number of bytes."""


class Stamps(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When a probe was due, left and was answered, each as an offset from `Sample.sent_unix_ns`.

    None where that clock saw nothing (never all of them). Kept so that every number can be worked
    out again.
    """

    due_ns: int | None = None
    """When the schedule wanted it sent."""
    user_sent_ns: int | None = None
    """User space, just before the send call."""
    kernel_sent_ns: int | None = None
    """Kernel, as the packet was handed to the device; 0 where `sent_unix_ns` is this stamp."""
    kernel_received_ns: int | None = None
    """Kernel, as the answer came from the device."""
    user_received_ns: int | None = None
    """User space, when the answer had been read: minus the kernel's, the lag of this host."""


class Sample(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One number or one failure, with the time it was sent. A lost packet is a sample.

    Exactly one of `value_ns` and `failure` is set. The phases of one handshake are several samples
    of one `seq`. `lateness_ns` is how long after its due time the probe left (never corrected for).
    `responder` is the address that answered where it is not the address probed. `flow` tells the
    flows of one series apart (source port, or ICMP identifier) that ECMP may send along different
    paths. `error_ns` is the stated error of clocks that are not one and the same; None on a one-way
    number means that nobody vouches for them. `part` counts the parts of one shot, as the chunks
    of a stream. `notes` are what the probe saw besides the number (each probe's page lists them).
    """

    seq: int
    metric: str
    sent_unix_ns: int
    value_ns: int | None = None
    failure: Failure | None = None
    clock_source: ClockSource = ClockSource.USER
    mode: ConnectionMode | None = None
    lateness_ns: int | None = None
    ttl: int | None = None
    responder: str | None = None
    flags: tuple[str, ...] = ()
    flow: int | None = None
    error_ns: int | None = None
    stamps: Stamps | None = None
    part: int | None = None
    notes: dict[str, Note] | None = None

    def __post_init__(self) -> None:
        if (self.value_ns is None) == (self.failure is None):
            raise ValueError("a sample has either value_ns or failure, never both or neither")


class Vantage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place an agent measures from."""

    name: str
    region: str
    host: str = ""
    asn: int | None = None
    source_address: str = ""
    """Local address the probes leave from, where one was chosen."""
    network: str = ""
    """Name of the access network or provider."""
    country: str = ""
    latitude: float | None = None
    longitude: float | None = None


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """One address of a site that is probed. `host` is a name or an address literal."""

    name: str
    host: str
    site: str = ""
    port: int | None = None
    server_name: str = ""
    """TLS server name where it differs from `host`."""


class ClockQuality(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the wall clock during a measurement."""

    sync_state: SyncState = SyncState.UNKNOWN
    source: str = ""
    """Who says so: ``adjtimex``, ``chrony`` ..."""
    offset_bound_ns: int | None = None
    """Largest error of the wall clock against UTC that the source admits."""
    steps: int = 0
    """Clock steps seen since the measurement began."""
    largest_step_ns: int = 0
    estimated_error_ns: int | None = None
    """Error that the source expects, where it says one beside the bound."""
    skew_ppm: float | None = None
    """By how much the rate of the clock may be wrong, as the source says."""


class NoiseFloor(msgspec.Struct, frozen=True, omit_defaults=True):
    """How fine this host can measure. A difference below `floor_ns` is noise here."""

    floor_ns: int
    stamp_mode: ClockSource
    timer_lateness_p50_ns: int
    timer_lateness_p99_ns: int
    steal_ratio: float = 0.0
    """Share of CPU time that the hypervisor took, 0 to 1."""
    send_lateness_p99_ns: int | None = None
    """99th percentile of how late this measurement's own probes left."""
    receive_lag_p99_ns: int | None = None
    """99th percentile of the time from the kernel's receive stamp to user space."""
    coalescing_ns: int | None = None
    """Longest time the network device may hold a packet back before it interrupts (ethtool -c)."""
    receive_offload: bool | None = None
    """Whether the device joins packets before the kernel stamps them (GRO or LRO)."""


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The envelope: who measured what, when, how, and how far to trust it.

    One address per measurement: when the address behind a name changes, a new one begins.
    `id` is time-ordered and unique; writing the same one twice changes nothing.
    """

    id: str
    vantage: Vantage
    target: Target
    probe: str
    started_unix_ns: int
    samples: tuple[Sample, ...]
    schema: int = SCHEMA_VERSION
    campaign: str = ""
    probe_version: int = 1
    address: str = ""
    """The one address that was probed; empty when the name did not resolve."""
    family: AddressFamily | None = None
    duration_ns: int = 0
    options: dict[str, str | int | float | bool | None] = {}
    """Options of the probe, as they were used."""
    schedule: str = ""
    """How the send times were chosen: ``poisson 250ms seed 7``, ``periodic 1s seed 7`` ..."""
    imported_from: str = ""
    """Name of the file of somebody else's tool that this was read from; empty for our own."""
    software: str = ""
    """What measured: ``pathbudget 0.1.0``, ``ripe-atlas firmware 5020`` ..."""
    clock: ClockQuality | None = None
    noise: NoiseFloor | None = None
    counters: dict[str, int] = {}
    """Replies that are no samples: ``foreign``, ``late``, ``duplicate``, ``corrupt`` ..."""
    transport: Transport | None = None
    """What carries the requests of this probe; None of a probe that makes none."""
