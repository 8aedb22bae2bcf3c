"""The lab's ledger as what must be reported."""

from tests.route_changes.scoring import Injected, Stalled

from pathbudget.agents.lab.ledger import Effect, Entry, Ledger
from pathbudget.analysis.routes.model import Cause

LINK_ERROR_NS = 1_000.0
"""Own error of the lab: so much later than told a link lets half of the packets go, on a host that
has time (`lab run` says it at its end). A round trip before and one after has it at every link."""


def injected_of(ledger: Ledger) -> list[Injected]:
    """Everything that happened, with what it may be called and what it cost the pairs it met."""
    return [_injected(one) for one in ledger.entries if one.start is not None]


def stalls_of(ledger: Ledger) -> list[Stalled]:
    """When the host had no time for the lab."""
    return [Stalled(one.began_unix_ns, one.ended_unix_ns) for one in ledger.stalls]


def _injected(entry: Entry) -> Injected:
    start, end = entry.start, entry.end
    assert start is not None
    costs = [
        (one.after.rtt_ms - one.before.rtt_ms) * 1e6
        for one in entry.effects
        if one.after.rtt_ms is not None and one.before.rtt_ms is not None
    ]
    return Injected(
        name=f"{entry.kind} {entry.subject}",
        at_unix_ns=start.began_unix_ns,
        until_unix_ns=None if end is None else end.done_unix_ns,
        causes=_causes(entry),
        cost_ns=tuple(cost for cost in costs if abs(cost) >= 100_000),
        cost_error_ns=LINK_ERROR_NS * max(map(_links, entry.effects), default=0),
        done_unix_ns=start.settled_unix_ns or start.done_unix_ns,
        slow=entry.kind == "queue",
    )


def _links(effect: Effect) -> int:
    """Links that a packet crosses there and back, before and after."""
    ways = (way for state in (effect.before, effect.after) for way in (state.nodes, state.back))
    return sum(map(len, ways))


def _causes(entry: Entry) -> frozenset[Cause]:
    """Where packets move on the way back alone, nobody who traces from here can say more than that
    the level moved.
    """
    causes = frozenset(Cause(word) for word in entry.causes)
    back_alone = all(one.before.nodes == one.after.nodes for one in entry.effects)
    return causes | {Cause.LEVEL} if back_alone and Cause.PATH_MOVED in causes else causes
