"""Everything that rules look at, fed piece by piece in order of time; and what the rules say of it.

Whoever feeds it, a store that grows or one that is replayed, gets the same signals for the same
evidence and times.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pathbudget.analysis.alerts.burn import burn_signals
from pathbudget.analysis.alerts.feeds import feed_signals
from pathbudget.analysis.alerts.hosts import Host, Hosts, clock_signals, silent_signals
from pathbudget.analysis.alerts.incidents import IncidentBook, KnownIncident, incident_signals
from pathbudget.analysis.alerts.model import AlertKind, Kept, Severity, Signal
from pathbudget.analysis.alerts.requests_over import FUTURE_NS, RequestsOver
from pathbudget.analysis.alerts.resumption import Resumptions, resumption_signals
from pathbudget.analysis.alerts.rules import (
    BLIND,
    BudgetRule,
    ClockRule,
    EveryRule,
    FeedRule,
    IncidentRule,
    ResumptionRule,
    SilentRule,
    slice_of,
)
from pathbudget.analysis.places import tiers_of
from pathbudget.analysis.routes.evaluate import RouteOptions
from pathbudget.analysis.routes.model import Incident
from pathbudget.analysis.routes.monitor import RouteMonitor
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins

LIVES_NS = 60_000_000_000
"""Time goes on for the monitor of routes while the newest sample is younger."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read besides the store. `blind`: what cannot be read, by source, and why."""

    agents: Mapping[str, Host] = field(default_factory=dict[str, Host])
    blind: Mapping[str, str] = field(default_factory=dict[str, str])
    sighted: tuple[str, ...] = ()
    """Sources that were read."""


class AlertEvidence:
    """Feed it with `see` and `hear`, ask it with `signals`."""

    def __init__(
        self,
        rules: Iterable[EveryRule],
        catalogue: Catalogue,
        options: RouteOptions,
        origins: Origins | None = None,
        book: IncidentBook | None = None,
        last_look_unix_ns: int = 0,
        listening_since_unix_ns: int | None = None,
    ) -> None:
        """What was over by the last look is no news; who was never heard is silent since listening
        began, which default to be the same.
        """
        self.rules = tuple(rules)
        self.book = book or IncidentBook()
        self._options = options
        self._last_look = last_look_unix_ns
        self._listening_since = (
            last_look_unix_ns if listening_since_unix_ns is None else listening_since_unix_ns
        )
        self._fade_ns = max((one.timing.fade_ns for one in self.rules), default=0)
        self._monitor = RouteMonitor(
            catalogue=catalogue, origins=origins, options=options, with_changes=True
        )
        self._watches_routes = any(isinstance(one, IncidentRule | FeedRule) for one in self.rules)
        self._requests = {
            one: _requests(one, catalogue) for one in self.rules if isinstance(one, BudgetRule)
        }
        self._resumptions = {
            one: Resumptions(one) for one in self.rules if isinstance(one, ResumptionRule)
        }
        self._incidents: dict[str, tuple[KnownIncident, Incident]] = {}
        self._vantages: dict[str, Host] = {}
        self._newest_unix_ns = 0

    def see(self, measurement: Measurement, now_unix_ns: int) -> None:
        """Take a measurement, or the next samples of one."""
        latest = max((one.sent_unix_ns for one in measurement.samples), default=0)
        if latest <= now_unix_ns + FUTURE_NS:
            self._newest_unix_ns = max(self._newest_unix_ns, latest)
        self._know(measurement, min(latest, now_unix_ns))  # a clock that is ahead is no later word
        for requests in self._requests.values():
            requests.see(measurement)
        for resumptions in self._resumptions.values():
            resumptions.see(measurement, now_unix_ns)
        if self._watches_routes:
            self._take(self._monitor.see(measurement))

    def hear(self, update: RouteUpdate) -> None:
        """Take a BGP update."""
        if self._watches_routes:
            self._take(self._monitor.hear(update))

    def signals(
        self, now_unix_ns: int, kept: Kept, sources: Sources | None = None
    ) -> Iterator[Signal]:
        """What every rule says now."""
        sources = sources or Sources()
        if self._watches_routes and self._newest_unix_ns > now_unix_ns - LIVES_NS:
            self._take(self._monitor.advance(now_unix_ns))
        for requests in self._requests.values():
            requests.settle(now_unix_ns)
        hosts = self._hosts(sources)
        for rule in self.rules:
            yield from self._of(rule, now_unix_ns, kept, hosts)
        yield from _blind(sources)
        self._forget(now_unix_ns)

    def _of(self, rule: EveryRule, now_unix_ns: int, kept: Kept, hosts: Hosts) -> Iterator[Signal]:
        match rule:
            case BudgetRule():
                return burn_signals(rule, self._requests[rule], now_unix_ns)
            case ResumptionRule():
                return resumption_signals(rule, self._resumptions[rule], kept, now_unix_ns)
            case IncidentRule():
                return incident_signals(rule, list(self._incidents.values()))
            case SilentRule():
                return silent_signals(rule, hosts, now_unix_ns, self._listening_since)
            case ClockRule():
                return clock_signals(rule, hosts, now_unix_ns)
            case FeedRule():
                return feed_signals(
                    rule,
                    self._monitor.feeds(),
                    self._options.feeds,
                    now_unix_ns,
                    self._listening_since,
                )

    def _take(self, news: Iterable[Incident]) -> None:
        for incident in news:
            known = self.book.meet(incident, self._options.join.together_ns, self._last_look)
            self._incidents[known.key] = known, incident

    def _know(self, measurement: Measurement, latest_unix_ns: int) -> None:
        name, clock = measurement.vantage.name, measurement.clock
        old = self._vantages.get(name)
        heard = max(latest_unix_ns, (old.heard_unix_ns or 0) if old is not None else 0)
        if clock is None or (old is not None and old.clock_unix_ns > latest_unix_ns):
            clock, at = (None, 0) if old is None else (old.clock, old.clock_unix_ns)
        else:
            at = latest_unix_ns
        self._vantages[name] = Host(name, heard, clock, at, is_agent=False)

    def _hosts(self, sources: Sources) -> Hosts:
        """Agents by what they say, and by their samples; other vantages by their samples."""
        hosts = dict(self._vantages)
        for name, agent in sources.agents.items():
            vantage = self._vantages.get(name)
            if vantage is None:
                hosts[name] = agent
                continue
            newer = agent.clock is None or vantage.clock_unix_ns > agent.clock_unix_ns
            clock = vantage if newer else agent
            heard = max(agent.heard_unix_ns or 0, vantage.heard_unix_ns or 0)
            hosts[name] = Host(
                name, heard, clock.clock, clock.clock_unix_ns, is_known=agent.is_known
            )
        return hosts

    def _forget(self, now_unix_ns: int) -> None:
        """What is over, and has faded, was told by now."""
        for known, incident in self._incidents.values():
            known.noticed = True
            if incident.over is not None and known.closed_unix_ns is None:
                known.closed_unix_ns = now_unix_ns
        self.book.forget(now_unix_ns)
        self._incidents = {
            key: (known, incident)
            for key, (known, incident) in self._incidents.items()
            if known.closed_unix_ns is None
            or now_unix_ns - known.closed_unix_ns <= 2 * self._fade_ns
        }


def _requests(rule: BudgetRule, catalogue: Catalogue) -> RequestsOver:
    tiers = tiers_of(catalogue, rule.tiers or None)
    longest = max(one.long_ns for one in rule.windows)
    return RequestsOver(tiers, longest, slice_of(min(one.short_ns for one in rule.windows)))


def _blind(sources: Sources) -> Iterator[Signal]:
    for source in sorted({*sources.blind, *sources.sighted}):
        why = sources.blind.get(source)
        yield Signal(
            key=f"{BLIND.name}/{source}",
            rule=BLIND.name,
            kind=AlertKind.BLIND,
            severity=Severity.PAGE,
            bad=why is not None,
            summary=f"{source}: {why or 'in order again'}.",
            labels={"source": source},
        )
