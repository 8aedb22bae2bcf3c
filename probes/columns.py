"""The tables of the store, column by column: name, type, place in the record, unit, meaning.

Everything else follows from these lists: the Arrow schemas, the conversion in both directions, the
headings of the CSV export, and the reference in docs/record-schema.md. Needs no library.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INT64 = "int64"
    INT32 = "int32"
    FLOAT64 = "float64"
    BOOL = "bool"
    JSON = "json"
    """Text that is a JSON object; the values have mixed types."""
    COUNTS = "counts"
    """Map from word to number."""
    WORDS = "words"
    """List of words."""


@dataclass(frozen=True, slots=True)
class Column:
    """`path`: where the value stands in a `Measurement`, `Sample` or `RouteUpdate`; null when it is
    absent.
    """

    name: str
    kind: Kind
    path: str
    meaning: str
    unit: str = ""


_T, _I, _S, _F = Kind.TEXT, Kind.INT64, Kind.INT32, Kind.FLOAT64

CONTEXT_COLUMNS: tuple[Column, ...] = (
    Column("campaign", _T, "campaign", "name of the campaign"),
    Column("vantage", _T, "vantage.name", "where it was measured from"),
    Column("region", _T, "vantage.region", "region that the vantage stands for"),
    Column("network", _T, "vantage.network", "access network or provider of the vantage"),
    Column("target", _T, "target.name", "what was probed"),
    Column("site", _T, "target.site", "candidate site that the target belongs to"),
    Column("probe", _T, "probe", "kind of probe"),
    Column("transport", _T, "transport", "what carries requests: tls, quic, tcp; null: none made"),
    Column("address", _T, "address", "the one address probed; empty: the name did not resolve"),
    Column("family", _T, "family", "ipv4 or ipv6; null: the name did not resolve"),
)
"""In both tables, so that the sample table can be grouped without a join."""

MEASUREMENT_COLUMNS: tuple[Column, ...] = (
    Column("id", _T, "id", "unique name of the measurement; sorts in the order of time"),
    Column("schema", _S, "schema", "version of the record schema of this row"),
    *CONTEXT_COLUMNS,
    Column("vantage_host", _T, "vantage.host", "host that the agent ran on"),
    Column("vantage_asn", _I, "vantage.asn", "autonomous system of the vantage"),
    Column("vantage_source_address", _T, "vantage.source_address", "local address probed from"),
    Column("vantage_country", _T, "vantage.country", "country of the vantage"),
    Column("vantage_latitude", _F, "vantage.latitude", "latitude of the vantage", "degrees"),
    Column("vantage_longitude", _F, "vantage.longitude", "longitude of the vantage", "degrees"),
    Column("target_host", _T, "target.host", "name or address literal of the target"),
    Column("target_port", _S, "target.port", "port of the target"),
    Column("target_server_name", _T, "target.server_name", "TLS server name, where not the host"),
    Column("probe_version", _S, "probe_version", "version of the probe"),
    Column(
        "started_unix_ns", _I, "started_unix_ns", "wall clock at the start", "ns since 1970 UTC"
    ),
    Column("duration_ns", _I, "duration_ns", "how long it ran, by the monotonic clock", "ns"),
    Column("options", Kind.JSON, "options", "options of the probe, as used"),
    Column("schedule", _T, "schedule", "how the send times were chosen"),
    Column("imported_from", _T, "imported_from", "file of another tool; empty for our own"),
    Column("software", _T, "software", "what measured"),
    Column("clock_sync_state", _T, "clock.sync_state", "discipline of the wall clock"),
    Column("clock_source", _T, "clock.source", "who says so"),
    Column("clock_offset_bound_ns", _I, "clock.offset_bound_ns", "largest error against UTC", "ns"),
    Column(
        "clock_estimated_error_ns", _I, "clock.estimated_error_ns", "error the source expects", "ns"
    ),
    Column("clock_skew_ppm", _F, "clock.skew_ppm", "error of the clock's rate", "ppm"),
    Column("clock_steps", _I, "clock.steps", "steps of the wall clock meanwhile"),
    Column("clock_largest_step_ns", _I, "clock.largest_step_ns", "the largest of them", "ns"),
    Column("noise_floor_ns", _I, "noise.floor_ns", "a difference below this is noise here", "ns"),
    Column("noise_stamp_mode", _T, "noise.stamp_mode", "clocks that the host can offer"),
    Column(
        "noise_timer_lateness_p50_ns",
        _I,
        "noise.timer_lateness_p50_ns",
        "lateness of timers, median",
        "ns",
    ),
    Column(
        "noise_timer_lateness_p99_ns",
        _I,
        "noise.timer_lateness_p99_ns",
        "lateness of timers, 99th percentile",
        "ns",
    ),
    Column("noise_steal_ratio", _F, "noise.steal_ratio", "CPU time the hypervisor took", "0 to 1"),
    Column(
        "noise_send_lateness_p99_ns",
        _I,
        "noise.send_lateness_p99_ns",
        "lateness of the probes themselves, 99th percentile",
        "ns",
    ),
    Column(
        "noise_receive_lag_p99_ns",
        _I,
        "noise.receive_lag_p99_ns",
        "kernel receive stamp to user space, 99th percentile",
        "ns",
    ),
    Column("noise_coalescing_ns", _I, "noise.coalescing_ns", "longest hold of the device", "ns"),
    Column("noise_receive_offload", Kind.BOOL, "noise.receive_offload", "whether GRO or LRO is on"),
    Column("counters", Kind.COUNTS, "counters", "replies that are no samples"),
)
"""One row per measurement. `sample_count` and `failure_count` stand behind them."""

SAMPLE_COLUMNS: tuple[Column, ...] = (
    Column("seq", _I, "seq", "number of the send; phases of one handshake share it"),
    Column("metric", _T, "metric", "what value_ns means"),
    Column("sent_unix_ns", _I, "sent_unix_ns", "wall clock at the send", "ns since 1970 UTC"),
    Column("value_ns", _I, "value_ns", "the number; null when there is a failure", "ns"),
    Column("failure_kind", _T, "failure.kind", "why there is no number; null when there is"),
    Column("failure_stage", _T, "failure.stage", "step at which it failed"),
    Column("failure_detail", _T, "failure.detail", "what the system or the router said"),
    Column("failure_icmp_type", _S, "failure.icmp_type", "ICMP type of the router's answer"),
    Column("failure_icmp_code", _S, "failure.icmp_code", "ICMP code of the router's answer"),
    Column("failure_direction", _T, "failure.direction", "which way it was lost, where known"),
    Column("clock_source", _T, "clock_source", "clocks that value_ns was read from"),
    Column("mode", _T, "mode", "state of the connection: cold, resumed, early_data, idle, warm"),
    Column("lateness_ns", _I, "lateness_ns", "how long after its due time it left", "ns"),
    Column("ttl", _S, "ttl", "time to live of the answer", "hops"),
    Column("responder", _T, "responder", "who answered, where not the address probed"),
    Column("flags", Kind.WORDS, "flags", "marks on a sample that has a number"),
    Column("flow", _I, "flow", "source port or ICMP identifier, where flows are told apart"),
    Column("error_ns", _I, "error_ns", "stated error of the clocks of a one-way number", "ns"),
    Column("part", _I, "part", "number of the part of one send, as the chunk of a stream"),
    Column("notes", Kind.JSON, "notes", "what the probe saw besides the number"),
    Column("stamp_due_ns", _I, "stamps.due_ns", "when it was due, from sent_unix_ns", "ns"),
    Column("stamp_user_sent_ns", _I, "stamps.user_sent_ns", "send call, from sent_unix_ns", "ns"),
    Column(
        "stamp_kernel_sent_ns",
        _I,
        "stamps.kernel_sent_ns",
        "kernel's send stamp, from sent_unix_ns",
        "ns",
    ),
    Column(
        "stamp_kernel_received_ns",
        _I,
        "stamps.kernel_received_ns",
        "kernel's receive stamp, from sent_unix_ns",
        "ns",
    ),
    Column(
        "stamp_user_received_ns",
        _I,
        "stamps.user_received_ns",
        "answer read by user space, from sent_unix_ns",
        "ns",
    ),
)
"""One row per sample, each a number or a failure. Behind `measurement_id` and `position`."""

MEASUREMENT_ID = Column("measurement_id", _T, "id", "measurement that the sample belongs to")
POSITION = Column("position", _I, "", "place of the sample in its measurement, from 0")
SAMPLE_COUNT = Column("sample_count", _I, "", "number of samples of the measurement")
FAILURE_COUNT = Column("failure_count", _I, "", "how many of them are failures")

UPDATE_COLUMNS: tuple[Column, ...] = (
    Column("id", _T, "id", "unique name of the update; sorts in the order of time"),
    Column("feed", _T, "feed", "name of the feed, or the file"),
    Column("feed_kind", _T, "feed_kind", "how the news came: session, ris_live, mrt, bmp"),
    Column("collector", _T, "collector", "collector or router that the peer speaks to"),
    Column("peer_address", _T, "peer_address", "who said it; empty: the feed as a whole"),
    Column("peer_asn", _I, "peer_asn", "autonomous system of the peer"),
    Column("kind", _T, "kind", "announce, withdraw, rib, peer_up, peer_down, end_of_rib"),
    Column("time_unix_ns", _I, "time_unix_ns", "when, as the source says", "ns since 1970 UTC"),
    Column("arrived_unix_ns", _I, "arrived_unix_ns", "when we had it", "ns since 1970 UTC"),
    Column("prefix", _T, "prefix", "what it is about; empty: the session"),
    Column("as_path", _T, "as_path", "autonomous systems, prepends included; a set is {1,2}"),
    Column("origin", _T, "origin", "igp, egp or incomplete"),
    Column("next_hop", _T, "next_hop", "next hop"),
    Column("local_preference", _I, "local_preference", "LOCAL_PREF"),
    Column("med", _I, "med", "MULTI_EXIT_DISC"),
    Column("communities", Kind.WORDS, "communities", "65000:120, and 65000:1:2 for large ones"),
    Column("path_id", _I, "path_id", "number of the path, where the session has add-path"),
    Column("detail", _T, "detail", "why a session ended; family of an end of RIB"),
)
"""One row per prefix and message of a BGP peer, one per change of a session."""
