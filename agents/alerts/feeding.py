"""A store, read piece by piece in order of time, for whoever looks at evidence."""

from collections.abc import Iterator

from pathbudget.agents.alerts.rules_file import AlertPlan
from pathbudget.agents.routes.evaluation import RouteWish, options_of
from pathbudget.agents.routes.following import Looks
from pathbudget.analysis.alerts.evidence import AlertEvidence
from pathbudget.analysis.alerts.incidents import IncidentBook
from pathbudget.analysis.alerts.model import HOUR_NS
from pathbudget.analysis.alerts.rules import (
    BudgetRule,
    FeedRule,
    IncidentRule,
    ResumptionRule,
    SilentRule,
)
from pathbudget.analysis.routes.level_shifts import WATCH
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.prefixes import load_prefix_table

ROUTES_WARM_UP_NS = 2 * HOUR_NS
"""What the monitor of routes needs to know what is usual."""


def look_back_ns(plan: AlertPlan) -> int:
    """How far back rules look."""
    spans = [0]
    for rule in plan.rules:
        match rule:
            case BudgetRule():
                spans += [window.long_ns for window in rule.windows]
            case ResumptionRule():
                spans.append(rule.recent_ns + rule.usual_ns)
            case IncidentRule() | FeedRule():
                spans.append(ROUTES_WARM_UP_NS)
            case SilentRule():
                spans.append(2 * rule.after_ns)
            case _:
                spans.append(HOUR_NS)
    return max(spans)


def evidence_of(
    plan: AlertPlan,
    wish: RouteWish,
    book: IncidentBook,
    last_look_unix_ns: int,
    first_look_unix_ns: int,
) -> AlertEvidence:
    """Evidence that has seen nothing yet. Raises ConfigError for files that cannot be read."""
    origins = load_prefix_table(plan.prefixes) if plan.prefixes else None
    return AlertEvidence(
        plan.rules,
        plan.catalogue,
        options_of(wish, WATCH),
        origins,
        book,
        last_look_unix_ns,
        first_look_unix_ns,
    )


def wish_of(
    plan: AlertPlan, since_unix_ns: int | None, until_unix_ns: int | None = None
) -> RouteWish:
    """What is read of a store."""
    watches_bgp = any(isinstance(one, IncidentRule | FeedRule) for one in plan.rules)
    return RouteWish(
        since_unix_ns=since_unix_ns,
        until_unix_ns=until_unix_ns,
        updates=watches_bgp,
        feeds=plan.feeds,
    )


def pieces(looks: Looks) -> Iterator[tuple[int, Measurement | RouteUpdate]]:
    """What is new, each with the time by which it had happened, in that order."""
    latest = 0
    for one in looks.look():
        if isinstance(one, RouteUpdate):
            at = one.arrived_unix_ns
        else:
            at = max((sample.sent_unix_ns for sample in one.samples), default=0)
        latest = max(latest, at)
        yield latest, one


def take(evidence: AlertEvidence, one: Measurement | RouteUpdate, now_unix_ns: int) -> None:
    """Feed one piece."""
    if isinstance(one, RouteUpdate):
        evidence.hear(one)
    else:
        evidence.see(one, now_unix_ns)
