"""sslcert results: phases of one handshake, and the step that failed."""

from typing import Any

import pytest

from pathbudget.probes.record import Measurement, Sample


def sslcert(**changes: object) -> dict[str, object]:
    result: dict[str, object] = {
        "fw": 5020, "lts": 20, "dst_name": "example.net", "dst_port": "443", "method": "TLS",
        "ver": "1.2", "dst_addr": "192.0.2.7", "af": 4, "src_addr": "198.51.100.4",
        "ttc": 30.25, "rt": 70.5, "cert": ["-----BEGIN CERTIFICATE-----"], "msm_id": 2,
        "prb_id": 3, "timestamp": 1_600_000_000, "type": "sslcert", "from": "198.51.100.4",
    }  # fmt: skip
    result.update(changes)
    return {key: value for key, value in result.items() if value is not None}


def outcome(sample: Sample) -> int | str:
    if sample.failure is None:
        assert sample.value_ns is not None
        return sample.value_ns
    return f"{sample.failure.kind}/{sample.failure.stage}"


def phases(measurement: Measurement) -> list[tuple[str, int | str]]:
    return [(str(sample.metric), outcome(sample)) for sample in measurement.samples]


FAILED: dict[str, object] = {"ttc": None, "rt": None, "cert": None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [("connect", 30_250_000), ("tls_handshake", 40_250_000)]),
        (
            {"ttr": 1.5},
            [("resolve", 1_500_000), ("connect", 30_250_000), ("tls_handshake", 40_250_000)],
        ),
        (
            {"cert": None, "alert": {"level": 2, "description": 40}},
            [("connect", 30_250_000), ("tls_handshake", "protocol/handshake")],
        ),
        ({**FAILED, "err": "connect: timeout"}, [("connect", "timeout/connect")]),
        ({**FAILED, "err": "connect: Connection refused"}, [("connect", "refused/connect")]),
        ({**FAILED, "err": "connect: No route to host"}, [("connect", "unreachable/connect")]),
        (
            {**FAILED, "ttc": 30.25, "err": "timeout reading certificates"},
            [("connect", 30_250_000), ("tls_handshake", "timeout/handshake")],
        ),
        (
            {**FAILED, "ttc": 30.25, "err": "bad type"},
            [("connect", 30_250_000), ("tls_handshake", "protocol/handshake")],
        ),
        (
            {**FAILED, "dst_addr": None, "ttr": 9.0, "dnserr": "nodename nor servname provided"},
            [("resolve", "name_not_found/resolve")],
        ),
        (
            {**FAILED, "dst_addr": None, "dnserr": "what (7)"},
            [("resolve", "other/resolve")],
        ),
        ({**FAILED, "error": "address not allowed"}, [("connect", "permission/connect")]),
        ({**FAILED, "dst_addr": None}, [("resolve", "name_not_found/resolve")]),
        ({"rt": 20.0}, [("connect", 30_250_000), ("tls_handshake", "corrupt/parse")]),
        ({"ttc": -5.0}, [("connect", "corrupt/parse"), ("tls_handshake", "corrupt/parse")]),
    ],
)
def test_phases(
    read_objects: Any, changes: dict[str, object], expected: list[tuple[str, int | str]]
) -> None:
    imported = read_objects(sslcert(**changes))
    (measurement,) = imported.measurements
    assert phases(measurement) == expected
    assert {sample.seq for sample in measurement.samples} == {0}
    assert measurement.probe == "tls"
    assert measurement.target.port == 443


@pytest.mark.parametrize(
    ("port", "expected"),
    [("https", 443), (8443, 8443), ("0", None), ("gopher", None), (70000, None), (None, None)],
)
def test_port(read_objects: Any, port: object, expected: int | None) -> None:
    assert read_objects(sslcert(dst_port=port)).measurements[0].target.port == expected


def test_a_certificate_without_times_has_nothing_to_import(read_objects: Any) -> None:
    report = read_objects(sslcert(ttc=None, rt=None, fw=4480)).report
    assert report.left_out == {"sslcert without times (firmware before 4540)": 1}


def test_no_certificate_is_stored(read_objects: Any) -> None:
    import msgspec

    (measurement,) = read_objects(sslcert()).measurements
    assert b"CERTIFICATE" not in msgspec.json.encode(measurement)
