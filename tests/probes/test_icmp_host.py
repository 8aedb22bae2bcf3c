"""The echo and connect probes in namespaces of this kernel: raw, unprivileged, and neither."""

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pathbudget.probes.record import ClockSource, FailureKind, Flag, Sample, Stage

CHILD = Path(__file__).with_name("namespace_child.py")
MS = 1_000_000

pytestmark = pytest.mark.needs("lab")
both_kinds = pytest.mark.parametrize("kind", ["raw", "datagram"])


def run_child(kind: str, *names: str) -> str:
    done = subprocess.run(
        [sys.executable, str(CHILD), kind, *names], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@functools.cache
def all_samples(kind: str) -> dict[str, list[Sample]]:
    """One child runs everything: namespaces and imports take longer than the probes."""
    names = ["connects"]
    if kind != "none":
        names = ["echo", "busy", "deadline", "errors", "refused_sends", "without_ipv6"]
    return msgspec.json.decode(run_child(kind, *names), type=dict[str, list[Sample]])


def samples_of(scenario: str, kind: str) -> list[Sample]:
    return sorted(all_samples(kind)[scenario], key=lambda sample: sample.seq)


@both_kinds
def test_echo_is_stamped_by_the_kernel_both_ways(kind: str) -> None:
    samples = samples_of("echo", kind)
    assert len(samples) == 40
    assert [sample.failure for sample in samples] == [None] * 40
    assert {sample.ttl for sample in samples} == {64}
    # This host may be busy; it may not lose, double or mis-time anything because of that.
    assert {flag for sample in samples for flag in sample.flags} <= {Flag.HOST_BUSY}
    by_kernel = [sample for sample in samples if sample.clock_source is ClockSource.KERNEL]
    assert len(by_kernel) >= 38


@both_kinds
def test_a_blocked_loop_does_not_move_the_round_trip(kind: str) -> None:
    """Every answer waits 50 ms to be read; a user-space stamp would say 50 ms."""
    samples = samples_of("busy", kind)
    assert len(samples) == 12
    values = sorted(sample.value_ns for sample in samples if sample.value_ns is not None)
    assert len(values) == 12
    # A noisy host may preempt one of them; half are to be right.
    assert values[len(values) // 2] < 1 * MS


@both_kinds
def test_answers_read_after_the_deadline_but_stamped_before_it_count(kind: str) -> None:
    samples = samples_of("deadline", kind)
    assert [sample.failure for sample in samples] == [None] * 3


@both_kinds
def test_icmp_errors_of_a_real_router(kind: str) -> None:
    samples = samples_of("errors", kind)
    told = [
        (s.failure.kind, s.failure.stage, s.failure.icmp_type, s.failure.icmp_code, s.responder)
        for s in samples
        if s.failure is not None
    ]
    assert told == [
        (FailureKind.UNREACHABLE, Stage.WAIT, 3, 1, "10.1.0.2"),
        (FailureKind.UNREACHABLE, Stage.WAIT, 1, 0, "fd01::2"),
        (FailureKind.UNREACHABLE, Stage.WAIT, 3, 13, "10.1.0.2"),
        (FailureKind.UNREACHABLE, Stage.WAIT, 1, 1, "fd01::2"),
        (FailureKind.NO_ROUTE, Stage.SEND, None, None, None),
        (FailureKind.NO_ROUTE, Stage.SEND, None, None, None),
        (FailureKind.TIMEOUT, Stage.WAIT, None, None, None),
    ]
    assert samples[7].value_ns is not None


def test_connect_failures_of_a_real_router() -> None:
    samples = samples_of("connects", "none")
    told = [
        (s.failure.kind, s.failure.stage, s.failure.icmp_type, s.failure.icmp_code, s.responder)
        for s in samples
        if s.failure is not None
    ]
    connect = Stage.CONNECT
    assert told == [
        (FailureKind.UNREACHABLE, connect, 3, 1, "10.1.0.2"),
        (FailureKind.UNREACHABLE, connect, 1, 0, "fd01::2"),
        (FailureKind.UNREACHABLE, connect, 3, 13, "10.1.0.2"),
        (FailureKind.UNREACHABLE, connect, 1, 1, "fd01::2"),
        (FailureKind.NO_ROUTE, connect, None, None, None),
        (FailureKind.NO_ROUTE, connect, None, None, None),
        (FailureKind.TIMEOUT, connect, None, None, None),
    ]
    refused = [sample for sample in samples if sample.failure is None]
    assert [sample.flags for sample in refused] == [(Flag.REFUSED,)] * 2
    assert all(sample.clock_source is ClockSource.USER for sample in refused)


@both_kinds
def test_refused_sends_do_not_shift_the_stamps_of_others(kind: str) -> None:
    samples = samples_of("refused_sends", kind)
    sent = [sample for sample in samples if sample.seq < 100]
    refused = [sample for sample in samples if sample.seq >= 100]
    assert len(sent) == 10
    assert len(refused) == 20
    assert {sample.failure.kind for sample in refused if sample.failure} == {FailureKind.NO_ROUTE}
    assert sum(sample.clock_source is ClockSource.KERNEL for sample in sent) >= 9
    values = sorted(sample.value_ns for sample in sent if sample.value_ns is not None)
    # A stamp of the wrong request would be off by the 10 ms between two of them.
    assert values[-1] < 10 * MS


@both_kinds
def test_ipv6_switched_off_leaves_ipv4_as_it_is(kind: str) -> None:
    samples = samples_of("without_ipv6", kind)
    echoes = [sample for sample in samples if sample.metric == "rtt"]
    measured = [sample for sample in echoes if sample.value_ns is not None]
    failed = [sample.failure for sample in echoes if sample.failure is not None]
    assert (len(measured), len(failed)) == (20, 20)
    assert {(failure.kind, failure.stage) for failure in failed} == {
        (FailureKind.NO_ROUTE, Stage.SEND)
    }


def test_without_any_privilege_the_remedy_is_told() -> None:
    said: dict[str, Any] = json.loads(run_child("none", "echo"))
    assert "ICMP socket (ipv4): not permitted" in said["refused"]
    assert "setcap cap_net_raw+ep" in said["refused"]
    assert "net.ipv4.ping_group_range" in said["refused"]
