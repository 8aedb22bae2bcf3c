"""Every real line against ripe.atlas.sagan, run here, and against what it said elsewhere.

Where the two readers differ, the line is listed with the reason. There is no tolerance.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
from ripe.atlas.sagan import Result, ResultParseError

from pathbudget.probes.record import AddressFamily, Measurement, Sample

pytestmark = pytest.mark.needs("data")

RECONSTRUCTED = "sagan/test_ping.jsonl:1"
"""Firmware 0 gives totals only. sagan calls it malformed and reads no packet; three packets follow
from minimum, mean and maximum, and are imported with a flag."""

UNTIMED = {"sagan/test_ssl.jsonl:1", "sagan/test_ssl.jsonl:2"}
"""Firmware before 4540 read certificates and measured no time. sagan reads the certificate, which
is not imported: neither a number nor a failure is left."""

NOT_MEASURED = {"dns", "http", "ntp", "wifi"}
KLASSES = {"PingResult": "ping", "TracerouteResult": "traceroute", "SslResult": "sslcert"}


def oracle(text: str) -> Any:
    """What sagan reads; None where it refuses. (It warns about its own use of cryptography.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Result.get(text)
        except ResultParseError:
            return None


def values(measurement: Measurement, metric: str = "rtt") -> list[int]:
    return [
        sample.value_ns
        for sample in measurement.samples
        if sample.value_ns is not None and sample.metric == metric
    ]


def rounded(measurement: Measurement, metric: str = "rtt") -> list[float]:
    """Milliseconds as sagan rounds them."""
    return [round(value / 1e6, 3) for value in values(measurement, metric)]


def failures(measurement: Measurement) -> Counter[str]:
    return Counter(
        f"{sample.failure.kind}/{sample.failure.stage}"
        for sample in measurement.samples
        if sample.failure is not None and sample.metric != "hop_rtt"
    )


def check_hops(measurement: Measurement, known: Any) -> None:
    """Every packet of every hop: who answered, when, and with which labels."""
    by_limit: dict[int, list[Sample]] = {}
    for sample in measurement.samples:
        if sample.metric == "hop_rtt" and sample.part is not None:
            by_limit.setdefault(sample.part, []).append(sample)
    own = [(hop.index, hop.packets) for hop in known.hops if hop.packets]
    assert sorted(by_limit) == [limit for limit, _ in own]
    for limit, packets in own:
        read = [(origin_of(one, measurement), milliseconds(one)) for one in by_limit[limit]]
        own_addresses = {known.origin, known.source_address} - {known.destination_address}
        theirs = [
            ("masked" if packet.origin in own_addresses else packet.origin, packet.rtt)
            for packet in packets
        ]
        assert read == theirs
        stacks = [str((one.notes or {}).get("mpls", "")) for one in by_limit[limit]]
        assert stacks == [labels_of(packet) for packet in packets]


def origin_of(sample: Sample, measurement: Measurement) -> str | None:
    """Who answered, as the file says it."""
    if sample.failure is not None and sample.responder is None:
        return None
    return sample.responder or measurement.address


def milliseconds(sample: Sample) -> float | None:
    return None if sample.value_ns is None else round(sample.value_ns / 1e6, 3)


def labels_of(packet: Any) -> str:
    entries = [
        f"{label['label']}/{label['exp']}/{label['s']}/{label['ttl']}"
        for one in getattr(packet.icmp_header, "objects", None) or []
        for label in one.get("mpls", []) or []
    ]
    return " ".join(entries)


def check_ping(measurement: Measurement, known: Any) -> None:
    own = [packet for packet in known.packets if not packet.dup]
    answered = [packet.rtt for packet in own if packet.rtt is not None]
    assert rounded(measurement) == answered
    lost = len(own) - len(answered)
    assert failures(measurement) == ({"timeout/wait": lost} if lost else {})
    assert measurement.counters.get("duplicate", 0) == known.duplicates
    assert len(measurement.samples) == known.packets_sent
    assert len(answered) == known.packets_received


def check_traceroute(measurement: Measurement, known: Any) -> None:
    hop = known.hops[-1]
    if not hop.packets:
        details = [sample.failure.detail for sample in measurement.samples if sample.failure]
        assert details == known.last_hop_errors
        return
    check_hops(measurement, known)
    answered = [
        packet.rtt
        for packet in hop.packets
        if packet.origin == known.destination_address and not packet.is_error
    ]
    errors = sum(packet.is_error for packet in hop.packets)
    lost = len(hop.packets) - len(answered) - errors
    assert rounded(measurement) == answered
    assert bool(answered) == known.destination_ip_responded
    expected = Counter({"unreachable/wait": errors, "timeout/wait": lost})
    assert failures(measurement) == +expected


def check_sslcert(measurement: Measurement, known: Any) -> None:
    connect = [] if known.time_to_connect is None else [round(known.time_to_connect, 3)]
    assert rounded(measurement, "connect") == connect
    assert failures(measurement).total() == (1 if known.is_error else 0)
    if not known.is_error:
        both = values(measurement, "connect")[0] + values(measurement, "tls_handshake")[0]
        assert both == round(known.response_time * 1e6)


CHECKS: dict[str, Callable[[Measurement, Any], None]] = {
    "ping": check_ping,
    "traceroute": check_traceroute,
    "ssl": check_sslcert,
}


def outcome(line: Any, imported: Any) -> str:
    """Compare the two readers on one line; what kind of line it is."""
    known = oracle(line.text)
    report = imported.report
    assert report.results == 1
    if known is None:
        assert report.malformed == 1
        return "malformed"
    assert report.malformed == 0
    if known.type in NOT_MEASURED:
        assert report.skipped == {known.type: 1}
        return "no probe yet"
    if line.place in UNTIMED:
        assert report.left_out.total() == 1
        assert known.response_time is None
        assert not known.is_error
        return "untimed"
    (measurement,) = imported.measurements
    assert measurement.vantage.name == f"ripe-atlas-probe-{known.probe_id}"
    assert measurement.software == f"ripe-atlas firmware {known.firmware}"
    assert measurement.started_unix_ns == known.created_timestamp * 10**9
    if line.place == RECONSTRUCTED:
        assert known.is_malformed
        assert not known.packets
        return "reconstructed"
    CHECKS[known.type](measurement, known)
    return str(known.type)


def test_every_real_line_is_read_as_sagan_reads_it(real_lines: Any, read_bytes: Any) -> None:
    found: Counter[str] = Counter()
    for line in real_lines:
        try:
            found[outcome(line, read_bytes(line.text.encode()))] += 1
        except AssertionError as error:
            raise AssertionError(f"{line.place}: {error}\n{line.text[:1500]}") from error
    assert found == {
        "ping": 524,
        "traceroute": 599,
        "ssl": 20,
        "no probe yet": 44,
        "malformed": 59,
        "reconstructed": 1,
        "untimed": 2,
    }


def check_ping_facts(measurement: Measurement, known: dict[str, Any]) -> None:
    """Reconstructed ones included: the totals are facts of the line, whoever reads it."""
    times = values(measurement)
    assert len(measurement.samples) == known["packets_sent"]
    assert len(times) == known["packets_received"]
    assert measurement.counters.get("duplicate", 0) == known["duplicates"]
    assert min(times) == round(known["rtt_min"] * 1e6)
    assert max(times) == round(known["rtt_max"] * 1e6)


def check_facts(measurement: Measurement, known: dict[str, Any]) -> None:
    family = {4: AddressFamily.IPV4, 6: AddressFamily.IPV6, None: None}[known["af"]]
    assert measurement.family is family
    if known["klass"] == "PingResult":
        check_ping_facts(measurement, known)
    elif known["klass"] == "TracerouteResult":
        assert bool(values(measurement)) == known["destination_ip_responded"]
    elif known["response_time"] is not None and not known["is_error"]:
        both = values(measurement, "connect") + values(measurement, "tls_handshake")
        assert sum(both) == round(known["response_time"] * 1e6)


def test_facts_noted_by_the_oracle_elsewhere_agree(real_lines: Any, read_bytes: Any) -> None:
    checked: Counter[str] = Counter()
    for line in real_lines:
        if line.expected is None or line.expected["klass"] not in KLASSES or line.place in UNTIMED:
            continue
        imported = read_bytes(line.text.encode())
        assert imported.report.types == {KLASSES[line.expected["klass"]]: 1}, line.place
        try:
            check_facts(imported.measurements[0], line.expected)
        except AssertionError as error:
            raise AssertionError(f"{line.place}: {error}\n{line.text[:1500]}") from error
        checked[line.expected["klass"]] += 1
    assert checked == {"PingResult": 525, "TracerouteResult": 599, "SslResult": 20}


def written_times(result: dict[str, Any]) -> list[Decimal]:
    """The decimals that stand in the file for what is imported as round trips, in ms."""
    if result["type"] == "ping":
        replies = result.get("result", [])
        return [reply["rtt"] for reply in replies if "rtt" in reply and "dup" not in reply]
    last = result["result"][-1].get("result", [])
    return [
        reply["rtt"]
        for reply in last
        if "rtt" in reply and reply["from"] == result["dst_addr"] and "err" not in reply
    ]


def test_each_round_trip_is_the_written_decimal(real_lines: Any, read_bytes: Any) -> None:
    """To the nanosecond, rounded only where the file has more than six decimals."""
    numbers = rounded_ones = 0
    for line in real_lines:
        imported = read_bytes(line.text.encode())
        if not imported.report.types["ping"] + imported.report.types["traceroute"]:
            continue
        written = written_times(json.loads(line.text, parse_float=Decimal))
        if line.place == RECONSTRUCTED:
            continue
        exact = [time * 10**6 for time in written]
        expected = [int(time.to_integral_value(ROUND_HALF_EVEN)) for time in exact]
        assert values(imported.measurements[0]) == expected, line.place
        numbers += len(expected)
        rounded_ones += sum(time != int(time) for time in exact)
    assert numbers == 3247
    assert rounded_ones == 6


def test_all_real_lines_in_one_file_give_the_same_as_one_by_one(
    real_lines: Any, read_bytes: Any
) -> None:
    alone = [
        measurement
        for line in real_lines
        for measurement in read_bytes(line.text.encode()).measurements
    ]
    together = read_bytes("\n".join(line.text for line in real_lines).encode())
    assert together.measurements == alone
    report = together.report
    assert report.results == len(real_lines)
    counted = report.measurements + report.malformed
    assert report.results == counted + report.skipped.total() + report.left_out.total()
    assert report.samples == sum(len(measurement.samples) for measurement in alone)
