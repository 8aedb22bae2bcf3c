"""Whatever a valid record holds comes back from JSON and from Arrow exactly as it was."""

import typing

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathbudget.probes.arrow_schema import (
    MEASUREMENT_SCHEMA,
    SAMPLE_SCHEMA,
    from_tables,
    measurement_table,
    sample_table,
)
from pathbudget.probes.codec import decode_line, encode_line
from pathbudget.probes.columns import MEASUREMENT_COLUMNS, SAMPLE_COLUMNS
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    ClockSource,
    ConnectionMode,
    Direction,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
    Stamps,
    SyncState,
    Target,
    Vantage,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
int64s = st.integers(-(2**63), 2**63 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
a_few = st.integers(0, 5)


def maybe(strategy: st.SearchStrategy[typing.Any]) -> st.SearchStrategy[typing.Any]:
    return st.none() | strategy


failures = st.builds(
    Failure,
    kind=st.sampled_from(FailureKind),
    stage=st.sampled_from(Stage),
    detail=texts,
    icmp_type=maybe(int32s),
    icmp_code=maybe(int32s),
    direction=maybe(st.sampled_from(Direction)),
)
stamps = st.builds(
    Stamps, int64s, maybe(int64s), maybe(int64s), maybe(int64s), maybe(int64s)
) | st.builds(Stamps, st.none(), kernel_received_ns=int64s)
extras = {
    "seq": int64s,
    "metric": st.sampled_from(Metric).map(str) | texts,
    "sent_unix_ns": int64s,
    "clock_source": st.sampled_from(ClockSource),
    "mode": maybe(st.sampled_from(ConnectionMode)),
    "lateness_ns": maybe(int64s),
    "ttl": maybe(int32s),
    "responder": maybe(texts),
    "flags": st.lists(st.sampled_from(Flag).map(str) | texts, max_size=3).map(tuple),
    "flow": maybe(int64s),
    "error_ns": maybe(int64s),
    "stamps": maybe(stamps),
}
samples = st.builds(Sample, value_ns=int64s, **extras) | st.builds(
    Sample, failure=failures, **extras
)
vantages = st.builds(
    Vantage,
    name=texts,
    region=texts,
    host=texts,
    asn=maybe(int64s),
    source_address=texts,
    network=texts,
    country=texts,
    latitude=maybe(finite),
    longitude=maybe(finite),
)
targets = st.builds(
    Target, name=texts, host=texts, site=texts, port=maybe(int32s), server_name=texts
)
clocks = st.builds(
    ClockQuality,
    sync_state=st.sampled_from(SyncState),
    source=texts,
    offset_bound_ns=maybe(int64s),
    steps=int64s,
    largest_step_ns=int64s,
    estimated_error_ns=maybe(int64s),
    skew_ppm=maybe(finite),
)
noises = st.builds(
    NoiseFloor,
    floor_ns=int64s,
    stamp_mode=st.sampled_from(ClockSource),
    timer_lateness_p50_ns=int64s,
    timer_lateness_p99_ns=int64s,
    steal_ratio=finite,
    send_lateness_p99_ns=maybe(int64s),
    receive_lag_p99_ns=maybe(int64s),
    coalescing_ns=maybe(int64s),
    receive_offload=maybe(st.booleans()),
)
measurements = st.builds(
    Measurement,
    id=texts,
    vantage=vantages,
    target=targets,
    probe=texts,
    started_unix_ns=int64s,
    samples=st.lists(samples, max_size=4).map(tuple),
    campaign=texts,
    probe_version=int32s,
    address=texts,
    family=maybe(st.sampled_from(AddressFamily)),
    duration_ns=int64s,
    options=st.dictionaries(texts, maybe(texts | int64s | finite | st.booleans()), max_size=3),
    schedule=texts,
    imported_from=texts,
    software=texts,
    clock=maybe(clocks),
    noise=maybe(noises),
    counters=st.dictionaries(texts, int64s, max_size=3),
)

thorough = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def exactly(measurement: Measurement) -> str:
    """Tells apart what == does not: 1, 1.0 and True, and the types of enumeration words."""
    return repr(measurement)


@thorough
@given(measurements)
def test_a_line_decodes_to_what_was_encoded(measurement: Measurement) -> None:
    line = encode_line(measurement)
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    assert exactly(decode_line(line)) == exactly(measurement)


@thorough
@given(st.lists(measurements, max_size=3))
def test_arrow_tables_give_back_what_went_in(records: list[Measurement]) -> None:
    tables = measurement_table(records), sample_table(records)
    assert tables[0].schema.equals(MEASUREMENT_SCHEMA, check_metadata=True)
    assert tables[1].schema.equals(SAMPLE_SCHEMA, check_metadata=True)
    assert [exactly(back) for back in from_tables(*tables)] == [exactly(one) for one in records]


def leaves(kind: type[msgspec.Struct], prefix: str = "") -> set[str]:
    """Paths of all fields of a record type, nested records unfolded."""
    found: set[str] = set()
    for name, hint in typing.get_type_hints(kind).items():
        inner = [
            part
            for part in (hint, *typing.get_args(hint))
            if isinstance(part, type) and issubclass(part, msgspec.Struct)
        ]
        found |= leaves(inner[0], f"{prefix}{name}.") if inner else {prefix + name}
    return found


def test_every_field_of_a_measurement_has_a_column() -> None:
    assert {column.path for column in MEASUREMENT_COLUMNS} == {
        path for path in leaves(Measurement) if not path.startswith("samples.")
    }


def test_every_field_of_a_sample_has_a_column() -> None:
    assert {column.path for column in SAMPLE_COLUMNS} == leaves(Sample)
