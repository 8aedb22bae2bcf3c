"""Route incidents as signals: once each, with cause, who and cost, over restarts of whoever looks.

The monitor forgets everything at a restart and reads the last hours again; an incident is the same
one when it is of a series that the known one is of, and began within `together_ns` of it.
"""

from collections.abc import Iterable, Iterator

import msgspec

from pathbudget.analysis.alerts.model import DAY_NS, AlertKind, Signal
from pathbudget.analysis.alerts.rules import IncidentRule
from pathbudget.analysis.report.route_words import (
    CAUSE_MEANINGS,
    cause_words,
    incident_cost,
    line_words,
    reason_words,
    series_name,
    worst_first,
)
from pathbudget.analysis.routes.model import Cause, Incident, PathSeries

KEEP_NS = 7 * DAY_NS
MOST_KNOWN = 10_000
MOST_SERIES = 6


class KnownIncident(msgspec.Struct, omit_defaults=True):
    """What must outlast a restart of one incident."""

    key: str
    after_unix_ns: int
    by_unix_ns: int
    series: list[str]
    over_unix_ns: int | None = None
    late: bool = False
    """It was over before anybody looked: it is nobody's news."""
    noticed: bool = False
    """Rules have been asked about it while it lasted, or once as if it did."""
    closed_unix_ns: int | None = None
    """When rules were first told that it is over."""


class IncidentBook(msgspec.Struct):
    """All incidents that are known, oldest first."""

    known: list[KnownIncident] = []

    def meet(self, incident: Incident, together_ns: int, since_unix_ns: int) -> KnownIncident:
        """The entry of an incident, made where it is new.

        One that was over by `since_unix_ns`, when somebody last looked, is late where it is new.
        """
        names = sorted({_name(one) for one in incident.series})
        found = next((one for one in self.known if _same(one, incident, names, together_ns)), None)
        over = None if incident.over is None else incident.over.by_unix_ns
        if found is None:
            after, by = incident.window
            first = names[0] if names else ""
            late = over is not None and over <= since_unix_ns
            found = KnownIncident(f"{by}/{first}", after, by, names, late=late)
            self.known.append(found)
        else:
            found.series = sorted({*found.series, *names})
        if over is not None:
            found.over_unix_ns = over
        return found

    def open_since(self) -> int | None:
        """When the oldest that is not over began; None where all are."""
        return min(
            (one.after_unix_ns for one in self.known if one.over_unix_ns is None), default=None
        )

    def forget(self, now_unix_ns: int) -> None:
        """Let go of what is over for long."""
        self.known = [
            one
            for one in self.known
            if one.over_unix_ns is None or now_unix_ns - one.over_unix_ns < KEEP_NS
        ][-MOST_KNOWN:]


def _name(series: PathSeries) -> str:
    return f"{series.vantage}>{series.site or series.target}>{series.address}"


def _same(known: KnownIncident, incident: Incident, names: list[str], together_ns: int) -> bool:
    after, by = incident.window
    near = (
        after - together_ns <= known.by_unix_ns and known.after_unix_ns - together_ns <= by
        if after > 0 and known.after_unix_ns > 0
        else abs(by - known.by_unix_ns) <= together_ns
    )
    alike = not names or not known.series or not set(names).isdisjoint(known.series)
    return near and alike


def is_wanted(rule: IncidentRule, incident: Incident) -> bool:
    """Whether a rule is about it."""
    places = incident.series
    return (
        incident.cause in rule.causes
        and (not rule.regions or any(one.region in rule.regions for one in places))
        and (not rule.sites or any(one.site in rule.sites for one in places))
        and (incident.cost is None or _surely(incident, rule.least_cost_ns))
    )


def _surely(incident: Incident, least_ns: int) -> bool:
    cost = incident.cost
    return least_ns <= 0 or cost is None or cost.low_ns >= least_ns or cost.high_ns <= -least_ns


def incident_signals(
    rule: IncidentRule, found: Iterable[tuple[KnownIncident, Incident]]
) -> Iterator[Signal]:
    """One signal for each, two where it was over before rules were asked: bad, then good."""
    for known, incident in found:
        if known.late or not is_wanted(rule, incident):
            continue
        signal = _signal(rule, known, incident)
        if incident.over is not None and not known.noticed:
            yield msgspec.structs.replace(signal, bad=True)
        yield signal


def _signal(rule: IncidentRule, known: KnownIncident, incident: Incident) -> Signal:
    cost, lines = incident.cost, worst_first(incident.lines)
    over = incident.over
    regions = {one.region or one.vantage for one in incident.series}
    sites = {one.site or one.target for one in incident.series}
    return Signal(
        key=f"{rule.name}/{known.key}",
        rule=rule.name,
        kind=AlertKind.ROUTE_INCIDENT,
        severity=rule.severity,
        bad=over is None,
        summary=" ".join([_head(incident), *(f"{line_words(one)}." for one in lines[:1])]),
        labels={
            "cause": str(incident.cause),
            "blamed": incident.blamed,
            "region": ",".join(sorted(regions)),
            "site": ",".join(sorted(sites)),
        },
        numbers={
            "cost_ms": _ms(None if cost is None else cost.value_ns),
            "cost_low_ms": _ms(None if cost is None else cost.low_ns),
            "cost_high_ms": _ms(None if cost is None else cost.high_ns),
            "series": float(len(incident.series)),
        },
        began_unix_ns=known.by_unix_ns,
        ended_unix_ns=None if over is None else over.by_unix_ns,
    )


def _head(incident: Incident) -> str:
    names = list(dict.fromkeys(series_name(one) for one in incident.series))
    more = f" and {len(names) - MOST_SERIES} more" if len(names) > MOST_SERIES else ""
    where = ", ".join(names[:MOST_SERIES]) + more
    who = incident.blamed or "nobody named"
    cost = "" if incident.cost is None else f", {incident_cost(incident)}"
    why = f" {reason_words(incident)}." if incident.reason else ""
    cause = f"{cause_words(incident.cause)} ({CAUSE_MEANINGS[Cause(incident.cause)]})"
    return f"{where}: {cause}{cost}; {who}.{why}".replace("..", ".")


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1e6, 6)
