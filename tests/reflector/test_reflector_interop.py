"""Scapy's STAMP layer as the other end, both ways, over real sockets; and ours with ours."""

import asyncio
import random
import socket
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from pathbudget.agents.reflector.options import Options
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Metric, Sample, Target
from pathbudget.probes.stamp.probe import STAMP
from pathbudget.probes.stamp.timestamps import NTP_UNIX_SECONDS

SECOND = 1_000_000_000


def ntp_now() -> float:
    """Seconds since 1900, as scapy's fields hold them."""
    return time.time() + NTP_UNIX_SECONDS


@pytest.fixture(scope="module")
def layers() -> Any:
    """Scapy's STAMP module, with only what it needs of scapy."""
    from scapy.contrib import stamp

    return stamp


async def probe(address: str, port: int, count: int, **options: Any) -> list[Sample]:
    """What our own probe makes of a reflector."""
    found: list[Sample] = []
    network, clock = SystemNetwork(), SystemClock()
    environment = ProbeEnvironment(
        network,
        clock,
        random.Random(1),
        lambda _, sample: found.append(sample),
        lambda _series, _word: None,
    )
    chosen = {name: spec.default for name, spec in STAMP.options.items()} | options
    opened = STAMP.open(environment, chosen)
    family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
    target = Target(name="there", host=address, site="s", port=port)
    for number in range(count):
        due = clock.monotonic_ns()
        opened.fire(Shot(0, number, target, address, family, SECOND, due_ns=due))
        await asyncio.sleep(0.01)
    await opened.drain()
    opened.close()
    network.close()
    return found


def values(samples: list[Sample], metric: Metric) -> list[int]:
    return [one.value_ns for one in samples if one.metric is metric and one.value_ns is not None]


async def test_scapy_as_sender(
    reflecting: Any, peer: Any, own_address: str, free_port: int, layers: Any
) -> None:
    async with reflecting(Options((own_address,), free_port)):
        client = peer(own_address, free_port)
        for number in range(3):
            asked = layers.STAMPSessionSenderTestUnauthenticated(
                seq=1000 + number,
                ts=ntp_now(),
                ssid=99,
                tlv_objects=[layers.STAMPTestTLV(type=1, len=20, value=bytes(20))],
            )
            payload = await asyncio.to_thread(client.ask, bytes(asked))
            reply = layers.STAMPSessionReflectorTestUnauthenticated(payload)
            assert bytes(reply) == payload  # nothing that its layer does not know
            assert (reply.seq, reply.seq_sender, reply.ssid) == (number, 1000 + number, 99)
            assert reply.ttl_sender == 64
            assert abs(float(reply.ts_sender) - asked.ts) < 1e-6
            assert asked.ts - 1e-3 <= reply.ts_rx <= reply.ts <= ntp_now() + 1e-3
            (padding,) = reply.tlv_objects
            assert (padding.type, padding.len) == (1, 20)
            assert not padding.flags.U


@pytest.fixture
def scapy_reflector(own_address: str, layers: Any) -> Generator[tuple[str, int]]:
    """A reflector made of scapy's layer: slow, and by somebody else."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((own_address, 0))

    def serve() -> None:
        number = 0
        while True:
            payload, sender = sock.recvfrom(2048)
            came = ntp_now()
            if payload == b"stop":
                return
            asked = layers.STAMPSessionSenderTestUnauthenticated(payload)
            reply = layers.STAMPSessionReflectorTestUnauthenticated(
                seq=number,
                ts=ntp_now(),
                err_estimate=asked.err_estimate,
                ssid=asked.ssid,
                ts_rx=came,
                seq_sender=asked.seq,
                ts_sender=asked.ts,
                err_estimate_sender=asked.err_estimate,
                ttl_sender=64,
            )
            base = bytearray(bytes(reply)[:44])
            base[28:36] = payload[4:12]  # a float of scapy's holds fewer bits than T1 has
            sock.sendto(bytes(base) + payload[44:], sender)
            number += 1

    thread = threading.Thread(target=serve)
    thread.start()
    yield own_address, sock.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"stop", sock.getsockname())
    thread.join()
    sock.close()


async def test_scapy_as_reflector(scapy_reflector: tuple[str, int]) -> None:
    samples = await probe(*scapy_reflector, count=10, follow_up=False)
    assert len(values(samples, Metric.RTT)) == 10
    assert len(values(samples, Metric.RESIDENCE)) == 10
    assert not [one for one in samples if one.failure]
    forward = values(samples, Metric.TRANSIT_FORWARD)
    assert len(forward) == 10
    assert all(abs(one) < SECOND for one in forward)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_our_probe_and_our_reflector(reflecting: Any, free_port: int, address: str) -> None:
    async with reflecting(Options((address,), free_port)) as reflector:
        samples = await probe(address, free_port, count=20)
        assert reflector.status().reflected == 20
    rtt = values(samples, Metric.RTT)
    assert len(rtt) == 20
    assert all(0 < one < SECOND for one in rtt)
    forward, reverse = (
        values(samples, metric) for metric in (Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE)
    )
    # One clock at both ends: the directions of a packet add up to its round trip.
    assert len(forward) == len(reverse) == 20
    assert min(forward) > 0
    assert min(reverse) > 0
