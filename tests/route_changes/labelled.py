"""Round trips of RIPE Atlas anchors whose level shifts people have labelled; other tools' formats.

Times as ``2016-10-13 01:15:38`` or ``13/10/2016 00:02``, numbers with a point or a comma, below
zero where nothing came back.
"""

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.route_changes.conftest import MS, Times, Values

FORMATS = ("%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M")


class Labelled(NamedTuple):
    """Samples in order of the file, and at which of them a shift was labelled."""

    times: Times
    values_ns: Values
    labels: tuple[int, ...]


def read(file: Path) -> Labelled:
    """One file. Raises ValueError for a line that it cannot read."""
    with gzip.open(file, "rt") as text:
        rows = list(csv.reader(text, delimiter=";"))[1:]
    values = np.array([float(row[1].replace(",", ".")) for row in rows]) * MS
    return Labelled(
        times=np.array([_unix_ns(row[0]) for row in rows], dtype=np.int64),
        values_ns=np.where(values > 0, values, np.inf),
        labels=tuple(n for n, row in enumerate(rows) if row[2].strip() == "1"),
    )


def _unix_ns(text: str) -> int:
    for form in FORMATS:
        try:
            moment = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return round(moment.timestamp()) * 1_000_000_000
    raise ValueError(f"no time: {text!r}")


def hits(found: list[int], labels: tuple[int, ...], tolerance: int) -> int:
    """How many of `found` are a label, each of which counts once."""
    left, count = set(labels), 0
    for one in found:
        near = [label for label in left if abs(label - one) <= tolerance]
        if near:
            left.remove(min(near, key=lambda label: abs(label - one)))
            count += 1
    return count


def naive(values_ns: Values, window: int = 20, threshold_ns: float = 5 * MS) -> list[int]:
    """What many alarms do: two medians of some samples each differ by some milliseconds."""
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values_ns, window), axis=1)
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(medians[window:] - medians[:-window]))
    found: list[int] = []
    place = 0
    while place < len(apart):
        end = place
        while end < len(apart) and apart[end] > threshold_ns:
            end += 1
        if end > place:
            found.append(place + window + int(np.argmax(apart[place:end])))
        place = end + 1
    return found
