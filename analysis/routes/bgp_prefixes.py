"""Where a prefix stands now: how many peers have it, by which path, how often that changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.analysis.routes.bgp_peers import ABSENT, Held, Peer, most_common, origins_of
from pathbudget.sites.rpki import RpkiState, VrpTable

DAY_NS = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class PrefixStatus:
    """`peers_with` of `peers_live` have a route; `path` is the most common one."""

    prefix: str
    site: str
    peers_with: int
    peers_live: int
    path: str
    peers_on_path: int
    origins: tuple[int, ...]
    rpki: str
    last_change_unix_ns: int | None
    changes: int
    changes_per_day: float | None
    """None where less than an hour was observed: no rate comes of that."""


def prefix_status(
    prefix: str,
    site: str,
    held: Sequence[tuple[Peer, Held]],
    changes: int,
    observed_ns: int,
    vrps: VrpTable | None,
) -> PrefixStatus:
    """Of the live peers that know the prefix."""
    states = [one.state for _, one in held]
    there = [state for state in states if state != ABSENT]
    path = most_common(there)
    origins = sorted({one for state in there for one in origins_of(state) if one is not None})
    return PrefixStatus(
        prefix=prefix,
        site=site,
        peers_with=len(there),
        peers_live=len(held),
        path=path,
        peers_on_path=there.count(path),
        origins=tuple(origins),
        rpki=_worst(prefix, there, vrps),
        last_change_unix_ns=max((one.time_unix_ns for _, one in held), default=None),
        changes=changes,
        changes_per_day=changes * DAY_NS / observed_ns if observed_ns >= DAY_NS // 24 else None,
    )


def _worst(prefix: str, states: Sequence[str], vrps: VrpTable | None) -> str:
    if vrps is None or not states:
        return ""
    found = {vrps.state(prefix, origin) for state in states for origin in origins_of(state)}
    for state in (RpkiState.INVALID, RpkiState.NOT_FOUND, RpkiState.VALID):
        if state in found:
            return state
    return ""
