"""Level shifts that people saw in real series (docs/routes-method.md has all files)."""

from pathlib import Path

import numpy as np
import pytest
from tests.route_changes import labelled

from pathbudget.analysis.routes.level_shifts import level_shifts
from pathbudget.analysis.routes.model import PathSeries

TOLERANCE = 5


def found_in(series: PathSeries, file: Path) -> tuple[int, int, int]:
    """Hits, shifts found, labels."""
    data = labelled.read(file)
    places = np.arange(len(data.values_ns), dtype=np.int64)  # some files have days of no order
    shifts = level_shifts(series, "rtt", places, data.values_ns)
    found = [one.window.by_unix_ns for one in shifts]
    return labelled.hits(found, data.labels, TOLERANCE), len(found), len(data.labels)


@pytest.mark.needs("data")
def test_both_formats_of_time_and_number_are_read(shared_data: Path) -> None:
    folder = shared_data / "changepoint"
    day_first = labelled.read(folder / "artificial_trace_labelled" / "16.csv.gz")
    year_first = labelled.read(folder / "real_trace_labelled" / "13746.csv.gz")
    assert day_first.values_ns[0] == 99_964_860.4
    assert day_first.times[1] - day_first.times[0] == 240_000_000_000
    assert np.count_nonzero(np.isinf(year_first.values_ns)) == 5
    assert (len(day_first.labels), len(year_first.labels)) == (44, 42)


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    ("file", "precision", "recall"),
    [
        ("artificial_trace_ground_fact/5.csv.gz", 0.95, 0.75),
        ("real_trace_labelled/13835.csv.gz", 0.5, 0.9),
    ],
)
def test_labelled_shifts_are_found(
    series: PathSeries, shared_data: Path, file: str, precision: float, recall: float
) -> None:
    hits, found, labels = found_in(series, shared_data / "changepoint" / file)
    assert hits / found >= precision
    assert hits / labels >= recall
