"""`pathbudget routes --follow`: watches a store as it grows, until somebody ends it."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec
from rich.console import Console

from pathbudget.agents.routes.evaluation import RouteWish, options_of
from pathbudget.agents.routes.following import GrowingStore, Looks
from pathbudget.agents.routes.table import incident_lines
from pathbudget.analysis.report.route_json import incident_object
from pathbudget.analysis.routes.model import Incident
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins


class Monitor(Protocol):
    """What is needed of `analysis.routes.monitor.RouteMonitor`: each returns what is new."""

    def see(self, measurement: Measurement) -> Iterable[Incident]:
        """Take a measurement, or a piece of one."""
        ...

    def hear(self, update: RouteUpdate) -> Iterable[Incident]:
        """Take a BGP update."""
        ...

    def advance(self, now_unix_ns: int) -> Iterable[Incident]:
        """It is so late now."""
        ...


LIVES_NS = 60_000_000_000


def follow(
    store: GrowingStore,
    wish: RouteWish,
    catalogue: Catalogue,
    origins: Origins | None,
    every_ns: int,
    *,
    as_json: bool,
) -> None:
    """Tell each incident once as it begins, and once as it is over. Ends at Ctrl-C."""
    looks, monitor = Looks(store, wish), new_monitor(wish, catalogue, origins)
    pause = threading.Event()
    try:
        while True:
            for incident in news(looks, monitor, time.time_ns()):
                say(incident, as_json=as_json)
            pause.wait(every_ns / 1e9)
    except KeyboardInterrupt:
        return


def news(looks: Looks, monitor: Monitor, now_unix_ns: int) -> Iterator[Incident]:
    """One look, and what the monitor says of it.

    Silence is news too, as long as anything is measured: time goes on for the monitor while the
    newest measurement is younger than `LIVES_NS`.
    """
    for one in looks.look():
        if isinstance(one, RouteUpdate):
            yield from monitor.hear(one)
        else:
            yield from monitor.see(one)
    if looks.newest_unix_ns > now_unix_ns - LIVES_NS:
        yield from monitor.advance(now_unix_ns)


def new_monitor(wish: RouteWish, catalogue: Catalogue, origins: Origins | None) -> Monitor:
    """That of `analysis`."""
    from pathbudget.analysis.routes.level_shifts import WATCH
    from pathbudget.analysis.routes.monitor import RouteMonitor

    return RouteMonitor(
        catalogue=catalogue, tiers=wish.tiers, origins=origins, options=options_of(wish, WATCH)
    )


def say(incident: Incident, *, as_json: bool) -> None:
    """One incident, at once: a block of lines, or one line of JSON."""
    if as_json:
        line = msgspec.json.encode({"type": "incident", **incident_object(incident)})
        sys.stdout.write(line.decode() + "\n")
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        for text in incident_lines(incident, console.width):
            console.print(text, soft_wrap=True)
        console.print()
    sys.stdout.flush()
