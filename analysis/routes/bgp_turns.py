"""One convergence, one event: what peers change about a prefix until it is quiet again.

While BGP converges a peer may try several paths within a minute (path hunting), and peers hear of
it one after the other. A turn begins with the first change and is over when nothing has changed for
the settle time; then each peer's state before is held against that after.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pathbudget.analysis.routes.bgp_peers import ABSENT, PeerKey, most_common, origins_of
from pathbudget.analysis.routes.model import BgpEvent, BgpEventKind, Window
from pathbudget.sites.rpki import RpkiState, VrpTable


@dataclass(slots=True)
class _Change:
    """What one peer did during a turn. `before` None: it had a route, and which is not known."""

    before: str | None
    first_unix_ns: int
    last_unix_ns: int
    by_way_of: str | None = None
    """Where it was first; None where one of its paths stayed: several are never told at once."""

    last_words: str | None = None
    """Its state when it went away, if it did: what it said before counts."""


@dataclass(slots=True)
class Turn:
    """Changes about one prefix that belong together."""

    prefix: str
    opened_unix_ns: int
    last_unix_ns: int
    changes: dict[PeerKey, _Change] = field(default_factory=dict[PeerKey, _Change])

    def note(
        self, peer: PeerKey, before: str | None, after: str, since_unix_ns: int, time_unix_ns: int
    ) -> None:
        """`peer` changed between `since_unix_ns` and `time_unix_ns`."""
        change = self.changes.get(peer)
        if change is None:
            apart = before is None or not {*before.split(" | ")} & {*after.split(" | ")}
            change = _Change(before, since_unix_ns, time_unix_ns, after if apart else None)
            self.changes[peer] = change
        change.last_unix_ns = max(change.last_unix_ns, time_unix_ns)
        change.last_words = None
        self.last_unix_ns = max(self.last_unix_ns, time_unix_ns)

    def leave(self, peer: PeerKey, state: str) -> None:
        """`peer` goes away with this as its last word; nothing if it changed nothing."""
        if peer in self.changes:
            self.changes[peer].last_words = state

    def over(self, now_unix_ns: int, settle_ns: int, longest_ns: int) -> bool:
        """Whether it has been quiet for long enough, or went on for too long."""
        quiet = now_unix_ns - self.last_unix_ns >= settle_ns
        return quiet or now_unix_ns - self.opened_unix_ns >= longest_ns


@dataclass(frozen=True, slots=True)
class Outcome:
    """A peer that changed during a turn: its states before and after."""

    before: str | None
    after: str
    first_unix_ns: int
    last_unix_ns: int
    by_way_of: str | None


def outcomes(turn: Turn, state_of: Callable[[PeerKey], str | None]) -> list[Outcome]:
    """Of each peer that changed; `state_of` gives None for one that is not live.

    One that went away meanwhile counts by its last words.
    """
    found: list[Outcome] = []
    for peer, change in turn.changes.items():
        after = state_of(peer) if change.last_words is None else change.last_words
        if after is not None:
            found.append(
                Outcome(
                    change.before,
                    after,
                    change.first_unix_ns,
                    change.last_unix_ns,
                    change.by_way_of,
                )
            )
    return found


def event_of(
    turn: Turn,
    site: str,
    found: Iterable[Outcome],
    others: Iterable[str],
    live: int,
    vrps: VrpTable | None,
) -> BgpEvent | None:
    """The event of a turn that is over; None where nothing came of it.

    `others`: states of live peers that did not change; `live`: peers that are live and know of the
    prefix, or know that they have none.
    """
    found, others = list(found), list(others)
    changed = [one for one in found if one.before != one.after]
    if not changed:
        return _flap(turn, site, found, others, live)
    after = [one.after for one in changed]
    before = [one.before for one in changed if one.before is not None]
    unchanged = [*others, *(one.after for one in found if one.before == one.after)]
    rpki = _rpki(turn.prefix, changed, vrps)
    told_before, told_after = _most_common_move(changed)
    return BgpEvent(
        kind=_kind(turn.prefix, before, after, unchanged, rpki, vrps),
        prefix=turn.prefix,
        site=site,
        window=_window(changed),
        peers_changed=len(changed),
        peers_live=live,
        before=told_before,
        after=told_after,
        rpki=rpki,
    )


def _flap(
    turn: Turn, site: str, found: list[Outcome], others: list[str], live: int
) -> BgpEvent | None:
    """Everybody is back where they were."""
    moved = [one for one in found if one.by_way_of is not None and one.by_way_of != one.before]
    if not moved:
        return None
    away = [one.by_way_of or ABSENT for one in moved]
    still = [*others, *(one.after for one in found if one not in moved)]
    gone = all(state == ABSENT for state in away) and not any(still)
    first = min(one.first_unix_ns for one in moved)
    return BgpEvent(
        kind=BgpEventKind.WITHDRAWN if gone else BgpEventKind.PATH,
        prefix=turn.prefix,
        site=site,
        window=Window(first, turn.opened_unix_ns),
        peers_changed=len(moved),
        peers_live=live,
        before=most_common(one.after for one in moved),
        after=most_common(away),
        back=Window(turn.opened_unix_ns, max(one.last_unix_ns for one in moved)),
    )


def _most_common_move(changed: Iterable[Outcome]) -> tuple[str, str]:
    """Before and after of most peers, as a pair: two peers may have changed places."""
    counts = Counter((one.before or ABSENT, one.after) for one in changed)
    return min(counts, key=lambda move: (-counts[move], move))


def _window(changed: Iterable[Outcome]) -> Window:
    changed = list(changed)
    first = min(one.first_unix_ns for one in changed)
    return Window(first, max(one.last_unix_ns for one in changed))


def _kind(
    prefix: str,
    before: list[str],
    after: list[str],
    unchanged: list[str],
    rpki: str,
    vrps: VrpTable | None,
) -> BgpEventKind:
    old = set[int | None]().union(*map(origins_of, [*before, *unchanged])) - {None}
    new = set[int | None]().union(*map(origins_of, after)) - {None}
    if rpki == RpkiState.INVALID and vrps is not None:
        was = {vrps.state(prefix, origin) for origin in old}
        if not (new <= old and RpkiState.INVALID in was):
            return BgpEventKind.INVALID
    if old and new - old:
        return BgpEventKind.ORIGIN
    if not any(after) and not any(unchanged):
        return BgpEventKind.WITHDRAWN
    if before and not any(before) and not any(unchanged):
        return BgpEventKind.ANNOUNCED
    return BgpEventKind.PATH


def _rpki(prefix: str, changed: Iterable[Outcome], vrps: VrpTable | None) -> str:
    """The worst state of any path that is there now; empty without VRPs or paths."""
    if vrps is None:
        return ""
    origins = set[int | None]().union(*(origins_of(one.after) for one in changed))
    states = {vrps.state(prefix, origin) for origin in origins}
    for state in (RpkiState.INVALID, RpkiState.NOT_FOUND, RpkiState.VALID):
        if state in states:
            return state
    return ""
