"""The numbers of one series in order of time, and several of them as one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Track:
    """Parallel arrays in order of time: when sent, ns or +inf for a loss, which vantage."""

    sent_unix_ns: npt.NDArray[np.int64]
    values_ns: Values
    vantages: npt.NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of samples, losses included."""
        return len(self.values_ns)

    @property
    def losses(self) -> int:
        """How many are lost."""
        return int(np.count_nonzero(np.isinf(self.values_ns)))

    def by_vantage(self) -> list[tuple[int, Values]]:
        """Values of each vantage, in order of time."""
        order = np.argsort(self.vantages, kind="stable")
        names, starts = np.unique(self.vantages[order], return_index=True)
        parts = np.split(self.values_ns[order], starts[1:])
        return [(int(name), part) for name, part in zip(names, parts, strict=True)]


def merged(tracks: list[Track]) -> Track:
    """Several tracks as one, in order of time. At least one track."""
    if len(tracks) == 1:
        return tracks[0]
    sent = np.concatenate([track.sent_unix_ns for track in tracks])
    values = np.concatenate([track.values_ns for track in tracks])
    vantages = np.concatenate([track.vantages for track in tracks])
    order = order_in_time(sent, lambda places: (vantages[places],))
    return Track(sent[order], values[order], vantages[order])


def order_in_time(
    sent_unix_ns: Times, then: Callable[[Times], tuple[npt.NDArray[Any], ...]]
) -> Times:
    """Places in order of time; of equal times by the keys that `then` gives of places, the most
    important first, and at last as they stand. Runs that are in order already are merged quickly.
    """
    order: Times = np.argsort(sent_unix_ns, kind="stable")
    ordered = sent_unix_ns[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        tied = np.union1d(again, again + 1)
        places = order[tied]
        order[tied] = places[np.lexsort((*reversed(then(places)), ordered[tied]))]
    return order
