"""Which lines a policy asks for, one place each, and the line that stands there if any does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pathbudget.analysis.gate.checks import Subject
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import BudgetLine, Carrier, Direction, Mode, TierInfo
from pathbudget.analysis.siting.serving import ends

Key = tuple[str, str, str, Mode, float]
Usual = Mapping[str, Mapping[str, str]]
"""The site of each region at the time of the baseline, by tier."""


@dataclass(frozen=True, slots=True)
class Place:
    """What was asked for; `line` is None where there is no such line."""

    subject: Subject
    line: BudgetLine | None


class Places:
    """The network lines of an evaluation, to be asked for by tier, pair, mode and so on."""

    def __init__(self, lookup: Lookup, policy: Policy, usual: Usual) -> None:
        self._lookup, self._policy, self._usual = lookup, policy, usual
        self._lines: dict[Key, list[BudgetLine]] = {}
        for line in lookup.evaluation.lines:
            if line.direction is Direction.NETWORK and line.allowance_ms is not None:
                key = (line.tier, line.region, line.site, line.mode, line.percentile)
                self._lines.setdefault(key, []).append(line)

    def wanted(self, tier: TierInfo) -> Iterator[Place]:
        """Every place of a tier that the policy asks for, each once."""
        rules = self._policy.rules(tier)
        for region, site in self._pairs(tier):
            for mode in rules.modes:
                mixed = mode is Mode.MIXTURE
                for transport in (Carrier.MIXED,) if mixed else rules.transports:
                    for prompt in rules.prompts:
                        for percentile in rules.percentiles:
                            yield self._place(
                                Subject(
                                    tier=tier.name,
                                    region=region,
                                    site=site,
                                    mode=mode,
                                    transport=transport,
                                    percentile=percentile,
                                    prompt_bytes=prompt,
                                )
                            )

    def _place(self, subject: Subject) -> Place:
        """A mixture stands under any transport, and a line without a prompt for every prompt."""
        assert subject.mode is not None
        key = (subject.tier, subject.region, subject.site, subject.mode, subject.percentile)
        for line in self._lines.get(key, ()):
            carried = subject.mode is Mode.MIXTURE or line.transport is subject.transport
            if carried and line.prompt_bytes in (subject.prompt_bytes, 0):
                return Place(subject_of(line), line)
        return Place(subject, None)

    def _pairs(self, tier: TierInfo) -> Iterator[tuple[str, str]]:
        """(region, site); the site is empty where none is chosen for the region."""
        policy = self._policy
        sites = policy.sites or tuple(site.name for site in self._lookup.sites)
        served = self._lookup.serving(tier.name, usual=self._usual.get(tier.name))
        for region in self._lookup.evaluation.regions:
            if policy.regions and region.name not in policy.regions:
                continue
            match policy.which:
                case Sites.ALL:
                    yield from ((region.name, site) for site in sites)
                case Sites.BEST:
                    yield region.name, self._best(tier, region.name)
                case Sites.RECOMMENDED:
                    yield region.name, served.get(region.name, "")

    def _best(self, tier: TierInfo, region: str) -> str:
        """The site with the smallest upper end; the empty word where none was measured."""
        names = [site.name for site in self._lookup.sites]
        lines = [line for name in names if (line := self._lookup.headline(tier.name, region, name))]
        measured = [line for line in lines if line.n]
        return min(measured, key=ends).site if measured else ""


def subject_of(line: BudgetLine) -> Subject:
    """The place of a line."""
    return Subject(
        tier=line.tier,
        region=line.region,
        site=line.site,
        mode=line.mode,
        transport=line.transport,
        percentile=line.percentile,
        prompt_bytes=line.prompt_bytes,
    )
