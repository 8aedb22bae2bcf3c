"""Networks and collectors, fake and real."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

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
