"""Networks and collectors, fake and real."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.http.nginx_server import Nginx, running

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.network import SystemNetwork


@pytest.fixture
def fake() -> FakeNetwork:
    return FakeNetwork(FakeClock())


@pytest.fixture
def fake_collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock, random.Random(3))


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    """The real network of this host."""
    network = SystemNetwork()
    await asyncio.sleep(0.02)  # until the kernel stamps
    yield network
    network.close()


@pytest.fixture
def collector(network: SystemNetwork) -> Collector:
    return Collector(network, SystemClock())


@pytest.fixture(scope="session")
def nginx_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    yield from running(tmp_path_factory.mktemp("nginx"))


@pytest.fixture
def nginx(nginx_process: Nginx) -> Nginx:
    nginx_process.forget()
    return nginx_process
