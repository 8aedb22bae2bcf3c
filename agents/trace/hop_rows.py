"""The path as rows: hops in order, their addresses as branches with links between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase

from pathbudget.agents.trace.changes import Change, change_at, gone_at
from pathbudget.agents.trace.path_state import Address, HopState, PathState, Round, Router
from pathbudget.analysis.hop_loss import Hop, HopVerdict, JudgedHop, judge_hops


@dataclass(frozen=True, slots=True)
class Branch:
    """One address of a hop. `letter` is empty where it is alone; `comes_from` are the letters of
    the hop before that lead here, empty where all of them do (or there is one).
    """

    address: Address
    flows: int
    router: Router | None
    letter: str = ""
    comes_from: str = ""
    destination: bool = False


@dataclass(frozen=True, slots=True)
class HopRow:
    """All of one hop limit in the latest round; `asked` flows were probed there."""

    limit: int
    branches: tuple[Branch, ...]
    asked: int
    state: HopState
    judged: JudgedHop | None
    change: Change = Change.NONE
    gone: tuple[Address, ...] = ()
    rationed: bool = False
    """Whether the trace found that silence here is no loss."""

    @property
    def silent_flows(self) -> int:
        """Flows that nobody answered in this round."""
        return self.asked - sum(one.flows for one in self.branches)


def hop_rows(state: PathState, verdicts: Mapping[int, JudgedHop]) -> tuple[HopRow, ...]:
    """The rows of the round that is shown."""
    shown = state.shown
    if shown is None:
        return ()
    rows: list[HopRow] = []
    letters: dict[Address, str] = {}
    last = _last_limit(state, shown)
    for limit in range(1, last + 1):
        branches = _branches(state, shown, limit, letters)
        letters = {one.address: one.letter for one in branches if one.letter}
        first = state.first if state.first is not shown else None
        rows.append(
            HopRow(
                limit=limit,
                branches=branches,
                asked=shown.asked(limit),
                state=state.hops.get(limit, HopState(limit)),
                judged=verdicts.get(limit),
                change=change_at(limit, first, shown) if first else Change.NONE,
                gone=gone_at(limit, first, shown) if first else (),
                rationed=limit in shown.limited,
            )
        )
    return tuple(rows)


def judged(state: PathState) -> dict[int, JudgedHop]:
    """What the missing answers of each hop mean, over all rounds so far."""
    shown = state.shown
    if shown is None:
        return {}
    known = [state.hops[n] for n in range(1, _last_limit(state, shown) + 1) if n in state.hops]
    hops = [Hop(one.limit, one.sent, one.answered) for one in known]
    reached = bool(known) and state.address in known[-1].routers
    return {one.hop.ttl: one for one in judge_hops(hops, reached=reached)}


def _last_limit(state: PathState, shown: Round) -> int:
    """Up to the destination; what was asked in vain beyond the last answer is one row more."""
    asked = max((n for hops in shown.flows.values() for n in hops), default=0)
    if state.address in shown.addresses(shown.longest):
        return shown.longest
    return min(asked, shown.longest + 1)


def _branches(
    state: PathState, shown: Round, limit: int, before: Mapping[Address, str]
) -> tuple[Branch, ...]:
    """Addresses of one hop: by where they come from, so that branches stay in line, and then by
    address, so that they keep their letters from round to round.
    """
    counts = shown.addresses(limit)
    sources = _sources(shown, limit, before)
    routers = state.hops[limit].routers if limit in state.hops else {}

    def place(address: Address) -> tuple[float, int, str]:
        letters = sources.get(address, "")
        middle = sum(map(ascii_lowercase.find, letters)) / len(letters) if letters else float("inf")
        return (middle, len(address), address)

    order = sorted(counts, key=place)
    all_of_them = "".join(sorted(before.values()))
    return tuple(
        Branch(
            address=address,
            flows=counts[address],
            router=routers.get(address),
            letter=letter_of(index) if len(order) > 1 else "",
            comes_from="" if sources.get(address, "") == all_of_them else sources.get(address, ""),
            destination=address == state.address,
        )
        for index, address in enumerate(order)
    )


def letter_of(index: int) -> str:
    """``a`` to ``z``, and ``+`` for whatever comes after."""
    return ascii_lowercase[index] if index < len(ascii_lowercase) else "+"


def _sources(shown: Round, limit: int, before: Mapping[Address, str]) -> dict[Address, str]:
    """Letters of the hop before from which flows go to each address."""
    found: dict[Address, set[str]] = {}
    for hops in shown.flows.values():
        here, there = hops.get(limit), hops.get(limit - 1)
        if here is not None and there is not None and there in before:
            found.setdefault(here, set()).add(before[there])
    return {address: "".join(sorted(letters)) for address, letters in found.items()}


def rate_limited(row: HopRow) -> bool:
    """Whether what is missing there says nothing of packets."""
    undecided = row.judged is not None and row.judged.verdict is HopVerdict.UNDECIDED
    if row.rationed and undecided and row.state.answered:
        return True
    return row.judged is not None and row.judged.verdict in (
        HopVerdict.RATE_LIMITED,
        HopVerdict.SILENT,
    )
