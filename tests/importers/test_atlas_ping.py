"""ping results: packets, losses, late and duplicate answers, errors, the oldest firmware."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.importers.atlas_wire import nanoseconds
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    FailureKind,
    Flag,
    Measurement,
    Stage,
    SyncState,
)


def outcomes(measurement: Measurement) -> list[int | str | None]:
    return [
        sample.value_ns if sample.failure is None else str(sample.failure.kind)
        for sample in measurement.samples
    ]


def test_an_ordinary_result_becomes_one_measurement(read_objects: Any, ping: Any) -> None:
    (measurement,) = read_objects(ping()).measurements
    assert outcomes(measurement) == [10_001_000, 10_500_000, 11_250_000]
    assert measurement.probe == "icmp"
    assert measurement.campaign == "ripe-atlas-1001"
    assert measurement.vantage.name == measurement.vantage.region == "ripe-atlas-probe-77"
    assert measurement.target.host == measurement.target.site == "example.net"
    assert measurement.address == "192.0.2.7"
    assert measurement.family is AddressFamily.IPV4
    assert measurement.software == "ripe-atlas firmware 5020"
    assert measurement.schedule == "ripe-atlas every 240s"
    assert measurement.imported_from == "results.json"
    for seq, sample in enumerate(measurement.samples):
        assert sample.seq == seq
        assert sample.ttl == 55
        assert sample.clock_source is ClockSource.FOREIGN
        assert sample.sent_unix_ns == 1_599_523_340_000_000_000


def test_a_lost_packet_is_a_sample(read_objects: Any, ping: Any) -> None:
    packets = [{"rtt": 1.5}, {"x": "*"}, {"rtt": 2}]
    imported = read_objects(ping(result=packets, rcvd=2))
    assert outcomes(imported.measurements[0]) == [1_500_000, "timeout", 2_000_000]
    assert imported.report.failures == {"timeout/wait": 1}
    assert imported.report.inconsistent == 0


def test_late_and_duplicate_answers_are_counted_and_are_no_samples(
    read_objects: Any, ping: Any
) -> None:
    packets = [
        {"x": "*"}, {"dup": 1, "rtt": 900.5, "ttl": 54}, {"rtt": 3.0},
        {"late": 1, "rtt": 1200.0}, {"rtt": 4.0, "dup": True},
    ]  # fmt: skip
    imported = read_objects(ping(result=packets, sent=2, rcvd=1, dup=2))
    (measurement,) = imported.measurements
    assert outcomes(measurement) == ["timeout", 3_000_000]
    assert measurement.counters == {"duplicate": 2, "late": 1}
    assert (imported.report.late, imported.report.duplicates) == (1, 2)


def test_duplicates_hidden_by_wrong_totals_are_no_samples(read_objects: Any, ping: Any) -> None:
    """Three entries, three sent, three received: it looks plain and is not."""
    packets = [{"rtt": 1.0}, {"rtt": 2.0, "dup": 1}, {"rtt": 3.0}]
    imported = read_objects(ping(result=packets))
    assert outcomes(imported.measurements[0])[:2] == [1_000_000, 3_000_000]
    assert imported.report.duplicates == 1


@pytest.mark.parametrize(
    ("message", "kind", "stage"),
    [
        ("sendto failed: Network is unreachable", FailureKind.NO_ROUTE, Stage.SEND),
        ("sendto failed: Operation not permitted", FailureKind.PERMISSION, Stage.SEND),
        ("connect failed: No route to host", FailureKind.UNREACHABLE, Stage.SEND),
        ("address not allowed", FailureKind.PERMISSION, Stage.SEND),
        ("bind to interface failed", FailureKind.LOCAL, Stage.SEND),
        ("socket failed: Too many open files", FailureKind.LOCAL, Stage.SEND),
        (
            "dns resolution failed: nodename nor servname provided, or not known",
            FailureKind.NAME_NOT_FOUND,
            Stage.RESOLVE,
        ),
        (
            "dns resolution failed: non-recoverable failure in name resolution",
            FailureKind.RESOLVER,
            Stage.RESOLVE,
        ),
        (
            "dns resolution failed: no address associated with nodename",
            FailureKind.NO_ADDRESS,
            Stage.RESOLVE,
        ),
        ("the moon is in the way", FailureKind.OTHER, Stage.SEND),
    ],
)
def test_error_texts_become_kinds_and_keep_their_words(
    read_objects: Any, ping: Any, message: str, kind: FailureKind, stage: Stage
) -> None:
    result = ping(result=[{"error": message}], sent=3, rcvd=0, dst_addr=None)
    (measurement,) = read_objects(result).measurements
    (sample,) = measurement.samples
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.stage) == (kind, stage)
    assert sample.failure.detail == message
    assert measurement.address == ""


def test_a_name_that_did_not_resolve_is_a_failure(read_objects: Any, ping: Any) -> None:
    (measurement,) = read_objects(ping(dst_addr=None, result=[], sent=0, rcvd=0, af=6)).measurements
    (sample,) = measurement.samples
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.stage) == ("name_not_found", "resolve")
    assert measurement.family is AddressFamily.IPV6


def test_a_packet_that_was_sent_and_has_no_record_is_not_forgotten(
    read_objects: Any, ping: Any
) -> None:
    imported = read_objects(ping(result=[{"rtt": 1.0}], sent=3, rcvd=1))
    assert outcomes(imported.measurements[0]) == [1_000_000, "other", "other"]


@pytest.mark.parametrize("time", [-1, -0.001, 1e9, 1e300])
def test_a_time_that_cannot_be_costs_one_packet(read_objects: Any, ping: Any, time: float) -> None:
    packets = [{"rtt": 1.0}, {"rtt": time}, {"rtt": 3.0}]
    imported = read_objects(ping(result=packets))
    assert outcomes(imported.measurements[0]) == [1_000_000, "corrupt", 3_000_000]
    assert imported.report.inconsistent == 1


def test_ttl_of_each_answer(read_objects: Any, ping: Any) -> None:
    """The firmware names a TTL where it changes; before the first change it is unknown."""
    packets = [{"rtt": 1.0}, {"rtt": 2.0, "ttl": 51}, {"rtt": 3.0}]
    (changed,) = read_objects(ping(result=packets, ttl=51)).measurements
    assert [sample.ttl for sample in changed.samples] == [None, 51, 51]
    (documented,) = read_objects(ping(result=packets, ttl=52)).measurements
    assert [sample.ttl for sample in documented.samples] == [52, 51, 52]


@pytest.mark.parametrize(
    ("lts", "state"),
    [
        (0, SyncState.SYNCHRONISED),
        (3600, SyncState.SYNCHRONISED),
        (3601, SyncState.UNSYNCHRONISED),
        (-1, SyncState.UNKNOWN),
        (None, SyncState.UNKNOWN),
    ],
)
def test_time_since_synchronisation(
    read_objects: Any, ping: Any, lts: int | None, state: SyncState
) -> None:
    (measurement,) = read_objects(ping(lts=lts)).measurements
    assert measurement.clock is not None
    assert measurement.clock.sync_state is state
    assert measurement.clock.offset_bound_ns is None


def totals(ping: Any, **changes: object) -> dict[str, object]:
    removed = dict.fromkeys(("result", "dst_addr", "dst_name", "af", "lts"))
    result: dict[str, object] = ping(**removed, fw=1, addr="192.0.2.9", name="old.example.net")
    result.update(changes)
    return result


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"min": "57.876", "avg": "58.042", "max": "58.272"}, [57_876_000, 57_978_000, 58_272_000]),
        ({"rcvd": 2, "min": 1.0, "avg": 1.5, "max": 2.0}, [1_000_000, 2_000_000, "timeout"]),
        ({"rcvd": 1, "min": 1.0, "avg": 1.0, "max": 1.0}, [1_000_000, "timeout", "timeout"]),
        ({"rcvd": 0, "min": -1, "avg": -1, "max": -1}, ["timeout"] * 3),
    ],
)
def test_the_oldest_firmware_is_worked_out_of_totals(
    read_objects: Any, ping: Any, changes: dict[str, object], expected: list[int | str]
) -> None:
    (measurement,) = read_objects(totals(ping, **changes)).measurements
    assert outcomes(measurement) == expected
    assert measurement.address == "192.0.2.9"
    assert measurement.target.host == "old.example.net"
    for sample in measurement.samples:
        assert (Flag.RECONSTRUCTED in sample.flags) == (sample.failure is None)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=3), st.integers(0, 2))
def test_totals_give_back_the_packets_they_were_made_of(times: list[int], lost: int) -> None:
    """Times in whole us; the mean is rounded to whole us as the firmware does."""
    from pathbudget.agents.importers.atlas_ping_totals import MOST_PACKETS, _samples
    from pathbudget.agents.importers.atlas_wire import PingTotals

    sent = min(MOST_PACKETS, len(times) + lost)
    result = PingTotals(
        type="ping", msm_id=1, prb_id=1, timestamp=1, sent=sent, rcvd=len(times),
        min=min(times) / 1000, max=max(times) / 1000,
        avg=round(sum(times) / len(times)) / 1000,
    )  # fmt: skip
    samples = _samples(result)
    found = [sample.value_ns for sample in samples if sample.value_ns is not None]
    assert len(samples) == sent
    assert (found[0], found[-1]) == (min(times) * 1000, max(times) * 1000)
    for value, time in zip(found, sorted(times), strict=True):
        assert abs(value - time * 1000) <= 1_500


def test_nothing_is_taken_from_totals_of_more_packets(read_objects: Any, ping: Any) -> None:
    """Else only the lossy ones would be imported, and the loss ratio would be a lie."""
    imported = read_objects(totals(ping, sent=10, rcvd=1, min=1.0, avg=1.0, max=1.0))
    assert not imported.measurements
    assert imported.report.left_out.total() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"min": 5.0, "avg": 1.0, "max": 9.0},
        {"rcvd": 4},
        {"rcvd": 3, "min": None, "avg": None, "max": None},
        {"rcvd": 2, "min": 1.0, "avg": 9.0, "max": 2.0},
    ],
)
def test_totals_that_contradict_each_other_are_malformed(
    read_objects: Any, ping: Any, changes: dict[str, object]
) -> None:
    result = {key: value for key, value in totals(ping, **changes).items() if value is not None}
    imported = read_objects(result)
    assert imported.report.malformed == 1
    assert not imported.measurements


@given(st.integers(0, 10**13 - 1), st.integers(0, 6))
def test_float_times_a_million_is_the_written_decimal(nanos: int, dropped: int) -> None:
    """All decimals that the platform can write, up to 10^7 ms: no truncation, no rounding error."""
    nanos -= nanos % 10**dropped
    text = f"{nanos // 10**6}.{nanos % 10**6:06d}"
    assert nanoseconds(float(text)) == nanos


def test_the_same_result_has_the_same_id_however_it_is_written(
    read_objects: Any, read_bytes: Any, ping: Any
) -> None:
    import json

    result = ping()
    bare = {key: result[key] for key in sorted(result) if key not in ("stored_timestamp", "from")}
    forms = [
        json.dumps(result).encode(),
        json.dumps(bare, indent=3).encode(),
        json.dumps([{"type": "dns"}, result]).encode(),
        json.dumps({**result, "msm_id": "1001", "rcvd": "3"}).encode(),
    ]
    ids = {read_bytes(form).measurements[0].id for form in forms}
    assert len(ids) == 1
    other = read_objects(ping(result=[{"rtt": 10.002}, {"rtt": 10.5}, {"rtt": 11.25}]))
    assert other.measurements[0].id not in ids


def test_plain_results_read_alone_or_in_a_block_are_the_same(read_objects: Any, ping: Any) -> None:
    results = [ping(prb_id=number, ttl=number % 3 * 20) for number in range(50)]
    block = read_objects(*results).measurements
    mixed = read_objects(*results, {"type": "dns"}).measurements
    assert block == mixed
    assert block == [read_objects(result).measurements[0] for result in results]
