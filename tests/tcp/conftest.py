"""A fake network and the real one, with a collector of samples on each."""

import asyncio
from collections.abc import AsyncGenerator

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
    return Collector(fake, fake.clock)


@pytest.fixture
async def collector() -> AsyncGenerator[Collector]:
    """On the real network of this host."""
    network = SystemNetwork()
    await asyncio.sleep(0.02)  # until the kernel stamps
    yield Collector(network, SystemClock())
    network.close()
