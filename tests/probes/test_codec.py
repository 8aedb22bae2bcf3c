"""JSON lines: the format is pinned by files, and every bad line is answered with its place."""

import io
from pathlib import Path

import msgspec
import pytest

from pathbudget.probes.codec import decode_line, encode_line, encode_sample, read_lines
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import (
    SCHEMA_VERSION,
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
    Transport,
    Vantage,
)

RECORDS = Path(__file__).resolve().parents[1] / "fixtures" / "records"

SMALL = Measurement(
    id="0193f3e2-5f80-7a3c-9d11-6b1f0a4e2c77",
    vantage=Vantage(name="dallas-1", region="us-south"),
    target=Target(name="stemmons", host="192.0.2.10"),
    probe="icmp",
    started_unix_ns=1_764_590_400_000_000_000,
    samples=(Sample(seq=0, metric=Metric.RTT, sent_unix_ns=1, value_ns=5),),
)

FULL = Measurement(
    id="0193f3e2-5f80-7a3c-9d11-6b1f0a4e2c78",
    vantage=Vantage(
        name="dallas-1",
        region="us-south",
        host="agent1",
        asn=64500,
        source_address="192.0.2.1",
        network="example-fibre",
        country="US",
        latitude=32.78,
        longitude=-96.8,
    ),
    target=Target(
        name="stemmons", host="edge.example.net", site="dal-1", port=443, server_name="gpu.example"
    ),
    probe="tls",
    started_unix_ns=1_764_590_400_000_000_000,
    samples=(
        Sample(
            seq=3,
            metric=Metric.TLS_HANDSHAKE,
            sent_unix_ns=1_764_590_400_000_000_001,
            value_ns=-7,
            clock_source=ClockSource.KERNEL,
            mode=ConnectionMode.RESUMED,
            lateness_ns=40_000,
            ttl=57,
            responder="198.51.100.1",
            flags=(Flag.CLOCK_STEP, Flag.UNVERIFIED),
            flow=33_434,
            error_ns=1_200_000,
            stamps=Stamps(-45_000, -5_000, 0, None, 15_200_000),
            part=2,
            notes={"group": "X25519", "bytes": 720, "share": 0.5, "kernel": True},
        ),
        Sample(
            seq=4,
            metric=Metric.CONNECT,
            sent_unix_ns=1_764_590_400_250_000_000,
            failure=Failure(
                FailureKind.UNREACHABLE,
                Stage.CONNECT,
                "host unreachable é",
                3,
                1,
                Direction.REVERSE,
            ),
        ),
    ),
    campaign="evaluation",
    probe_version=2,
    address="192.0.2.10",
    family=AddressFamily.IPV4,
    duration_ns=750_000_000,
    options={"size": 56, "ratio": 1.0, "verify": True, "group": "x25519", "ca": None},
    schedule="poisson 250ms seed 7",
    imported_from="results.json",
    software="pathbudget 0.1.0",
    clock=ClockQuality(
        SyncState.SYNCHRONISED, "adjtimex", 1_500_000, 1, -3_600_000_000_000, 40_000, 0.5
    ),
    noise=NoiseFloor(
        11_000, ClockSource.KERNEL, 60_000, 180_000, 0.01, 90_000, 70_000, 50_000, False
    ),
    counters={"foreign": 2},
    transport=Transport.TLS,
)


def test_the_format_on_disk_is_what_it_was() -> None:
    kept = (RECORDS / "schema-5.jsonl").read_bytes()
    assert encode_line(SMALL) + encode_line(FULL) == kept
    assert list(read_lines(RECORDS / "schema-5.jsonl")) == [SMALL, FULL]


def test_a_file_of_schema_4_is_read_as_it_is() -> None:
    assert list(read_lines(RECORDS / "schema-4.jsonl")) == [SMALL, FULL]


def test_a_file_of_schema_3_loads_without_what_it_could_not_say() -> None:
    small, full = read_lines(RECORDS / "schema-3.jsonl")
    assert small == SMALL
    assert full.transport is None
    assert full.samples[0].stamps == FULL.samples[0].stamps
    assert (full.samples[0].part, full.samples[0].notes) == (None, None)


def test_a_file_of_schema_2_loads_without_what_it_could_not_say() -> None:
    small, full = read_lines(RECORDS / "schema-2.jsonl")
    assert small == SMALL
    assert full.clock is not None
    assert (full.clock.steps, full.clock.skew_ppm) == (1, None)
    first, second = full.samples
    assert (first.value_ns, first.ttl, first.flags) == (-7, 57, ("clock_step", "unverified"))
    assert (first.flow, first.error_ns, first.stamps) == (None, None, None)
    assert second.failure == Failure(
        FailureKind.UNREACHABLE, Stage.CONNECT, "host unreachable é", 3, 1
    )


def test_a_line_names_its_version_although_it_is_the_default() -> None:
    assert encode_line(SMALL).startswith(b'{"schema":%d,"id":' % SCHEMA_VERSION)


def test_a_file_of_schema_1_loads_with_its_schedule_lifted() -> None:
    icmp, tls = read_lines(RECORDS / "schema-1.jsonl")
    assert icmp.schedule == "poisson 250ms seed 7"
    assert icmp.options == {"size": 56}
    assert (tls.schedule, tls.options) == ("", {})
    assert {icmp.schema, tls.schema} == {SCHEMA_VERSION}
    assert icmp.vantage.source_address == ""
    assert [sample.value_ns for sample in icmp.samples] == [1_234_567, None, None]
    assert icmp.samples[2].failure == Failure(
        FailureKind.UNREACHABLE, Stage.WAIT, "host unreachable", 3, 1
    )
    assert icmp.noise is not None
    assert icmp.noise.floor_ns == 11_000
    assert tls.samples[1].flags == ("unverified",)


def test_an_upgraded_record_is_written_in_the_current_version() -> None:
    for measurement in read_lines(RECORDS / "schema-1.jsonl"):
        assert decode_line(encode_line(measurement)) == measurement


def test_fields_of_others_are_ignored_at_every_level() -> None:
    line = encode_line(FULL)
    line = line.replace(b'"vantage":{', b'"weather":[1,{"a":2}],"vantage":{"colour":"red",')
    line = line.replace(b'"samples":[{', b'"samples":[{"mood":null,')
    assert decode_line(line) == FULL


def test_the_version_may_stand_anywhere_in_the_line() -> None:
    line = encode_line(SMALL).strip()
    moved = line[:-1].replace(b'"schema":5,', b"") + b', "schema": 5}'
    assert decode_line(moved) == SMALL


GOOD = encode_line(FULL)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"schema":6}',
            "schema: written by a newer pathbudget; schema 6, this one reads up to 5",
        ),
        (b'{"id":"x"}', "schema: missing; every record says its schema version"),
        (b'{"schema":"3"}', "schema: '3' is no version; expected 1 to 5"),
        (b'{"schema":true}', "schema: True is no version; expected 1 to 5"),
        (b'{"schema":0}', "schema: 0 is no version; expected 1 to 5"),
        (b'{"schema":5,"id":5}', "id: Expected `str`, got `int`"),
        (b'{"schema":5,"id":"x"}', "the record: Object missing required field `vantage`"),
        (b'{"schema":1,"options":[]}', "options: Expected `object`, got `array`"),
        (b'{"schema":1,"options":{"schedule":5}}', "schedule: Expected `str`, got `int`"),
        (b"[1]", "the record: Expected `object`, got `array`"),
        (GOOD[:-20], "no valid JSON: Input data was truncated"),
        (GOOD.replace(b'"seq":4', b'"seq":"4"'), "samples[1].seq: Expected `int`, got `str`"),
        (
            GOOD.replace(b'"unreachable"', b'"gone"'),
            "samples[1].failure.kind: Invalid enum value 'gone'",
        ),
        (
            GOOD.replace(b'"value_ns":-7,', b""),
            "samples[0]: a sample has either value_ns or failure, never both or neither",
        ),
        (b'{"schema":5,"id":"\xff"}', "no valid JSON: Invalid UTF-8 encoded string"),
        (b'{"schema":' + b"[" * 100_000, "no valid JSON: maximum recursion depth exceeded"),
    ],
)
def test_a_bad_line_is_refused_with_its_field(line: bytes, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_line(line)
    assert str(caught.value).startswith(message)


def test_reading_stops_at_the_bad_line_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(SMALL) + b"\n" + GOOD.replace(b'"seq":4', b'"seq":-0.5'))
    lines = read_lines(path)
    assert next(lines) == SMALL
    with pytest.raises(RecordError, match=r"records\.jsonl: line 3: samples\[1\]\.seq: Expected"):
        next(lines)


def test_a_last_line_that_is_cut_off_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(SMALL) + GOOD[: len(GOOD) // 2])
    with pytest.raises(RecordError, match=r"line 2: no valid JSON: Input data was truncated"):
        list(read_lines(path))


def test_an_open_file_is_read_too() -> None:
    assert list(read_lines(io.BytesIO(GOOD + encode_line(SMALL)))) == [FULL, SMALL]


def test_a_missing_file_is_a_record_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no-such: cannot be read: No such file"):
        next(read_lines(tmp_path / "no-such"))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_json_cannot_hold_is_refused_not_changed(number: float) -> None:
    with pytest.raises(RecordError, match=r"options\.ratio: .* cannot be written"):
        encode_line(msgspec.structs.replace(SMALL, options={"ratio": number}))
    place = msgspec.structs.replace(SMALL.vantage, latitude=number)
    with pytest.raises(RecordError, match=r"vantage\.latitude"):
        encode_line(msgspec.structs.replace(SMALL, vantage=place))


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(RecordError, match="Sample cannot be written"):
        encode_sample(Sample(seq=0, metric="\ud800", sent_unix_ns=1, value_ns=5))


def test_a_foreign_version_in_memory_is_not_written() -> None:
    with pytest.raises(RecordError, match="schema: 1 is not the version"):
        encode_line(msgspec.structs.replace(SMALL, schema=1))
