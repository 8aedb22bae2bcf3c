"""One table [[rule]] of a file of rules."""

from collections.abc import Callable
from typing import Any

from pathbudget.agents.campaign.entry_values import duration_ns, texts, words
from pathbudget.analysis.alerts.model import AlertKind, Severity, Timing
from pathbudget.analysis.alerts.rules import (
    USUAL_WINDOWS,
    BudgetRule,
    BurnWindow,
    ClockRule,
    EveryRule,
    FeedRule,
    IncidentRule,
    ResumptionRule,
    SilentRule,
)
from pathbudget.analysis.routes.model import Cause
from pathbudget.sites.entry import Entry, Interval, show

KINDS = tuple(kind for kind in AlertKind if kind is not AlertKind.BLIND)
KEYS = ("name", "kind", "severity", "to", "for", "fade", "repeat", "repeat_most", "together")
WINDOW_KEYS = ("long", "short", "burn_rate", "severity")
SEVERITIES = tuple(Severity)
CONFIDENCE = Interval(0.5, 0.9999, "a confidence, 0.5 to 0.9999")
SECOND_NS, MINUTE_NS = 1_000_000_000, 60_000_000_000
LONGEST_WINDOW_NS = 7 * 86_400 * SECOND_NS

Values = dict[str, Any]


def read_rule(entry: Entry) -> EveryRule | None:
    """One table; None where it has a fault, which is noted."""
    word = entry.word("kind", KINDS, "")
    if not word:
        entry.fault("kind", "is missing", "one of " + ", ".join(KINDS))
    if word not in KINDS:
        return None
    kind = AlertKind(word)
    keys, read = READ[kind]
    entry.only((*KEYS, *keys))
    common = _common(entry, kind)
    rule = read(entry, common)
    return rule if entry.sound else None


def _common(entry: Entry, kind: AlertKind) -> Values:
    usual = Timing()
    instant = kind is AlertKind.ROUTE_INCIDENT  # its monitor has waited already
    timing = Timing(
        for_ns=_span(entry, "for", 0, least=0),
        fade_ns=_span(entry, "fade", 0 if instant else usual.fade_ns, least=0),
        repeat_ns=_span(entry, "repeat", usual.repeat_ns, least=MINUTE_NS),
        repeat_most_ns=_span(entry, "repeat_most", usual.repeat_most_ns, least=MINUTE_NS),
    )
    if timing.repeat_most_ns < timing.repeat_ns:
        entry.fault("repeat_most", "is shorter than repeat", "as long, or longer")
    severity = entry.word("severity", SEVERITIES, Severity.TICKET)
    return {
        "name": entry.text("name", None),
        "kind": kind,
        "severity": Severity(severity) if severity in SEVERITIES else Severity.TICKET,
        "timing": timing,
        "together_ns": _span(entry, "together", 2 * MINUTE_NS, least=0),
        "to": texts(entry, "to"),
    }


def _span(entry: Entry, key: str, default: int, *, least: int = 1) -> int:
    if key not in entry.values:
        return default
    value = duration_ns(entry, key, None, shortest_ns=least)
    return default if value is None else value


def _budget(entry: Entry, common: Values) -> BudgetRule:
    if "severity" in entry.values:
        entry.fault("severity", "each window has its own", "severity in [[rule.window]]")
    return BudgetRule(
        **common,
        tiers=texts(entry, "tiers"),
        regions=texts(entry, "regions"),
        sites=texts(entry, "sites"),
        windows=_windows(entry),
        confidence=entry.number("confidence", CONFIDENCE) or 0.95,
    )


def _windows(entry: Entry) -> tuple[BurnWindow, ...]:
    values = entry.values.get("window")
    if values is None:
        return USUAL_WINDOWS
    if not isinstance(values, list) or not values:
        entry.fault("window", f"{show(values)} is no list of tables", "[[rule.window]] tables")
        return ()
    found: list[BurnWindow] = []
    for number, value in enumerate(values):
        place = f"window[{number}]"
        if not isinstance(value, dict):
            entry.fault(place, f"{show(value)} is no table", "a table [[rule.window]]")
            continue
        inner = Entry(entry.file, value, _under(entry, place), entry.faults)
        inner.only(WINDOW_KEYS)
        window = _window(inner)
        if inner.sound and window is not None:
            found.append(window)
    return tuple(found)


def _under(entry: Entry, place: str) -> Callable[[str], str]:
    return lambda key: entry.where(f"{place}.{key}" if key else place)


def _window(entry: Entry) -> BurnWindow | None:
    long = duration_ns(entry, "long", None, shortest_ns=MINUTE_NS)
    short = duration_ns(entry, "short", None, shortest_ns=MINUTE_NS)
    rate = entry.number(
        "burn_rate", Interval(0, 1e6, "a number above 0", open_low=True), required=True
    )
    severity = entry.word("severity", SEVERITIES, Severity.PAGE)
    if long is not None and long > LONGEST_WINDOW_NS:
        entry.fault("long", "is too long", "at most 7d")
    if long is None or short is None or rate is None or severity not in SEVERITIES:
        return None
    if short >= long:
        entry.fault("short", "is not shorter than long", "a twelfth of it, for example")
    return BurnWindow(long_ns=long, short_ns=short, burn_rate=rate, severity=Severity(severity))


def _incident(entry: Entry, common: Values) -> IncidentRule:
    usual = IncidentRule(**common)
    causes = words(entry, "causes", [str(one) for one in Cause])
    return IncidentRule(
        **common,
        causes=tuple(Cause(one) for one in causes) or usual.causes,
        least_cost_ns=_span(entry, "least_cost", 0),
        regions=texts(entry, "regions"),
        sites=texts(entry, "sites"),
    )


def _silent(entry: Entry, common: Values) -> SilentRule:
    usual = SilentRule(**common)
    after = _span(entry, "after", usual.after_ns, least=10 * SECOND_NS)
    return SilentRule(**common, after_ns=after, agents=texts(entry, "agents"))


def _feed(entry: Entry, common: Values) -> FeedRule:
    return FeedRule(**common, feeds=texts(entry, "feeds"))


def _clock(entry: Entry, common: Values) -> ClockRule:
    usual = ClockRule(**common)
    return ClockRule(
        **common,
        most_offset_ns=_span(entry, "most_offset", usual.most_offset_ns),
        most_step_ns=_span(entry, "most_step", usual.most_step_ns),
        current_ns=_span(entry, "current", usual.current_ns, least=MINUTE_NS),
    )


def _resumption(entry: Entry, common: Values) -> ResumptionRule:
    usual = ResumptionRule(**common)
    between = Interval(0, 1, "a share between 0 and 1", open_high=True)
    fall = entry.number("fall", between)
    recent = _span(entry, "recent", usual.recent_ns, least=MINUTE_NS)
    before = _span(entry, "usual", usual.usual_ns, least=MINUTE_NS)
    if before > LONGEST_WINDOW_NS:
        entry.fault("usual", "is too long", "at most 7d")
    if recent > before:
        entry.fault("recent", "is longer than usual", "a part of it")
    return ResumptionRule(
        **common,
        recent_ns=recent,
        usual_ns=before,
        fall=usual.fall if fall is None else fall,
        confidence=entry.number("confidence", CONFIDENCE) or 0.95,
        accept_ns=_span(entry, "accept_after", usual.accept_ns, least=MINUTE_NS),
    )


READ: dict[AlertKind, tuple[tuple[str, ...], Callable[[Entry, Values], EveryRule]]] = {
    AlertKind.BUDGET_AT_RISK: (("tiers", "regions", "sites", "window", "confidence"), _budget),
    AlertKind.ROUTE_INCIDENT: (("causes", "least_cost", "regions", "sites"), _incident),
    AlertKind.AGENT_SILENT: (("after", "agents"), _silent),
    AlertKind.FEED_STALE: (("feeds",), _feed),
    AlertKind.CLOCK_BAD: (("most_offset", "most_step", "current"), _clock),
    AlertKind.RESUMPTION_FALLEN: (
        ("recent", "usual", "fall", "confidence", "accept_after"),
        _resumption,
    ),
}
"""Keys of each kind, and who reads them."""
