"""Fuzz targets of the plain tables that siting reads. See tests/fuzzing.py."""

import math
import tempfile
from pathlib import Path

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.pair_files import read_matrix, read_steering

HEADS = (b"", b"region,site,rtt_ms\n", b"region;site;rtt_ms;n;low_ms;high_ms;weight\n")


def fuzz_one_matrix(data: bytes) -> None:
    """Any bytes are pairs with numbers that mean something, or a ConfigError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.csv")
        path.write_bytes(HEADS[len(data) % 3] + data)
        try:
            pairs = read_matrix(path)
        except ConfigError:
            return
    assert pairs
    assert all(0 < pair.rtt_ms < math.inf for pair in pairs)


def fuzz_one_steering(data: bytes) -> None:
    """Any bytes are shares that sum to 1 for every region, or a ConfigError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.csv")
        path.write_bytes((b"", b"region,site,share\n")[len(data) % 2] + data)
        try:
            steering = read_steering(path)
        except ConfigError:
            return
    assert steering
    assert all(abs(sum(shares.values()) - 1) < 1e-6 for shares in steering.values())
