"""A seeded collector on the fake network, and nginx."""

import random
from collections.abc import Iterator

import pytest
from tests.http.nginx_server import Nginx, running

from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.fake_network import FakeNetwork


@pytest.fixture
def fake_collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock, random.Random(3))


@pytest.fixture(scope="session")
def nginx_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    yield from running(tmp_path_factory.mktemp("nginx"))


@pytest.fixture
def nginx(nginx_process: Nginx) -> Nginx:
    nginx_process.forget()
    return nginx_process
