"""Connects and half-open probes on a real link, in namespaces that nobody else uses."""

import functools
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pathbudget.probes.record import ClockSource, FailureKind, Flag, Sample

CHILD = Path(__file__).with_name("tcp_child.py")
Told = tuple[list[Sample], list[str]]
MS = 1_000_000
ALL = ("syn", "connect", "errors", "marks", "leaving", "not_there", "flows", "reserved")

pytestmark = pytest.mark.needs("lab")


def run_child(kind: str, *names: str) -> str:
    done = subprocess.run(
        [sys.executable, str(CHILD), kind, *names], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def everything() -> dict[str, Told]:
    """All scenarios in one child, with the right to raw sockets."""
    return msgspec.json.decode(run_child("raw", *ALL), type=dict[str, Told])


def test_half_open_probes_have_both_stamps_of_the_kernel() -> None:
    samples, counted = everything()["syn"]
    assert counted == []
    assert len(samples) == 12
    for sample in samples:
        assert sample.value_ns is not None
        assert 0 < sample.value_ns < 50 * MS
        assert sample.clock_source is ClockSource.KERNEL
        assert sample.ttl == 64
        assert sample.flags == ((Flag.REFUSED,) if sample.seq % 4 >= 2 else ())
        assert sample.flow is not None


def test_connects_have_tcp_info_or_the_stamp_of_the_reset() -> None:
    samples, _ = everything()["connect"]
    assert len(samples) == 12
    for sample in samples:
        assert sample.value_ns is not None
        refused = sample.seq % 4 >= 2
        assert sample.flags == ((Flag.REFUSED,) if refused else ())
        source = ClockSource.KERNEL_RECEIVE if refused else ClockSource.TCP_INFO
        assert sample.clock_source is source
        assert sample.stamps is not None
        assert (sample.stamps.kernel_received_ns is not None) is refused
    assert len({sample.flow for sample in samples}) == 12


def test_routers_have_their_say_about_syns() -> None:
    samples, _ = everything()["errors"]
    told = [
        (s.failure.kind, s.failure.icmp_type, s.failure.icmp_code, s.responder)
        for s in samples
        if s.failure is not None
    ]
    assert told == [
        (FailureKind.UNREACHABLE, 3, 1, "10.1.0.2"),
        (FailureKind.UNREACHABLE, 1, 0, "fd01::2"),
        (FailureKind.UNREACHABLE, 3, 13, "10.1.0.2"),
        (FailureKind.UNREACHABLE, 1, 1, "fd01::2"),
        (FailureKind.NO_ROUTE, None, None, None),
        (FailureKind.TIMEOUT, None, None, None),
    ]


def test_class_and_hop_limit_are_on_the_packets() -> None:
    samples, said = everything()["marks"]
    assert [sample.flags for sample in samples] == [(Flag.REFUSED,)] * 4
    assert said == ["connect {(184, 7)}", "syn {(184, 7)}"]


def test_interface_and_source_may_be_chosen() -> None:
    samples, _ = everything()["leaving"]
    assert [sample.flags for sample in samples] == [(Flag.REFUSED,)] * 4


def test_what_this_host_does_not_have_is_named() -> None:
    samples, said = everything()["not_there"]
    assert samples == []
    assert len(said) == 2
    assert "no interface nowhere" in said[0]
    assert "no address 10.7.7.7" in said[1]


def test_a_sweep_uses_its_ports_in_turn() -> None:
    samples, counted = everything()["flows"]
    assert counted == []
    assert len(samples) == 24
    assert all(sample.value_ns is not None for sample in samples)
    for connects in (samples[0::2], samples[1::2]):
        flows = [sample.flow for sample in connects]
        assert flows == flows[:3] * 4
        assert len(set(flows)) == 3


def test_the_kernel_takes_no_reserved_port() -> None:
    assert everything()["reserved"] == ([], [])


def test_without_the_right_a_syn_is_refused_and_a_connect_is_not() -> None:
    said = msgspec.json.decode(run_child("none", "syn"), type=dict[str, str])
    assert "sudo setcap cap_net_raw+ep" in said["refused"]
    told = msgspec.json.decode(run_child("none", "connect"), type=dict[str, Told])
    samples, _ = told["connect"]
    refused = [sample for sample in samples if Flag.REFUSED in sample.flags]
    assert len(refused) == 6
    assert {sample.clock_source for sample in refused} == {ClockSource.USER}
