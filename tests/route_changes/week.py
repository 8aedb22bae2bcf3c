"""A week of routes, compressed and simulated: measurements and updates like real ones, with truth.

Two regions, two sites, two carriers. Region `r1` sends by carrier A or B. Every event has a slot
of its own; their order, places in the slot and sizes are drawn from the seed. Nothing here knows
how events are found.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tests.route_changes.scoring import Injected

from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.evaluate import RouteOptions
from pathbudget.analysis.routes.incidents import JoinOptions
from pathbudget.analysis.routes.level_shifts import BATCH
from pathbudget.analysis.routes.model import Cause
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Vantage,
)

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
SLOT = 150.0
EVERY = 0.5
TRACE_EVERY = 5.0
FLOWS = 4
SWEPT = 8
PIECE = 120.0
"""Seconds of samples in one measurement."""

SITES = {"s1": "192.0.2.1", "s2": "198.51.100.1"}
PREFIXES = {"s1": "192.0.2.0/24", "s2": "198.51.100.0/24"}
ORIGINS = {"s1": 65201, "s2": 65202}
PEERS = (65011, 65012, 65013)
BASE_MS = {("r1", "s1"): 20.0, ("r1", "s2"): 35.0, ("r2", "s1"): 50.0, ("r2", "s2"): 12.0}
KINDS = (
    "shift", "flap", "withdraw", "member", "queue", "rate_limit", "feed", "level", "outage",
    "flutter",
)  # fmt: skip
CAUSES = {
    "shift": Cause.PATH_MOVED,
    "flap": Cause.FLAP,
    "withdraw": Cause.WITHDRAWN,
    "member": Cause.MEMBER,
    "queue": Cause.QUEUE,
    "feed": Cause.FEED,
    "level": Cause.LEVEL,
    "outage": Cause.OUTAGE,
}
"""What each event should be called; events without a word are none."""

COMPRESSED = RouteOptions(
    join=JoinOptions().scaled(0.1),
    shifts=BATCH,
    flap_ns=60 * SECOND,
    settle_ns=6 * SECOND,
    feeds={"other": FeedRules(stale_after_ns=10 * SECOND)},
)


@dataclass(frozen=True)
class Event:
    """Seconds from the start; `cost_ms` of the round trip."""

    kind: str
    at: float
    until: float
    cost_ms: float = 0.0

    def on(self, time: float) -> bool:
        return self.at <= time < self.until


class Week:
    """Everything of one seed."""

    def __init__(self, seed: int, kinds: tuple[str, ...] = KINDS) -> None:
        self.random = random.Random(seed)
        self.noise = np.random.default_rng(seed)
        order = self.random.sample(kinds, len(kinds))
        self.events = [self._event(kind, (1 + at) * SLOT) for at, kind in enumerate(order)]
        self.swept = [one for one in self.events if one.kind == "member"]
        """Flows are swept from before to after a member is sick."""
        self.length = (2 + len(order)) * SLOT

    def _event(self, kind: str, start: float) -> Event:
        at = start + self.random.uniform(5, 15)
        lasts = {"flap": 35.0, "withdraw": 40.0, "outage": 20.0, "feed": 60.0, "shift": 75.0}
        cost = {"shift": 12.0, "flap": 12.0, "level": self.random.uniform(1.5, 6), "queue": 8.0}
        return Event(kind, at, at + lasts.get(kind, 120.0), cost.get(kind, 0.0))

    def _on(self, kind: str, time: float) -> Event | None:
        return next((one for one in self.events if one.kind == kind and one.on(time)), None)

    def truth(self) -> list[Event]:
        """Events that must be reported."""
        return [one for one in self.events if one.kind in CAUSES]

    def injected(self) -> list[Injected]:
        """The same for scoring."""
        return [
            Injected(
                one.kind,
                unix(one.at),
                unix(one.until),
                frozenset({CAUSES[one.kind]}),
                (one.cost_ms * 1e6,) if one.cost_ms else (),
                slow=one.kind == "queue",
            )
            for one in self.truth()
        ]

    def by_b(self, region: str, time: float) -> bool:
        """Whether packets go by carrier B."""
        moved = self._on("shift", time) or self._on("flap", time)
        return region == "r1" and moved is not None

    def rtt_ms(self, region: str, site: str, time: float, flow: int) -> float | None:
        """Round trip of a packet; None of a lost one."""
        if self._lost(region, site, time, flow):
            return None
        rtt = BASE_MS[region, site] + (12.0 if self.by_b(region, time) else 0.0)
        level, queue = self._on("level", time), self._on("queue", time)
        if level is not None and (region, site) == ("r2", "s1"):
            rtt += level.cost_ms
        if queue is not None and region == "r2":
            share = (time - queue.at) / (queue.until - queue.at)
            rtt += queue.cost_ms * (1 - math.cos(2 * math.pi * share)) / 2
        rtt += 0.3 * self.noise.gamma(0.7)
        return rtt + (self.noise.pareto(1.5) * 2 if self.noise.random() < 0.01 else 0.0)

    def _lost(self, region: str, site: str, time: float, flow: int) -> bool:
        if self._on("withdraw", time) and site == "s2":
            return True
        if self._on("outage", time) and (region, site) == ("r2", "s2"):
            return True
        sick = self._on("member", time) and (region, site) == ("r1", "s1") and flow == 40_003
        return bool(self.noise.random() < (0.12 if sick else 0.001))

    def measurements(self) -> Iterator[Measurement]:
        """All of them in order of time, as a campaign stores them."""
        for number in range(math.ceil(self.length / PIECE)):
            first, last = number * PIECE, min(self.length, (number + 1) * PIECE)
            for region, site in BASE_MS:
                yield self._pings(region, site, first, last, EVERY, 1, "icmp")
                yield self._traces(region, site, first, last)
            if any(first - PIECE < one.until and one.at < last for one in self.swept):
                yield self._pings("r1", "s1", first, last, 0.1, SWEPT, "stamp")

    def _pings(
        self,
        region: str,
        site: str,
        first: float,
        last: float,
        every: float,
        flows: int,
        probe: str,
    ) -> Measurement:
        times = first + np.cumsum(self.noise.exponential(every, round((last - first) / every)))
        samples = tuple(
            _sample(Metric.RTT, n, time, self.rtt_ms(region, site, time, flow), flow=flow)
            for n, time in enumerate(times[times < last].tolist())
            for flow in [40_000 + n % flows]
        )
        return _measurement(region, site, probe, samples, first)

    def _traces(self, region: str, site: str, first: float, last: float) -> Measurement:
        samples: list[Sample] = []
        for number in range(round((last - first) / TRACE_EVERY)):
            samples += self._trace(region, site, number, first + number * TRACE_EVERY)
        return _measurement(region, site, "trace", tuple(samples), first)

    def _trace(self, region: str, site: str, number: int, time: float) -> Iterator[Sample]:
        flutter = self._on("flutter", time) is not None
        carrier = "2" if self.by_b(region, time) else "1"
        end: float | None = None
        for flow in range(FLOWS):
            way = (flow + (number if flutter else 0)) % 2
            hops = [f"10.{region[1]}.0.1", f"10.{carrier}1.{way}.1", f"10.{carrier}2.0.1"]
            for limit, hop in enumerate(hops, 1):
                limited = self._on("rate_limit", time) and limit == 3 and self.noise.random() < 0.7
                gone = self._gone(region, site, time) and limit == 3
                value = None if limited or gone else 5.0 * limit + self.noise.random()
                yield _sample(
                    Metric.HOP_RTT, number, time + 0.01 * limit, value, 33_434 + flow, limit, hop
                )
            end = None if self._gone(region, site, time) else self.rtt_ms(region, site, time, flow)
            yield _sample(Metric.HOP_RTT, number, time + 0.05, end, 33_434 + flow, 4)
        yield _sample(Metric.RTT, number, time + 0.05, end, 33_434)

    def _gone(self, region: str, site: str, time: float) -> bool:
        withdrawn = self._on("withdraw", time) and site == "s2"
        return bool(withdrawn or (self._on("outage", time) and (region, site) == ("r2", "s2")))

    def updates(self) -> list[RouteUpdate]:
        """What a collector hears of three peers, and a second feed that lives by its updates."""
        found = [self._up(peer) for peer in PEERS]
        found += [self._announce(peer, site, 0.5, "a") for peer in PEERS for site in SITES]
        for event in self.events:
            found += self._told(event)
        found += [
            _update(
                "other",
                65099,
                UpdateKind.ANNOUNCE,
                time,
                "203.0.113.0/24",
                f"65099 {65300 + n % 2} 65310",
            )
            for n, time in enumerate(np.arange(1.0, self.length, 2.0).tolist())
            if not self._on("feed", time)
        ]
        return sorted(found, key=lambda one: one.time_unix_ns)

    def _up(self, peer: int) -> RouteUpdate:
        return _update("own", peer, UpdateKind.PEER_UP, 0.1)

    def _announce(self, peer: int, site: str, time: float, way: str) -> RouteUpdate:
        carrier = {"a": 65021, "b": 65022}[way]
        path = f"{peer} {carrier} {carrier} {ORIGINS[site]}"
        delay = self.random.uniform(0.0, 0.4)
        return _update("own", peer, UpdateKind.ANNOUNCE, time + delay, PREFIXES[site], path)

    def _told(self, event: Event) -> Iterator[RouteUpdate]:
        if event.kind in ("shift", "flap"):
            for time, way in ((event.at, "b"), (event.until, "a")):
                for peer in PEERS:
                    for site in SITES:
                        yield self._announce(peer, site, time, way)
        if event.kind == "withdraw":
            for peer in PEERS:
                time = event.at + self.random.uniform(0, 0.4)
                yield _update("own", peer, UpdateKind.WITHDRAW, time, PREFIXES["s2"])
                yield self._announce(peer, "s2", event.until, "a")


def unix(time: float) -> int:
    """Seconds from the start as ns since 1970."""
    return START + round(time * SECOND)


def _sample(
    metric: Metric,
    seq: int,
    time: float,
    value_ms: float | None,
    flow: int | None = None,
    part: int | None = None,
    responder: str | None = None,
) -> Sample:
    lost = value_ms is None
    return Sample(
        seq=seq,
        metric=metric,
        sent_unix_ns=unix(time),
        value_ns=None if value_ms is None else round(value_ms * 1e6),
        failure=Failure(FailureKind.TIMEOUT, Stage.WAIT) if lost else None,
        flow=flow,
        part=part,
        responder=None if lost else responder,
    )


def _measurement(
    region: str, site: str, probe: str, samples: tuple[Sample, ...], first: float
) -> Measurement:
    return Measurement(
        id=f"{probe}-{region}-{site}-{first:.0f}",
        vantage=Vantage(name=f"v-{region}", region=region),
        target=Target(name=f"t-{site}", host=SITES[site], site=site),
        probe=probe,
        started_unix_ns=unix(first),
        samples=samples,
        address=SITES[site],
        family=AddressFamily.IPV4,
    )


def _update(
    feed: str, peer: int, kind: UpdateKind, time: float, prefix: str = "", path: str = ""
) -> RouteUpdate:
    at = unix(time)
    return RouteUpdate(
        id=f"{feed}-{peer}-{kind}-{prefix}-{at}",
        feed=feed,
        feed_kind=FeedKind.SESSION,
        peer_address=f"203.0.113.{peer % 250}",
        peer_asn=peer,
        kind=kind,
        time_unix_ns=at,
        arrived_unix_ns=at,
        prefix=prefix,
        as_path=path,
    )
