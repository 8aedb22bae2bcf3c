"""Prompts of 1, 4, 16, 64 and 128 thousand tokens at 40 ms: the probe, a capture, and the model.

The probe counts flights by its own stamps of acknowledgements, the capture by sequence numbers on
the wire, the model by the windows of slow start: all three must agree. The number itself must be
that of the capture, and the model within a stated distance of it.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world_check import build_world
from pathbudget.analysis.upload_model import (
    BBR_GAIN,
    UploadPath,
    model_upload,
    window_after_idle,
)
from pathbudget.probes.reflector_http import HTTPS_PORT

pytestmark = pytest.mark.needs("lab")
STARTS_LABS_HERE = True
MS = 1_000_000
ROUND_TRIP_MS = 40
UPLOADING = Path(__file__).parent / "uploading.py"
SHOTS, SHOTS_OF_KEPT_ONES, SHOTS_OF_LONG_ONES = 2, 4, 8
LONG_TOKENS = 64_000
NEAR_NS = 500_000
WRAP = 1 << 32
FLIGHTS = {1: 1, 4: 2, 16: 3, 64: 5, 128: 6}
"""Thousands of tokens of 4 bytes, and the flights that the formula gives them."""
IDLE_MS = 950
"""Some 240 ms each halve the window (Linux tcp_cwnd_restart): from 56 segments to less than 10."""
SENT_BEFORE = 2
"""Segments of a new TLS connection before the request: ClientHello and Finished."""


class Packet(NamedTuple):
    """One packet of the capture."""

    unix_ns: int
    outgoing: bool
    sequence: int
    acknowledged: int
    length: int
    local_port: int


class Job(NamedTuple):
    """One job of the prober, and what the model is to assume."""

    tokens: int
    congestion: str
    mode: str = "cold"


JOBS = {
    **{f"cubic-{tokens}k": Job(tokens * 1_000, "cubic") for tokens in FLIGHTS},
    "bbr-16k": Job(16_000, "bbr"),
    "bbr-64k": Job(64_000, "bbr"),
    "warm-16k": Job(16_000, "cubic", "warm"),
    "idle-16k": Job(16_000, "cubic", "idle"),
}
Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    near = DirectionModel(delay_ns=1 * MS)
    far = DirectionModel(delay_ns=(ROUND_TRIP_MS // 2 - 1) * MS)
    nodes = [
        Node("region", NodeKind.REGION),
        Node("router", NodeKind.ROUTER),
        Node("site", NodeKind.SITE, responder=False, reflector=True),
    ]
    links = [Link("region", "router", near, near), Link("router", "site", far, far)]
    jobs = [
        {
            "options": {
                "tokens": job.tokens,
                "congestion": job.congestion,
                "mode": job.mode,
                "idle": IDLE_MS / 1000,
                "verify": False,
            },
            "shots": shots_of(job),
            "gap_ms": IDLE_MS + 20 if job.mode == "idle" else 0,
        }
        for job in JOBS.values()
    ]
    with Lab(build_world(nodes, links)) as lab:
        order = {"address": lab.address_of("site"), "port": HTTPS_PORT, "jobs": jobs}
        command = [sys.executable, str(UPLOADING), json.dumps(order)]
        said, _ = lab.spawn("region", command, stdout=subprocess.PIPE).communicate()
    return dict(zip(JOBS, json.loads(said), strict=True))


def shots_of(job: Job) -> int:
    """More of what noise of the host spoils more easily; the first one on kept ones is cold."""
    if job.mode != "cold":
        return SHOTS_OF_KEPT_ONES
    return SHOTS_OF_LONG_ONES if job.tokens >= LONG_TOKENS else SHOTS


def uploads(told: dict[str, Any], mode: str) -> list[dict[str, Any]]:
    """The samples of a job that count: without a retransmission, which noise of the host makes."""
    samples = [one for one in told["samples"] if one["metric"] == "upload"]
    assert all("failure" not in one for one in samples)
    assert all(one["clock_source"] == "kernel" for one in samples)
    whole = [one for one in samples if one["mode"] == mode and not one["notes"]["retransmits"]]
    assert whole, "every upload had a segment sent again"
    return whole


class Captured(NamedTuple):
    """What the capture shows of one upload."""

    flights: int
    first_flight_bytes: int
    left_unix_ns: int
    answers_unix_ns: list[int]
    """When the packets of the answer came; who reads two at once has the stamp of the later one."""


def captured(sample: dict[str, Any], told: dict[str, Any]) -> Captured:
    """Flights by sequence and acknowledgement numbers; first packet out, packets of the answer."""
    packets = [Packet(*one) for one in told["packets"]]
    packets = sorted(one for one in packets if one.local_port == sample["flow"])
    opening = packets[0].sequence
    packets = [
        one._replace(
            sequence=(one.sequence - opening) % WRAP,
            acknowledged=(one.acknowledged - opening) % WRAP,
        )
        for one in packets
    ]
    answered_ns = sample["sent_unix_ns"] + sample["stamps"][3]
    data = [one for one in packets if one.outgoing and one.length and one.unix_ns <= answered_ns]
    end = max(one.sequence + one.length for one in data)
    # A packet passes the capture just before the driver stamps it, and the next one after that.
    began = [one for one in data if one.unix_ns <= sample["sent_unix_ns"]]
    start = max(one.sequence for one in began)
    assert end - start >= sample["notes"]["bytes"]
    flight_at: dict[int, int] = {}
    latest, first_ns, first_bytes = start, 0, 0
    answers: list[int] = []
    for packet in packets:
        if packet.outgoing and packet.length and start <= packet.sequence < end:
            number = flight_at[latest] + 1 if latest in flight_at else 1
            flight_at[packet.sequence + packet.length] = number
            first_ns = first_ns or packet.unix_ns
            first_bytes += packet.length if number == 1 else 0
        elif not packet.outgoing and packet.acknowledged >= latest:
            latest = packet.acknowledged
            if packet.length and latest >= end:
                answers.append(packet.unix_ns)
    return Captured(max(flight_at.values()), first_bytes, first_ns, answers)


def modelled_ns(sample: dict[str, Any], job: Job) -> tuple[int, int]:
    """Flights and time until the answer, by the window and segments that the kernel told."""
    notes = sample["notes"]
    initial = 10
    if job.mode == "warm":
        initial = notes["cwnd_before_segments"]
    elif job.mode == "idle":
        grown, idle_ns = notes["cwnd_before_segments"], notes["idle_us"] * 1_000
        initial = window_after_idle(grown, idle_ns, notes["rto_us"] * 1_000)
    path = UploadPath(
        notes["min_rtt_us"] * 1_000,
        segment_bytes=notes["mss_bytes"],
        initial_segments=initial,
        pacing_gain=BBR_GAIN if job.congestion == "bbr" else None,
        unpaced_segments=10 - SENT_BEFORE,
    )
    modelled = model_upload(notes["wire_bytes"], path)
    return modelled.flights, modelled.acknowledged_ns


@pytest.mark.parametrize("name", JOBS)
def test_flights_and_time_are_those_of_the_capture(name: str, found: Found) -> None:
    told = found[name]
    for sample in uploads(told, JOBS[name].mode):
        seen = captured(sample, told)
        assert sample["notes"]["flights_by"] == "acknowledgements"
        assert sample["notes"]["flights"] == seen.flights
        assert sample["notes"]["first_flight_bytes"] == seen.first_flight_bytes
        assert abs(sample["sent_unix_ns"] - seen.left_unix_ns) < NEAR_NS
        whole_ns = sample["value_ns"] + sample["notes"]["residence_ns"]
        answered = sample["sent_unix_ns"] + whole_ns
        assert min(abs(answered - one) for one in seen.answers_unix_ns) < NEAR_NS


@pytest.mark.parametrize("name", JOBS)
def test_the_model_is_near(name: str, found: Found) -> None:
    """Flights are those of the model, and the time within 12 % and 4 ms, of the best of a few."""
    job = JOBS[name]
    errors: list[tuple[bool, float]] = []
    for sample in uploads(found[name], job.mode):
        flights, whole_ns = modelled_ns(sample, job)
        relative = max(0, abs(sample["value_ns"] - whole_ns) - 4 * MS) / whole_ns
        errors.append((flights != sample["notes"]["flights"], relative))
    wrong_flights, error = min(errors)
    assert not wrong_flights
    assert error < 0.12


@pytest.mark.parametrize("tokens", FLIGHTS, ids=lambda tokens: f"{tokens}k")
def test_flights_are_those_of_the_formula(tokens: int, found: Found) -> None:
    samples = uploads(found[f"cubic-{tokens}k"], "cold")
    assert FLIGHTS[tokens] in [one["notes"]["flights"] for one in samples]


def test_an_idle_connection_starts_over_and_a_warm_one_does_not(found: Found) -> None:
    idle = uploads(found["idle-16k"], "idle")
    warm = uploads(found["warm-16k"], "warm")
    assert min(flights(idle)) == 3
    assert min(flights(warm)) == 1
    for sample in idle:
        notes = sample["notes"]
        assert notes["cwnd_before_segments"] > 10, "the window had grown"
        assert notes["first_flight_bytes"] <= 11 * notes["mss_bytes"]


def flights(samples: Sequence[dict[str, Any]]) -> list[int]:
    return [int(one["notes"]["flights"]) for one in samples]
