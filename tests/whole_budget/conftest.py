"""Tiers, terms and networks whose truth is known."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import Distribution
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.analysis.track import Track
from pathbudget.analysis.whole_budget.network import NetworkSource
from pathbudget.analysis.whole_budget.terms import Scope, Term, TermName, TermSource
from pathbudget.sites.catalogue import Tier
from pathbudget.sites.catalogue_file import load_catalogue

MS = 1e6
START = 1_790_000_000_000_000_000

MakeTerm = Callable[..., Term]
MakeNetwork = Callable[..., NetworkSource]


@pytest.fixture
def tiers() -> dict[str, Tier]:
    """The three reference tiers."""
    return load_catalogue([]).tiers


@pytest.fixture
def make_term() -> MakeTerm:
    """A term of milliseconds, as if a file had given it; None is a failure."""

    def make(
        name: TermName,
        values_ms: Sequence[float | None] | Values,
        *,
        requests: Sequence[str] = (),
        source: TermSource = TermSource.FILE,
        worth: float | None = None,
        scope: Scope | None = None,
    ) -> Term:
        values = np.array([math.inf if v is None else v for v in values_ms], dtype=np.float64) * MS
        return Term(
            name=name,
            source=source,
            values_ns=values,
            n_effective=float(len(values)) if worth is None else worth,
            requests=tuple(requests),
            origin=f"{source} of a test",
            scope=scope or Scope(),
        )

    return make


@pytest.fixture
def make_network() -> MakeNetwork:
    """What was measured of a pair: round trips, and set-ups of new connections, in ms."""

    def make(
        trips_ms: Sequence[float] | Values,
        setups_ms: dict[Mode, Sequence[float]] | None = None,
        site: str = "near",
    ) -> NetworkSource:
        def track(values: Sequence[float] | Values) -> Track:
            numbers = np.array(values, dtype=np.float64) * MS
            times = START + np.arange(len(numbers), dtype=np.int64) * 1_000_000_000
            return Track(times, numbers, np.zeros(len(numbers), dtype=np.int64))

        path = PathSeries(
            region="here",
            site=site,
            target=f"{site}-edge",
            family="ipv4",
            round_trips=track(trips_ms),
            source="icmp",
            setups={(Carrier.TLS, mode): track(v) for mode, v in (setups_ms or {}).items()},
            noise_floor_ns=None,
        )
        return NetworkSource(path)

    return make


def distribution(values_ms: Sequence[float] | Values, worth: float | None = None) -> Distribution:
    """A distribution of milliseconds, all of its samples independent."""
    ordered = np.sort(np.array(values_ms, dtype=np.float64)) * MS
    return Distribution(ordered, float(len(ordered)) if worth is None else worth)


def constant(value_ms: float) -> Distribution:
    """An allowance."""
    return distribution([value_ms], math.inf)
