"""traceroute results: what they say of the destination, and of the hops on the way."""

from collections.abc import Mapping
from typing import Any

import pytest

from pathbudget.probes.record import Measurement, Sample

DESTINATION = "192.0.2.7"
ROUTER = "198.51.100.1"


def reply(origin: str = DESTINATION, rtt: float = 10.0, **more: object) -> dict[str, object]:
    return {"from": origin, "ttl": 50, "size": 28, "rtt": rtt, **more}


STAR: dict[str, object] = {"x": "*"}


def hop(number: int, *packets: Mapping[str, object]) -> dict[str, object]:
    return {"hop": number, "result": list(packets)}


def trace(*hops: dict[str, object], **changes: object) -> dict[str, object]:
    result: dict[str, object] = {
        "fw": 5020, "lts": 20, "endtime": 1_600_000_005, "dst_name": "example.net",
        "dst_addr": DESTINATION, "proto": "ICMP", "af": 4, "size": 48, "result": list(hops),
        "msm_id": 2, "prb_id": 3, "timestamp": 1_600_000_000, "type": "traceroute",
    }  # fmt: skip
    result.update(changes)
    return {key: value for key, value in result.items() if value is not None}


def outcomes(measurement: Measurement) -> list[int | str]:
    return [word_of(sample) for sample in destination(measurement)]


def word_of(sample: Sample) -> int | str:
    if sample.value_ns is not None:
        return sample.value_ns
    return f"{sample.failure and sample.failure.kind}"


def destination(measurement: Measurement) -> list[Sample]:
    return [sample for sample in measurement.samples if sample.metric == "rtt"]


def hops(measurement: Measurement) -> list[tuple[int | None, str | None, int | str]]:
    """Hop limit, responder and number of every packet on the way."""
    return [
        (sample.part, sample.responder, word_of(sample))
        for sample in measurement.samples
        if sample.metric == "hop_rtt"
    ]


def test_the_destination_answers(read_objects: Any) -> None:
    result = trace(hop(1, *[reply(ROUTER, 1.0)] * 3), hop(2, reply(rtt=9.5), STAR, reply(rtt=9.25)))
    imported = read_objects(result)
    (measurement,) = imported.measurements
    assert outcomes(measurement) == [9_500_000, "timeout", 9_250_000]
    assert measurement.probe == "trace"
    assert measurement.options == {"protocol": "icmp", "size": 48}
    assert measurement.duration_ns == 5_000_000_000
    assert hops(measurement) == [
        *[(1, ROUTER, 1_000_000)] * 3,
        *[(2, None, 9_500_000), (2, None, "timeout"), (2, None, 9_250_000)],
    ]
    report = imported.report
    assert (report.samples, report.hop_samples, report.hop_unanswered) == (9, 6, 1)
    assert (report.numbers, report.failures) == (7, {"timeout/wait": 1})


def test_a_middle_hop_with_the_address_of_the_destination_is_not_taken(read_objects: Any) -> None:
    """A NAT box in front of the destination speaks for it."""
    result = trace(hop(1, *[reply(rtt=1.0)] * 3), hop(2, *[reply(rtt=20.0)] * 3))
    (measurement,) = read_objects(result).measurements
    assert outcomes(measurement) == [20_000_000] * 3
    unreached = trace(hop(1, *[reply(rtt=1.0)] * 3), hop(255, STAR, STAR, STAR))
    (measurement,) = read_objects(unreached).measurements
    assert outcomes(measurement) == ["timeout"] * 3


def test_a_last_hop_that_is_somebody_else_is_not_the_destination(read_objects: Any) -> None:
    (measurement,) = read_objects(trace(hop(32, *[reply(ROUTER)] * 2))).measurements
    assert outcomes(measurement) == ["time_exceeded"] * 2


def test_late_and_duplicate_answers_are_no_samples(read_objects: Any) -> None:
    late = {"late": 4, "from": DESTINATION, "ttl": 50, "size": 28}
    late6 = {"late": 4, "from": DESTINATION, "ttl": 50, "rtt": 5000.0, "size": 28}
    result = trace(
        hop(1, reply(ROUTER, 1.0), late, STAR),
        hop(2, late6, reply(rtt=9.5), {"dup": True, **reply(rtt=99.0)}, reply(rtt=9.0)),
    )
    imported = read_objects(result)
    (measurement,) = imported.measurements
    assert outcomes(measurement) == [9_500_000, 9_000_000]
    assert measurement.counters == {"late": 2, "duplicate": 1}
    assert (imported.report.late, imported.report.duplicates) == (2, 1)


@pytest.mark.parametrize(
    ("err", "family", "icmp"),
    [
        ("N", 4, (3, 0)), ("H", 4, (3, 1)), ("P", 4, (3, 2)), ("p", 4, (3, 3)), ("A", 4, (3, 13)),
        (10, 4, (3, 10)), ("N", 6, (1, 0)), ("A", 6, (1, 1)), ("h", 6, (1, 2)), ("H", 6, (1, 3)),
        (5, 6, (1, 5)), ("?", 4, (None, None)), (4711, 4, (3, None)),
    ],
)  # fmt: skip
def test_unreachable_keeps_type_and_code(
    read_objects: Any, err: object, family: int, icmp: tuple[int | None, int | None]
) -> None:
    result = trace(hop(4, reply(ROUTER, 3.0, err=err)), af=family)
    measurement = read_objects(result).measurements[0]
    (sample,) = destination(measurement)
    assert sample.failure is not None
    assert sample.failure.kind == "unreachable"
    hop_sample = measurement.samples[-1]
    assert (hop_sample.value_ns, hop_sample.responder) == (3_000_000, ROUTER)
    words = {"icmp": f"{icmp[0]}/{icmp[1]}"} if icmp[1] is not None else None
    assert hop_sample.notes == words
    assert (sample.failure.icmp_type, sample.failure.icmp_code) == icmp


def test_port_unreachable_of_the_destination_is_an_arrival(read_objects: Any) -> None:
    result = trace(hop(4, reply(rtt=3.0, err="p"), reply(rtt=3.0, err="A")))
    assert outcomes(read_objects(result).measurements[0]) == [3_000_000, "unreachable"]


def test_one_ipv6_address_in_two_spellings(read_objects: Any) -> None:
    result = trace(
        hop(4, reply("2001:db8:0:0::1", 3.0)), hop(5, reply("2001:DB8::1", 4.0)),
        dst_addr="2001:db8::1", af=6,
    )  # fmt: skip
    assert outcomes(read_objects(result).measurements[0]) == [4_000_000]


@pytest.mark.parametrize(
    ("sent", "kind", "stage"),
    [
        ([{"error": "name resolution failed: non-recoverable failure in name resolution"}],
         "resolver", "resolve"),
        ([{"error": "connect failed: Network is unreachable"}], "no_route", "send"),
        ([{"hop": 1, "error": "bind failed: Address already in use"}], "local", "send"),
        ([hop(1, {"error": "sendto failed: Operation not permitted"})], "permission", "send"),
        ([hop(1, reply(ROUTER)), hop(2, STAR, {"error": "sendto failed: Network is unreachable"})],
         "no_route", "send"),
    ],
)  # fmt: skip
def test_a_trace_that_could_not_be_sent_is_one_failure(
    read_objects: Any, sent: list[dict[str, object]], kind: str, stage: str
) -> None:
    (sample,) = destination(read_objects(trace(*sent)).measurements[0])
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.stage) == (kind, stage)


def test_firmware_1_wrote_text(read_objects: Any) -> None:
    report = read_objects(trace(result="traceroute to 192.0.2.7 ...")).report
    assert report.left_out == {"traceroute as text (firmware 1)": 1}


def test_a_trace_without_hops(read_objects: Any) -> None:
    assert read_objects(trace()).report.left_out.total() == 1
    (sample,) = read_objects(trace(dst_addr=None)).measurements[0].samples
    assert sample.failure is not None
    assert sample.failure.kind == "name_not_found"


def test_labels_and_quoted_hop_limits_are_kept(read_objects: Any) -> None:
    stack = [{"label": 3826, "exp": 2, "s": 0, "ttl": 1}, {"label": 17, "exp": 0, "s": 1, "ttl": 9}]
    extension = {"version": 2, "rfc4884": 0, "obj": [{"class": 1, "type": 1, "mpls": stack}]}
    result = trace(hop(3, reply(ROUTER, 1.0, ittl=2, icmpext=extension, mtu=1400)), hop(4, reply()))
    sample = read_objects(result).measurements[0].samples[1]
    assert sample.notes == {"mpls": "3826/2/0/1 17/0/1/9", "quoted_ttl": 2, "mtu": 1400}


@pytest.mark.parametrize("extension", [7, "x", {"obj": 3}, {"obj": [{"class": 1, "mpls": [1]}]}])
def test_a_strange_extension_spoils_no_answer(read_objects: Any, extension: object) -> None:
    result = trace(hop(1, reply(ROUTER, 1.0, icmpext=extension)), hop(2, reply()))
    (measurement,) = read_objects(result).measurements
    assert hops(measurement)[0] == (1, ROUTER, 1_000_000)
    assert measurement.counters["extension_unreadable"] == 1


def test_addresses_of_the_probe_itself_are_no_responders(read_objects: Any) -> None:
    """A home router answers from the address of the home."""
    result = trace(
        hop(1, reply("198.51.100.77", 1.0)), hop(2, reply(ROUTER)), hop(3, reply()),
        **{"from": "198.51.100.77", "src_addr": "192.168.0.9"},
    )  # fmt: skip
    (measurement,) = read_objects(result).measurements
    assert [responder for _, responder, _ in hops(measurement)] == ["masked", ROUTER, None]
    (measurement,) = read_objects(result, keep_addresses=True).measurements
    assert hops(measurement)[0][1] == "198.51.100.77"


def test_flows_are_paris_numbers_and_classic_traceroute_has_none(read_objects: Any) -> None:
    result = trace(hop(1, reply(ROUTER)), hop(2, reply()), paris_id=7)
    assert {one.flow for one in read_objects(result).measurements[0].samples} == {7, None}
    classic = trace(hop(1, reply(ROUTER)), hop(2, reply()), paris_id=0)
    assert {one.flow for one in read_objects(classic).measurements[0].samples} == {None}


def test_a_hop_without_a_limit_is_counted(read_objects: Any) -> None:
    result = trace({"result": [reply(ROUTER)]}, hop(300, reply(ROUTER)), hop(2, reply()))
    (measurement,) = read_objects(result).measurements
    assert measurement.counters == {"hop_without_limit": 2}
    assert hops(measurement) == [(2, None, 10_000_000)]


def test_an_answer_of_nobody_is_no_hop(read_objects: Any) -> None:
    result = trace(hop(1, reply("", 1.0)), hop(2, reply()))
    assert hops(read_objects(result).measurements[0])[0] == (1, None, "corrupt")


def test_hops_stay_when_the_last_one_has_only_late_answers(read_objects: Any) -> None:
    late = {"late": 4, "from": DESTINATION, "ttl": 50, "size": 28}
    (measurement,) = read_objects(trace(hop(1, reply(ROUTER)), hop(2, late))).measurements
    assert destination(measurement) == []
    assert len(hops(measurement)) == 1
