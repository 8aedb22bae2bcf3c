"""A real network on loopback, and a pair of UDP sockets with everything switched on."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import PLAIN
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.socket_setup import open_udp

HERE = {AddressFamily.IPV4: "127.0.0.1", AddressFamily.IPV6: "::1"}
OpenUdp = Callable[[AddressFamily], socket.socket]


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    network = SystemNetwork()
    await asyncio.sleep(0.05)  # until the kernel stamps
    yield network
    network.close()


@pytest.fixture
def stamped_udp(network: SystemNetwork) -> Iterator[OpenUdp]:
    """Opens stamped, non-blocking UDP sockets on loopback."""
    opened: list[socket.socket] = []

    def open_one(family: AddressFamily) -> socket.socket:
        sock = open_udp(family, 0, PLAIN, HERE[family])
        assert sock is not None
        sock.setblocking(False)
        stamps.switch_on(sock, stamps.DATAGRAM_STAMPS)
        opened.append(sock)
        return sock

    yield open_one
    for sock in opened:
        sock.close()
