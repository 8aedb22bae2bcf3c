"""The smoke: five quantiles and the losses of each stretch of time, as many as a screen is wide."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from pathbudget.agents.ping.sketch import Sketch

KEPT = 400
"""Columns that are remembered; no terminal is wider."""
QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Column(NamedTuple):
    """One stretch of time. `quartiles_ns` are p0, p25, p50, p75, p100 of the answers; empty where
    none came. `sent` counts answers and losses.
    """

    number: int
    sent: int
    lost: int
    quartiles_ns: tuple[int, ...]
    loaded: bool = False


class _Open:
    """A column that still takes results."""

    __slots__ = ("answers", "loaded", "lost")

    def __init__(self) -> None:
        self.answers = Sketch()
        self.lost = 0
        self.loaded = False

    def closed(self, number: int) -> Column:
        quartiles = tuple(
            int(value) for share in QUARTILES if (value := self.answers.quantile(share)) is not None
        )
        return Column(number, self.answers.n + self.lost, self.lost, quartiles, self.loaded)


class Strip:
    """Columns of `width_ns` by the time of sending; a column closes once no result can come."""

    def __init__(self, start_unix_ns: int, width_ns: int, timeout_ns: int) -> None:
        self.start_unix_ns = start_unix_ns
        self.width_ns = width_ns
        self._open: dict[int, _Open] = {}
        self._closed: deque[Column] = deque(maxlen=KEPT)
        self._keep_open = timeout_ns // width_ns + 2
        self._newest = -1

    def add(self, sent_unix_ns: int, value_ns: int | None, *, loaded: bool = False) -> bool:
        """Take an answer, or a loss (None). False where its column has closed already."""
        index = max(0, (sent_unix_ns - self.start_unix_ns) // self.width_ns)
        if index <= self._newest - self._keep_open:
            return False
        if index > self._newest:
            self._newest = index
            self._close_old()
        column = self._open.setdefault(index, _Open())
        column.loaded |= loaded
        if value_ns is None:
            column.lost += 1
        else:
            column.answers.add(value_ns)
        return True

    def columns(self, wanted: int) -> Sequence[Column | None]:
        """The newest `wanted` columns, oldest first; None where nothing was sent."""
        newest = islice(reversed(self._closed), wanted)
        known = {column.number: column for column in newest}
        known.update((index, one.closed(index)) for index, one in self._open.items())
        first = max(0, self._newest - wanted + 1)
        return [known.get(index) for index in range(first, self._newest + 1)]

    def _close_old(self) -> None:
        for index in sorted(self._open):
            if index <= self._newest - self._keep_open:
                self._closed.append(self._open.pop(index).closed(index))
