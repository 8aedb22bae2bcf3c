"""Stamps of what has just been sent, read at once: each under its own key, and no error lost."""

import asyncio
import itertools
import socket
import time

import pytest

from pathbudget.probes.channels import DatagramBatch, Outgoing
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.udp_socket import AT_ONCE, FEW, StampedUdpSocket

HERE = {AddressFamily.IPV4: "127.0.0.1", AddressFamily.IPV6: "::1"}
both_families = pytest.mark.parametrize("family", list(AddressFamily))


class Heard:
    """What one channel reports by itself."""

    def __init__(self) -> None:
        self.batches: list[DatagramBatch] = []

    def __call__(self, batch: DatagramBatch) -> None:
        self.batches.append(batch)


def opened(network: SystemNetwork, family: AddressFamily, heard: Heard) -> StampedUdpSocket:
    channel = network.open_datagrams(family, heard)
    assert isinstance(channel, StampedUdpSocket)
    return channel


@both_families
@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 40])
async def test_each_send_has_its_stamp_at_once(family: AddressFamily, count: int) -> None:
    network = SystemNetwork()
    near, far = opened(network, family, Heard()), opened(network, family, Heard())
    for _ in range(3):
        before = time.time_ns()
        keys = [near.send(Outgoing(b"x", HERE[family], far.port)) for _ in range(count)]
        stamps = near.sent_stamps()
        assert [key for key, _ in stamps] == keys
        times = [stamp for _, stamp in stamps]
        assert before <= times[0]
        assert all(one <= other for one, other in itertools.pairwise(times))
        assert times[-1] <= time.time_ns()
    assert near.sent_stamps() == []
    near.close()
    assert near.sent_stamps() == []
    far.close()
    network.close()


@both_families
async def test_errors_read_on_the_way_come_with_the_next_batch(family: AddressFamily) -> None:
    with socket.socket(
        socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6, socket.SOCK_DGRAM
    ) as one:
        one.bind((HERE[family], 0))
        closed = int(one.getsockname()[1])
    network, heard = SystemNetwork(), Heard()
    near = opened(network, family, heard)
    keys: list[object] = []
    stamps: list[tuple[int, int]] = []
    for _ in range(3):
        keys.append(near.send(Outgoing(b"nobody", HERE[family], closed)))
        stamps += near.sent_stamps()
    await asyncio.sleep(0.05)
    near.poll()
    told = stamps + [one for batch in heard.batches for one in batch.sent]
    assert [key for key, _ in told] == keys
    errors = [error for batch in heard.batches for error in batch.errors]
    assert [error.quoted for error in errors] == [b"nobody"] * 3
    near.close()
    network.close()


@both_families
async def test_what_has_come_is_reported_some_at_a_time_and_all_of_it(
    family: AddressFamily,
) -> None:
    network, heard = SystemNetwork(), Heard()
    near, far = opened(network, family, Heard()), opened(network, family, heard)
    near.send_all([Outgoing(b"%d" % n, HERE[family], far.port) for n in range(300)])
    far.poll()
    sizes = [len(batch.arrivals) for batch in heard.batches if batch.arrivals]
    assert max(sizes) == AT_ONCE
    came = [one.payload for batch in heard.batches for one in batch.arrivals]
    assert came == [b"%d" % n for n in range(300)]
    for channel in (near, far):
        channel.close()
    network.close()
