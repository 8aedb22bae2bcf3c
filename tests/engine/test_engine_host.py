"""The echo engine in namespaces of this kernel, raw and unprivileged, many packets per call."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pathbudget.probes.record import ClockSource, FailureKind, Flag, Sample, Stage

CHILD = Path(__file__).with_name("engine_child.py")
MS = 1_000_000

pytestmark = pytest.mark.needs("lab")
both_kinds = pytest.mark.parametrize("kind", ["raw", "datagram"])


@functools.cache
def everything(kind: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, str(CHILD), kind], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said: dict[str, object] = json.loads(done.stdout)
    return said


def samples_of(scenario: str, kind: str) -> list[Sample]:
    found = msgspec.convert(everything(kind)[scenario], list[Sample])
    return sorted(found, key=lambda sample: sample.seq)


def check_stamps(sample: Sample) -> None:
    """Both kernel stamps lie between the readings around them, and make the value."""
    assert sample.clock_source is ClockSource.KERNEL
    stamps = sample.stamps
    assert stamps is not None
    assert stamps.kernel_sent_ns == 0
    assert stamps.due_ns is not None
    assert stamps.user_sent_ns is not None
    assert stamps.kernel_received_ns == sample.value_ns
    assert stamps.user_received_ns is not None
    assert stamps.due_ns <= stamps.user_sent_ns <= 20_000
    assert sample.value_ns is not None
    assert 0 < sample.value_ns <= stamps.user_received_ns + 20_000


@both_kinds
@pytest.mark.parametrize("scenario", ["many", "one_by_one"])
def test_a_thousand_at_once_all_come_back_with_all_stamps(kind: str, scenario: str) -> None:
    samples = samples_of(scenario, kind)
    assert [sample.seq for sample in samples] == list(range(1_000))
    assert [sample.failure for sample in samples] == [None] * 1_000
    assert everything(kind)[f"{scenario}_counts"] == {}
    for sample in samples:
        check_stamps(sample)
    assert {flag for sample in samples for flag in sample.flags} <= {Flag.HOST_BUSY}


@both_kinds
def test_refused_requests_in_between_take_no_stamp_from_others(kind: str) -> None:
    samples = samples_of("refused_in_between", kind)
    assert [sample.seq for sample in samples] == list(range(500))
    for sample in samples:
        if sample.seq % 100 % 3 == 0:
            assert sample.failure is not None
            told = (sample.failure.kind, sample.failure.stage)
            assert told == (FailureKind.NO_ROUTE, Stage.SEND)
        else:
            check_stamps(sample)


@both_kinds
def test_flows_leave_through_a_named_interface(kind: str) -> None:
    samples = samples_of("flows", kind)
    assert len(samples) == 40
    for sample in samples:
        check_stamps(sample)
    flows = [{sample.flow for sample in samples if sample.seq % 4 == n} for n in range(4)]
    # One identifier per flow and family.
    assert [len(found) for found in flows] == [2] * 4
    assert len(set().union(*flows)) == 8


@both_kinds
def test_requests_that_are_cut_into_fragments_come_back_whole(kind: str) -> None:
    samples = samples_of("large", kind)
    assert [sample.failure for sample in samples] == [None] * 40
    assert everything(kind)["large_counts"] == {}


@both_kinds
def test_errors_about_some_requests_leave_the_others_alone(kind: str) -> None:
    samples = samples_of("errors_in_between", kind)
    assert [sample.seq for sample in samples] == list(range(99))
    told = 0
    for sample in samples:
        beyond = sample.seq % 4 == 0 or (sample.seq >= 80 and sample.seq % 4 < 2)
        assert (sample.failure is not None) == beyond, sample
        if sample.failure is not None and sample.failure.kind is not FailureKind.TIMEOUT:
            told += 1
            assert sample.failure.kind is FailureKind.UNREACHABLE
            assert sample.responder in ("10.1.0.2", "fd01::2")
            assert sample.failure.icmp_type is not None
    # A router may send only so many errors a second.
    assert told >= 10


@both_kinds
def test_the_first_packets_say_which_clock_they_had(kind: str) -> None:
    """Whatever the kernel stamped or not: the source fits the stamps, and no stamp is made up."""
    samples = samples_of("just_after_the_start", kind)
    assert len(samples) == 40
    for sample in samples:
        assert sample.value_ns is not None
        stamps = sample.stamps
        assert stamps is not None
        sent, received = stamps.kernel_sent_ns is not None, stamps.kernel_received_ns is not None
        if Flag.CLOCK_STEP not in sample.flags:
            sources = {
                (True, True): ClockSource.KERNEL,
                (False, True): ClockSource.KERNEL_RECEIVE,
            }
            assert sample.clock_source is sources.get((sent, received), ClockSource.USER)
        assert sample.value_ns < 1_000 * MS
