"""What a pipeline demands: which lines, against which allowances, and what a doubt is worth.

`policy_file.parse_policy` makes one of TOML; without a file, `Policy()` is the gate.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Carrier, Mode, Result, TierInfo


class Treatment(StrEnum):
    """What a check that the data cannot decide is worth."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    MEASURE_MORE = "measure-more"
    """Neither: the gate ends with an exit code of its own, and says how many samples it wants."""


class Severity(StrEnum):
    """How much a failed check of a tier matters."""

    ERROR = "error"
    """It fails the build."""
    WARNING = "warning"
    """It is shown as a warning; the build goes on."""
    NOTE = "note"
    """It is listed."""


class TierRules(Result, frozen=True):
    """What a policy says of one tier; None and empty leave it to the whole policy or the tier."""

    severity: Severity = Severity.ERROR
    allowance_ms: float | None = None
    """For the network, in place of the tier's own."""
    allowances_ms: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """By percentile (``p99``), before `allowance_ms`."""
    target_ms: float | None = None
    """For the whole request, in place of the tier's own."""
    percentiles: tuple[float, ...] = ()
    modes: tuple[Mode, ...] = ()
    transports: tuple[Carrier, ...] = ()
    prompts: tuple[int, ...] = ()
    undecided: Treatment | None = None
    not_measured: Treatment | None = None
    tolerance_ms: float | None = None
    expected_sites: tuple[str, ...] = ()
    """The choice of sites that is built on: the gate says when another one is surely better."""


class Policy(Result, frozen=True):
    """The whole of it. An empty tuple is no restriction."""

    tiers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    which: Sites = Sites.RECOMMENDED
    """Of each region; with `sites`, every one of these."""
    modes: tuple[Mode, ...] = ()
    transports: tuple[Carrier, ...] = ()
    prompts: tuple[int, ...] = ()
    percentiles: tuple[float, ...] = ()
    undecided: Treatment = Treatment.MEASURE_MORE
    not_measured: Treatment = Treatment.MEASURE_MORE
    tolerance_ms: float = 0.0
    """A regression must be larger than this, with certainty."""
    simultaneous: bool = True
    """Whether all comparisons with a baseline are right together at the confidence level, not each
    one by itself: of a hundred lines, two or three look worse by chance alone."""
    whole: bool = False
    """Whether whole requests are held against the target of their tier too."""
    siting: bool | None = None
    """The choice of sites. None: compared where a baseline or `expected_sites` has one."""
    tier: dict[str, TierRules] = msgspec.field(default_factory=dict[str, TierRules])
    file: str = ""
    lines: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Line of every key in `file`, by its dotted path: what faults and annotations point at."""

    def rules(self, tier: TierInfo) -> "Rules":
        """What holds for one tier: its own table, else the policy, else the tier itself."""
        own = self.tier.get(tier.name, TierRules())
        modes = own.modes or self.modes or (tier.mode,)
        return Rules(
            severity=own.severity,
            modes=modes,
            transports=own.transports or self.transports or (tier.transport,),
            prompts=own.prompts or self.prompts or (tier.prompt_bytes,),
            percentiles=own.percentiles or self.percentiles or (tier.percentile,),
            undecided=own.undecided or self.undecided,
            not_measured=own.not_measured or self.not_measured,
            tolerance_ms=self.tolerance_ms if own.tolerance_ms is None else own.tolerance_ms,
            expected_sites=own.expected_sites,
            allowance_ms=own.allowance_ms,
            allowances_ms=own.allowances_ms,
            target_ms=own.target_ms,
        )

    def overruled(
        self, undecided: Treatment | None = None, not_measured: Treatment | None = None
    ) -> "Policy":
        """The policy with another word for what is open, in every tier."""
        changes = {
            key: word
            for key, word in (("undecided", undecided), ("not_measured", not_measured))
            if word is not None
        }
        blank = dict.fromkeys(changes)
        tiers = {name: msgspec.structs.replace(one, **blank) for name, one in self.tier.items()}
        return msgspec.structs.replace(self, **changes, tier=tiers)

    def severity(self, tier: str) -> Severity:
        """How much a tier matters, known or not."""
        return self.tier.get(tier, TierRules()).severity

    def takes_tier(self, name: str) -> bool:
        """Whether a tier is checked."""
        return not self.tiers or name in self.tiers


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy as it applies to one tier: nothing is left open."""

    severity: Severity
    modes: tuple[Mode, ...]
    transports: tuple[Carrier, ...]
    prompts: tuple[int, ...]
    percentiles: tuple[float, ...]
    undecided: Treatment
    not_measured: Treatment
    tolerance_ms: float
    expected_sites: tuple[str, ...]
    allowance_ms: float | None
    allowances_ms: dict[str, float]
    target_ms: float | None

    def allowance(self, percentile: float) -> float | None:
        """What the policy allows a line of that percentile; None where that is the tier's."""
        return self.allowances_ms.get(f"p{percentile:g}", self.allowance_ms)
