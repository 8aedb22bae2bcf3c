"""What changed at a hop since the first round: a load balancer's doing, or the path. Pure.

Compared are sets of addresses, and the address of each flow: that a flow goes another way among the
same addresses is what load balancers do (flutter), and no change of path.
"""

from enum import StrEnum

from pathbudget.agents.trace.path_state import Address, Round


class Change(StrEnum):
    """How a hop differs from that of the first round."""

    NONE = ""
    FLUTTER = "flutter"
    """The same addresses; some flows pass another of them."""
    NEW = "new"
    """Addresses beside those known: the first round may have missed them."""
    MOVED = "moved"
    """A flow left an address that nobody passes any more, or all of them are others."""


def change_at(limit: int, first: Round, now: Round) -> Change:
    """What changed at one hop limit. Silence is no address, and equal to any."""
    before, after = set(first.addresses(limit)), set(now.addresses(limit))
    if not before or not after:
        return Change.NONE
    moves = _moves(limit, first, now)
    if not before & after:
        return Change.MOVED
    if any(old not in after and new not in before for old, new in moves):
        return Change.MOVED
    if after - before:
        return Change.NEW
    return Change.FLUTTER if moves else Change.NONE


def gone_at(limit: int, first: Round, now: Round) -> tuple[Address, ...]:
    """Addresses of the first round that nobody passes any more."""
    before, after = first.addresses(limit), now.addresses(limit)
    return tuple(sorted(set(before) - set(after))) if after else ()


def changed_hops(first: Round, now: Round, kind: Change) -> tuple[int, ...]:
    """Hop limits at which that is what happened."""
    last = max(first.longest, now.longest)
    return tuple(n for n in range(1, last + 1) if change_at(n, first, now) is kind)


def _moves(limit: int, first: Round, now: Round) -> set[tuple[Address, Address]]:
    """What flows of both rounds passed before and pass now, where it differs."""
    found: set[tuple[Address, Address]] = set()
    for flow, hops in now.flows.items():
        old, new = first.flows.get(flow, {}).get(limit), hops.get(limit)
        if old is not None and new is not None and old != new:
            found.add((old, new))
    return found
