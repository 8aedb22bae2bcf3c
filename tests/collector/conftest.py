"""Fleets for the tests of collectors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector.fleet_run import FleetRun
from tests.fleet.conftest import serving


@pytest.fixture
def run(tmp_path: Path) -> Iterator[FleetRun]:
    """One of its own for each test: it is going to be damaged."""
    for served in serving(tmp_path):
        one = FleetRun(tmp_path, served)
        try:
            yield one
        finally:
            one.close()
