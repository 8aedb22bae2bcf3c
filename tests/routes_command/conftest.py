"""What a week of routes looks like: every kind of incident, feeds, stability, paths, timelines."""

from collections.abc import Callable

import pytest
from tests.routes_command.week import make_report

from pathbudget.analysis.routes.route_report import RouteReport

ReportFactory = Callable[..., RouteReport]


@pytest.fixture
def report() -> RouteReport:
    """A week with one incident of each kind."""
    return make_report()


@pytest.fixture
def report_of() -> ReportFactory:
    """`make_report`, for other sizes."""
    return make_report
