"""Which budget lines a pipeline asks for, and what they say together (docs/report.md)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import connections, listed
from pathbudget.analysis.results import (
    BudgetLine,
    Carrier,
    Direction,
    Mode,
    Result,
    TierInfo,
    Verdict,
)
from pathbudget.analysis.siting.serving import ends


class Sites(StrEnum):
    """Which sites of a region count."""

    RECOMMENDED = "recommended"
    """The one that the report's recommendation gives to the region; where that gives it none,
    though it was measured, the least bad one."""
    BEST = "best"
    """The one with the smallest upper interval end."""
    ALL = "all"
    """Every one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for; an empty tuple is no restriction."""

    tiers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    which: Sites = Sites.RECOMMENDED
    modes: tuple[Mode, ...] = ()
    transports: tuple[Carrier, ...] = ()
    prompts: tuple[int, ...] = ()
    """Bytes of the request."""
    percentiles: tuple[float, ...] = ()
    all_lines: bool = False


class Missing(Result, frozen=True):
    """A line that was asked for and is not there. It counts like an undecided one."""

    tier: str
    region: str
    site: str
    """Empty when no site is known to serve the region."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The lines found, and what was asked for and not found."""

    lines: tuple[BudgetLine, ...]
    missing: tuple[Missing, ...]

    @property
    def counts(self) -> Counter[Verdict]:
        """Lines by verdict; those without an allowance have none to give."""
        return Counter(line.verdict for line in self.lines if line.allowance_ms is not None)

    @property
    def verdict(self) -> Verdict:
        """Fail when one fails, undecided when one is undecided or not measured, else pass."""
        if self.counts[Verdict.FAIL]:
            return Verdict.FAIL
        unknown = self.counts[Verdict.UNDECIDED] + self.counts[Verdict.NOT_MEASURED]
        decided = self.counts[Verdict.PASS] and not unknown
        return Verdict.PASS if decided and not self.missing else Verdict.UNDECIDED


def select(lookup: Lookup, wanted: Wanted) -> Selected:
    """The lines that `wanted` names, tier by tier, region by region."""
    lines: list[BudgetLine] = []
    missing: list[Missing] = []
    by_pair = _by_pair(lookup)
    for tier in lookup.tiers:
        if wanted.tiers and tier.name not in wanted.tiers:
            continue
        for region, site in _pairs(lookup, tier, wanted):
            found = [
                line
                for line in by_pair.get((tier.name, region, site), ())
                if _takes(wanted, tier, line)
            ]
            lines.extend(found)
            if not any(line.allowance_ms is not None for line in found):
                missing.append(Missing(tier=tier.name, region=region, site=site))
    return Selected(tuple(lines), tuple(missing))


def _by_pair(lookup: Lookup) -> dict[tuple[str, str, str], list[BudgetLine]]:
    found: dict[tuple[str, str, str], list[BudgetLine]] = {}
    for line in lookup.evaluation.lines:
        found.setdefault((line.tier, line.region, line.site), []).append(line)
    return found


def _takes(wanted: Wanted, tier: TierInfo, line: BudgetLine) -> bool:
    if wanted.modes and line.mode not in wanted.modes:
        return False
    if wanted.percentiles and line.percentile not in wanted.percentiles:
        return False
    if wanted.transports and line.transport not in (*wanted.transports, Carrier.MIXED):
        return False  # a mixture over both is of either, and names both
    if wanted.prompts and line.prompt_bytes not in wanted.prompts:
        return False
    if wanted.all_lines:
        return True
    return line.direction is Direction.NETWORK and _is_usual(wanted, tier, line)


def no_such_line(lookup: Lookup, wanted: Wanted) -> str:
    """Which modes over which transports there are, where those asked for are none of them; the
    empty word where it is something else that is missing.
    """
    lines = [
        line
        for line in lookup.evaluation.lines
        if line.direction is Direction.NETWORK and (not wanted.tiers or line.tier in wanted.tiers)
    ]
    asked = Wanted(modes=wanted.modes, transports=wanted.transports, all_lines=True)
    by_name = {tier.name: tier for tier in lookup.tiers}
    if any(_takes(asked, by_name[line.tier], line) for line in lines):
        return ""
    known = listed(dict.fromkeys(connections(line.transport, line.mode) for line in lines))
    words = " and ".join(map(str, (*wanted.modes, *wanted.transports)))
    return f"no line is of {words}; there are lines of {known}."


def _is_usual(wanted: Wanted, tier: TierInfo, line: BudgetLine) -> bool:
    """Whether a line is the tier's own in everything that nobody asked otherwise for."""
    own = line.transport == tier.transport or line.mode is Mode.MIXTURE
    return (
        (bool(wanted.modes) or line.mode == tier.mode)
        and (bool(wanted.transports) or own)
        and (bool(wanted.prompts) or line.prompt_bytes in (tier.prompt_bytes, 0))
        and (bool(wanted.percentiles) or line.percentile == tier.percentile)
    )


def _pairs(lookup: Lookup, tier: TierInfo, wanted: Wanted) -> Iterator[tuple[str, str]]:
    """(region, site) to look at; an empty site where none serves the region."""
    sites = [s.name for s in lookup.sites if not wanted.sites or s.name in wanted.sites]
    served = lookup.serving(tier.name, among=sites)
    for region in lookup.evaluation.regions:
        if wanted.regions and region.name not in wanted.regions:
            continue
        match wanted.which:
            case Sites.ALL:
                yield from ((region.name, site) for site in sites)
            case Sites.BEST:
                yield region.name, _best(lookup, tier, region.name, sites)
            case Sites.RECOMMENDED:
                site = served.get(region.name, "")
                if site in sites or not site:
                    yield region.name, site


def _best(lookup: Lookup, tier: TierInfo, region: str, sites: list[str]) -> str:
    lines = [line for site in sites if (line := lookup.headline(tier.name, region, site))]
    return min(lines, key=lambda line: (not line.n, ends(line))).site if lines else ""
