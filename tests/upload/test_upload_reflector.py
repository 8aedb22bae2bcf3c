"""Uploads to our own reflector on loopback, over every version and in every mode."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pathbudget.probes.record import ClockSource, ConnectionMode, Metric, Sample

Shooting = Callable[..., Awaitable[list[Sample]]]
COLD, WARM, IDLE = ConnectionMode.COLD, ConnectionMode.WARM, ConnectionMode.IDLE
SIZE = 200_000


def of(samples: list[Sample], metric: str) -> list[Sample]:
    return [sample for sample in samples if sample.metric == metric]


def uploads(samples: list[Sample]) -> list[Sample]:
    failed = [sample.failure for sample in samples if sample.failure is not None]
    assert not failed
    return of(samples, Metric.UPLOAD)


@pytest.mark.parametrize("version", ["1.1", "2"])
async def test_a_new_connection_uploads(shoot: Shooting, reflector: Any, version: str) -> None:
    told = await shoot(
        reflector.address,
        reflector.port,
        shots=2,
        bytes=SIZE,
        version=version,
        ca_file=reflector.authority,
    )
    found = uploads(told)
    assert [sample.mode for sample in found] == [COLD, COLD]
    for sample in found:
        notes = sample.notes or {}
        assert sample.clock_source is ClockSource.KERNEL
        assert sample.value_ns is not None
        assert 0 < sample.value_ns < 10**9
        assert notes["bytes"] == SIZE
        # Nothing of the body is missing among what the kernel has stamped.
        assert int(notes["wire_bytes"]) >= SIZE
        assert int(notes["packets"]) >= SIZE // int(notes["mss_bytes"])
        assert int(notes["retransmits"]) >= 0
        assert notes["sink_kernel"] is True
        assert int(notes["flights"]) >= 1
        assert notes["flights_by"] == "acknowledgements"
        assert sample.stamps is not None
        assert sample.stamps.kernel_sent_ns == 0
    setups = of(told, Metric.SETUP)
    assert [sample.mode for sample in setups] == [COLD, COLD]
    assert len(of(told, Metric.UPLOAD_ACKNOWLEDGED)) == 2
    assert len(of(told, Metric.TLS_HANDSHAKE)) == 2


@pytest.mark.parametrize(("mode", "version"), [(WARM, "1.1"), (WARM, "2"), (IDLE, "1.1")])
async def test_connections_are_kept_for_later_shots(
    shoot: Shooting, reflector: Any, mode: ConnectionMode, version: str
) -> None:
    told = await shoot(
        reflector.address,
        reflector.port,
        shots=3,
        gap_ms=210 if mode is IDLE else 0,
        mode=mode.value,
        idle=0.2,
        bytes=60_000,
        version=version,
        ca_file=reflector.authority,
    )
    found = uploads(told)
    assert [sample.mode for sample in found] == [COLD, mode, mode]
    assert len(of(told, Metric.SETUP)) == 1
    lain = [(sample.notes or {}).get("idle_us") for sample in found]
    if mode is IDLE:
        assert all(int(one) >= 200_000 for one in lain[1:] if one is not None)
        assert lain[1] is not None
    else:
        assert lain == [None] * 3
    # Each measured upload of a warm connection has one before it, which opens the window.
    expected = {WARM: 5, IDLE: 3}[mode]
    assert reflector.https.counts["uploads"] == expected


async def test_a_connection_that_has_not_been_idle_for_long_enough_is_left_alone(
    shoot: Shooting, reflector: Any
) -> None:
    told = await shoot(
        reflector.address,
        reflector.port,
        shots=3,
        gap_ms=50,
        mode="idle",
        idle=0.2,
        bytes=1_000,
        ca_file=reflector.authority,
    )
    assert [sample.mode for sample in uploads(told)] == [COLD] * 3


@pytest.mark.parametrize("mode", ["resumed", "early_data"])
async def test_tickets_are_used(shoot: Shooting, reflector: Any, mode: str) -> None:
    told = await shoot(
        reflector.address,
        reflector.port,
        shots=3,
        mode=mode,
        bytes=8_000,
        ca_file=reflector.authority,
    )
    found = uploads(told)
    assert [sample.mode for sample in found] == [COLD, mode, mode]
    assert all(int((sample.notes or {})["packets"]) >= 1 for sample in found)
    early = reflector.https.counts["early_requests"]
    assert early == (2 if mode == "early_data" else 0)


async def test_uploads_over_quic(shoot: Shooting, reflector: Any) -> None:
    told = await shoot(
        reflector.address,
        reflector.port,
        shots=2,
        bytes=40_000,
        mode="warm",
        version="3",
        ca_file=reflector.authority,
    )
    found = uploads(told)
    assert [sample.mode for sample in found] == [COLD, WARM]
    for sample in found:
        notes = sample.notes or {}
        assert sample.clock_source is ClockSource.KERNEL
        assert int(notes["packets"]) >= 40_000 // 1_500
        assert "cwnd_after_segments" not in notes


async def test_an_unchecked_certificate_is_marked(shoot: Shooting, reflector: Any) -> None:
    told = await shoot(reflector.address, reflector.port, bytes=100, verify=False)
    assert all("unverified" in sample.flags for sample in told)


async def test_shots_side_by_side_have_their_own_numbers(collector: Any, reflector: Any) -> None:
    from pathbudget.probes.fake_collector import shot_at
    from pathbudget.probes.upload.probe import UPLOAD

    probe = collector.open(UPLOAD, {"bytes": 50_000, "ca_file": reflector.authority})
    for seq in range(5):
        probe.fire(
            shot_at(
                reflector.address,
                seq=seq,
                port=reflector.port,
                server_name="localhost",
                timeout_ns=3 * 10**9,
            )
        )
    await probe.drain()
    probe.close()
    found = uploads([sample for _, sample in collector.emitted])
    assert sorted(sample.seq for sample in found) == [0, 1, 2, 3, 4]
    assert len({sample.flow for sample in found}) == 5
    for sample in found:
        assert int((sample.notes or {})["wire_bytes"]) < 60_000
