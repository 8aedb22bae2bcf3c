"""BGP feeds that fell silent: what the route table says of each (routes.bgp_freshness)."""

from collections.abc import Iterable, Iterator, Mapping

from pathbudget.analysis.alerts.model import AlertKind, Signal
from pathbudget.analysis.alerts.rules import FeedRule
from pathbudget.analysis.report.route_words import lasting
from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.model import FeedState, FeedStatus


def feed_signals(
    rule: FeedRule,
    feeds: Iterable[FeedStatus],
    expected: Mapping[str, FeedRules],
    now_unix_ns: int,
    since_unix_ns: int,
) -> Iterator[Signal]:
    """One signal for each feed that is expected, or was heard.

    A feed may fall silent together with all else that makes time go on for the table, so that its
    age is looked at here, too.
    """
    known = {one.feed: one for one in feeds}
    for name in sorted({*known, *expected}):
        if rule.feeds and name not in rule.feeds:
            continue
        status = known.get(name)
        limit = expected[name].stale_after_ns if name in expected else None
        last = status.last_unix_ns if status is not None else None
        age_ns = max(0, now_unix_ns - (since_unix_ns if last is None else last))
        bad, why = _judged(status, age_ns, limit)
        yield Signal(
            key=f"{rule.name}/{name}",
            rule=rule.name,
            kind=AlertKind.FEED_STALE,
            severity=rule.severity,
            bad=bad,
            summary=f"feed {name}: {why}.",
            labels={"feed": name},
            numbers={
                "silent_s": round(age_ns / 1e9, 3),
                "stale_after_s": None if limit is None else limit / 1e9,
                "peers": None if status is None else float(status.peers),
                "peers_live": None if status is None else float(status.peers_live),
            },
        )


def _judged(
    status: FeedStatus | None, age_ns: int, limit_ns: int | None
) -> tuple[bool | None, str]:
    state = FeedState.NEVER if status is None else status.state
    if state is FeedState.DOWN:
        detail = status.detail if status is not None else ""
        return (
            True,
            f"it is down{f' ({detail})' if detail else ''}, last word {lasting(age_ns)} ago",
        )
    if state is FeedState.STALE or (limit_ns is not None and age_ns > limit_ns):
        heard = "never heard" if state is FeedState.NEVER else "silent"
        allowed = "" if limit_ns is None else f", {lasting(limit_ns)} is allowed"
        return True, f"{heard} for {lasting(age_ns)}{allowed}"
    if state is FeedState.NEVER:
        return None, "not heard yet"
    return False, f"live, last word {lasting(age_ns)} ago"
