"""What is known of addresses besides what they answered: whose they are, what they are called."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pathbudget.agents.trace.names import HopNames
from pathbudget.agents.trace.path_state import OTHERS, Address, PathState


class Whose(NamedTuple):
    """The AS that announces an address, as in ``AS65012``, and its name where that is known.

    No number: nobody's own, as the network of an exchange, or unknown where there is no name.
    """

    number: str
    name: str = ""


Naming = Callable[[Sequence[Address]], Mapping[Address, Whose]]
"""Says of addresses whose they are; nothing of those it does not know."""


class Known(NamedTuple):
    """All that is known now. `origins` has every address that was asked about, where there is a
    prefix table at all; unknown ones have no number.
    """

    origins: Mapping[Address, Whose] = {}
    names: Mapping[Address, str] = {}


NOTHING_KNOWN = Known()
UNKNOWN = Whose("")


class Knowing:
    """Asks a prefix table, and reverse DNS, about each address once."""

    def __init__(self, naming: Naming | None = None, names: HopNames | None = None) -> None:
        self._naming = naming
        self._names = names
        self._origins: dict[Address, Whose] = {}

    def about(self, states: Sequence[PathState]) -> Known:
        """All that is known of everybody who answers on these paths."""
        addresses = sorted({one for state in states for one in _addresses(state)})
        if self._naming is not None:
            fresh = [one for one in addresses if one not in self._origins]
            found = self._naming(fresh) if fresh else {}
            self._origins |= {one: found.get(one, UNKNOWN) for one in fresh}
        if self._names is None:
            return Known(self._origins)
        for one in addresses:
            self._names.ask(one)
        return Known(self._origins, self._names.names)


def _addresses(state: PathState) -> set[Address]:
    """Everybody who answered in the round that is shown."""
    shown = state.shown
    if shown is None:
        return set()
    found = {who for hops in shown.flows.values() for who in hops.values() if who is not None}
    return found - {OTHERS}
