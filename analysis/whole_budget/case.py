"""One budget that a what-if changes: what is replayed, under which changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pathbudget.analysis.whole_budget.evaluation import Networks, PairName, pair_request
from pathbudget.analysis.whole_budget.network import NetworkChange, NetworkSource
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.results import Combine
from pathbudget.analysis.whole_budget.selection import Selection
from pathbudget.analysis.whole_budget.terms import Term, TermName
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.catalogue import Tier

Edit = Callable[[dict[TermName, Term]], dict[TermName, Term]]
"""What a model does to the terms of a budget."""


@dataclass(frozen=True, slots=True)
class Case:
    """Region and site, what was measured of them and given beside, and what is changed."""

    pair: PairName
    tier: Tier
    networks: Networks = field(default_factory=dict[PairName, NetworkSource])
    given: tuple[Term, ...] = ()
    combine: Combine | None = None
    confidence: float = 0.95
    change: NetworkChange = field(default_factory=NetworkChange)
    edits: tuple[Edit, ...] = ()

    @property
    def network(self) -> NetworkSource | None:
        """What was measured of the pair."""
        return self.networks.get(self.pair)

    def edited(self, edit: Edit) -> "Case":
        """With one more change of its terms, after those before."""
        return replace(self, edits=(*self.edits, edit))

    def request(self) -> Request:
        """The question of its whole budget."""
        asked = pair_request(
            self.pair,
            self.network,
            self.tier,
            self.confidence,
            given=self.given,
            change=self.change,
            combine=self.combine,
        )
        terms = {term.name: term for term in asked.selection.terms}
        for edit in self.edits:
            terms = edit(terms)
        ordered = tuple(terms[name] for name in TermName if name in terms)
        kept = asked.selection
        return replace(asked, selection=Selection(ordered, kept.notes, kept.missing))

    def terms(self) -> dict[TermName, Term]:
        """Its terms as they are after all changes."""
        return {term.name: term for term in self.request().selection.terms}


@dataclass(frozen=True, slots=True)
class Changed:
    """What a lever made of a case, and what that rests on."""

    case: Case
    assumptions: tuple[str, ...]
    confirm: tuple[str, ...]
    notes: tuple[str, ...] = ()
    before: Case | None = None
    """What it is to be compared with, where that is not the case as it was."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was written after the name of a lever: ``0.6,hit-ms:15`` or ``ashburn,dallas``."""

    lever: str
    words: tuple[str, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    value: str = ""

    @property
    def written(self) -> str:
        """As on the command line: ``prefix-cache=0.6``."""
        return f"{self.lever}={self.value}" if self.value else self.lever

    def only(self, first: str, names: Sequence[str] = ()) -> "Setting":
        """With the one bare word as the number `first`, and no other names than these.

        Raises ConfigError.
        """
        numbers = dict(self.numbers)
        for word in self.words:
            if not first or first in numbers:
                raise self.wrong(f"{word!r} is not understood", _choices(first, names))
            numbers[first] = self.number_of(word)
        for name in numbers:
            if name not in (first, *names):
                raise self.wrong(f"{name!r} is no setting of it", _choices(first, names))
        return replace(self, words=(), numbers=numbers)

    def number_of(self, word: str) -> float:
        """A number that was written as such. Raises ConfigError."""
        try:
            number = float(word)
        except ValueError:
            raise self.wrong(f"{word!r} is no number", "a number") from None
        if number != number or abs(number) == float("inf"):
            raise self.wrong(f"{word!r} is no number", "a number")
        return number

    def get(self, name: str, default: float, low: float, high: float, expected: str) -> float:
        """A setting within its limits. Raises ConfigError."""
        value = self.numbers.get(name, default)
        if not low <= value <= high:
            raise self.wrong(f"{name} is {value:g}", expected)
        return value

    def wrong(self, problem: str, expected: str) -> ConfigError:
        """What to raise."""
        return ConfigError([Fault("command line", f"--lever {self.lever}", problem, expected)])


def _choices(first: str, names: Sequence[str]) -> str:
    words = ([f"a number ({first})"] if first else []) + [f"{name}:NUMBER" for name in names]
    return " and ".join(words) or "nothing after the name"
