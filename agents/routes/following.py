"""A store that grows, looked at again and again: everything in it comes once.

Journals of campaigns that run are read line by line (tail.py), so that news is as fresh as the look
itself; tables have what was written by other hosts, and before. Memory: the ids of the last hour.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pathbudget.agents.routes.evaluation import (
    RouteStore,
    RouteWish,
    measurements_of,
    updates_of,
)
from pathbudget.agents.routes.tail import Tail
from pathbudget.agents.routes.time_order import in_order_of_time
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement

OVERLAP_NS = 3_600_000_000_000
"""What began so much before the newest may still be written: long measurements, other hosts."""
SLICE_NS, SHORTEST_SLICE_NS = 10_000_000_000, 100_000_000
"""What of several measurements is looked at together; times `RouteWish.time_scale`."""


class GrowingStore(RouteStore, Protocol):
    """A store, and the folder of its journals."""

    @property
    def spool(self) -> Path:
        """Journals of what runs."""
        ...


class Known:
    """Ids that have been met, of the last `OVERLAP_NS` before the newest."""

    def __init__(self) -> None:
        self._met: dict[str, int] = {}
        self._newest_ns: int | None = None

    @property
    def since_ns(self) -> int | None:
        """From when on something may be new; None before anything was met."""
        return None if self._newest_ns is None else self._newest_ns - OVERLAP_NS

    def meet(self, name: str, at_unix_ns: int) -> bool:
        """Whether it is new."""
        if name in self._met:
            return False
        self._met[name] = at_unix_ns
        self._newest_ns = max(self._newest_ns or 0, at_unix_ns)
        return True

    def forget(self) -> None:
        """Let go of what no look can meet again."""
        since = self.since_ns
        if since is not None:
            self._met = {name: at for name, at in self._met.items() if at >= since}


class Looks:
    """One `look` after another at one store."""

    def __init__(self, store: GrowingStore, wish: RouteWish) -> None:
        self._store = store
        self._wish = wish
        self._tail = Tail()
        self._seen, self._heard = Known(), Known()
        self.newest_unix_ns = 0
        """When the latest sample that was met was sent."""

    def look(self) -> Iterator[RouteUpdate | Measurement]:
        """What is new since the last look, as it happened: pieces of measurements, BGP updates."""
        slice_ns = max(SHORTEST_SLICE_NS, round(SLICE_NS * self._wish.time_scale))
        pieces = sorted(self._pieces(), key=_first_ns)
        streams: Iterable[Iterable[tuple[int, RouteUpdate | Measurement]]] = (
            ((one.until_unix_ns, one.measurement) for one in in_order_of_time(source, slice_ns))
            for source in (pieces, self._measurements())
        )
        updates: Iterable[tuple[int, RouteUpdate | Measurement]] = (
            (one.arrived_unix_ns, one) for one in self._updates()
        )
        for _, one in heapq.merge(updates, *streams, key=_time):
            if isinstance(one, Measurement):
                latest = max(sample.sent_unix_ns for sample in one.samples)
                self.newest_unix_ns = max(self.newest_unix_ns, latest)
            yield one

    def _pieces(self) -> Iterator[Measurement]:
        return (one for one in self._tail.look(self._store.spool) if self._wish.wants(one))

    def _updates(self) -> Iterator[RouteUpdate]:
        for one in updates_of(self._store, self._wish, self._heard.since_ns):
            if self._heard.meet(one.id, one.arrived_unix_ns):
                yield one
        self._heard.forget()

    def _measurements(self) -> Iterator[Measurement]:
        for one in measurements_of(self._store, self._since()):
            if self._seen.meet(one.id, one.started_unix_ns):
                rest = self._tail.rest(one)
                if rest is not None:
                    yield rest
        self._seen.forget()

    def _since(self) -> RouteWish:
        """The wish, but for what has been met long ago."""
        since, asked = self._seen.since_ns, self._wish.since_unix_ns
        if since is None or (asked is not None and asked > since):
            return self._wish
        return replace(self._wish, since_unix_ns=since)


def _time(news: tuple[int, RouteUpdate | Measurement]) -> int:
    return news[0]


def _first_ns(one: Measurement) -> int:
    return min(sample.sent_unix_ns for sample in one.samples)
