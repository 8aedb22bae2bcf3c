"""Garbage in: nothing is raised, and everything is either imported or counted."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathbudget.agents.importers.ripe_atlas import ImportReport, read_results
from pathbudget.probes.codec import decode_line, encode_line

KEYS = (
    "fw", "lts", "dst_name", "af", "dst_addr", "ttl", "result", "dup", "rcvd", "sent", "msm_id",
    "prb_id", "timestamp", "type", "step", "addr", "name", "pf", "error", "dnserr", "min", "max",
    "avg", "proto", "endtime", "err", "alert", "cert", "ttc", "rt", "ttr", "dst_port", "sockerr",
)  # fmt: skip
REPLY_KEYS = ("rtt", "x", "dup", "late", "ttl", "error", "from", "err", "hop", "result", "size")
TYPES = ("ping", "traceroute", "sslcert", "dns", "sslcert ", "PING", "")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-3, 300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(["*", "N", "p", "192.0.2.7", "2001:db8::1", "timeout", "3", "1.5"])
)
replies = st.recursive(
    st.dictionaries(st.sampled_from(REPLY_KEYS), scalars, max_size=5),
    lambda inner: st.fixed_dictionaries({"hop": scalars, "result": st.lists(inner, max_size=4)}),
    max_leaves=6,
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {**base, **changes}


results = st.builds(
    changed,
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(TYPES),
            "msm_id": st.integers(0, 9),
            "prb_id": st.integers(0, 9),
            "timestamp": st.integers(0, 9_000_000_000),
            "fw": st.sampled_from([0, 1, 4400, 5020, "5020"]),
            "result": st.lists(replies, max_size=5),
        }
    ),
    st.dictionaries(st.sampled_from(KEYS), anything, max_size=6),
)


def check(content: bytes) -> ImportReport:
    """Import `content`; what comes out must be whole, storable and counted."""
    report = ImportReport()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed"
        path.write_bytes(content)
        measurements = list(read_results([path], report=report))
    counted = report.measurements + report.malformed
    assert report.results == counted + report.skipped.total() + report.left_out.total()
    assert len(measurements) == report.measurements == report.types.total()
    assert report.samples == sum(len(measurement.samples) for measurement in measurements)
    for measurement in measurements:
        assert decode_line(encode_line(measurement)) == measurement
        assert all(
            sample.value_ns is None or 0 <= sample.value_ns < 2**63
            for sample in measurement.samples
        )
    return report


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(results | anything, min_size=1, max_size=4), st.booleans())
def test_results_of_any_content(values: list[Any], as_array: bool) -> None:
    lines = [json.dumps(value) for value in values]
    content = f"[{','.join(lines)}]" if as_array else "\n".join(lines)
    report = check(content.encode())
    if as_array or not isinstance(values[0], list):  # a list would make the whole file an array
        assert report.results == len(values)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(content: bytes) -> None:
    check(content)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=200), st.sampled_from([b"[", b"{", b"\x1f\x8b\x08\x00", b"BZh9", b'[{"fw":'])
)
def test_any_bytes_behind_a_likely_beginning(content: bytes, beginning: bytes) -> None:
    check(beginning + content)


@pytest.mark.needs("data")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_real_lines_with_bytes_changed(data: st.DataObject, real_lines: Any) -> None:
    start = data.draw(st.integers(0, len(real_lines) - 3))
    text = "\n".join(line.text for line in real_lines[start : start + 3])
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        cut = data.draw(st.integers(0, 3))
        content[at : at + cut] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"{", b"]"])
        )
    check(bytes(content))
