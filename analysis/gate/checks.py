"""What the gate hands back: one check after another, and the outcome of all. The JSON output is
exactly `Outcome`, encoded (docs/gate-schema.json).

`None` in a number of milliseconds means *unbounded*, as in the report.
"""

from enum import StrEnum

from pathbudget.analysis.gate.policy import Policy, Severity
from pathbudget.analysis.results import Carrier, Mode, Result, Verdict

GATE_SCHEMA_VERSION = 1
NOT_COMPARED = "not-compared"


class Rule(StrEnum):
    """What a check asks."""

    ALLOWANCE = "allowance"
    """Does the network keep the allowance of the tier?"""
    WHOLE = "whole-budget"
    """Does the whole request keep the target of the tier?"""
    REGRESSION = "regression"
    """Is it surely slower than in the baseline?"""
    VANISHED = "vanished"
    """It was measured for the baseline, and is not now."""
    NEW = "new"
    """It is not in the baseline."""
    SITES = "sites"
    """Is another choice of sites surely better than the one that is built on?"""


class Effect(StrEnum):
    """What a check makes of the build, once the policy has spoken."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    MEASURE_MORE = "measure-more"


class Ending(StrEnum):
    """What all checks make of the build."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    MEASURE_MORE = "measure-more"
    NOTHING = "nothing measured"


EXIT_CODES = {Ending.PASS: 0, Ending.FAIL: 1, Ending.NOTHING: 4, Ending.MEASURE_MORE: 6}


class Subject(Result, frozen=True, order=True):
    """What is checked. Empty words stand where a word does not apply."""

    tier: str
    region: str = ""
    site: str = ""
    mode: Mode | None = None
    transport: Carrier | None = None
    percentile: float = 0.0
    prompt_bytes: int = 0
    whole: bool = False
    """The whole request, not its network alone."""


class Numbers(Result, frozen=True):
    """What was measured of a subject, in ms."""

    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    n: int
    n_effective: float = 0.0
    losses: int = 0
    noise_floor_ms: float = 0.0
    """Of the measuring hosts: nothing finer is told apart."""


class Difference(Result, frozen=True):
    """Now less before, in ms. None: no limit on that side."""

    value_ms: float | None
    low_ms: float | None
    high_ms: float | None


class Check(Result, frozen=True):
    """One question, its answer, and what that means for the build."""

    rule: Rule
    subject: Subject
    verdict: Verdict
    effect: Effect
    severity: Severity
    text: str
    """One sentence with the numbers in it."""
    allowance_ms: float | None = None
    now: Numbers | None = None
    before: Numbers | None = None
    difference: Difference | None = None
    further_samples: int | None = None
    """An estimate of how many more would decide it; None where no number of samples would, or
    nothing is open."""
    file: str = ""
    line: int | None = None
    """Where the policy says so."""

    @property
    def fails(self) -> bool:
        """Whether it ends the build by itself."""
        return self.effect is Effect.FAIL and self.severity is Severity.ERROR

    @property
    def is_notice(self) -> bool:
        """Whether it ends nothing and says that nothing was compared: the baseline has no limit."""
        undecided = self.verdict is Verdict.UNDECIDED and self.effect is Effect.PASS
        return self.rule is Rule.REGRESSION and undecided

    @property
    def is_shown(self) -> bool:
        """Whether every output has it, and not the list of what passes alone."""
        return self.effect is not Effect.PASS or self.is_notice

    @property
    def wants_more(self) -> bool:
        """Whether it keeps the build from passing until more is measured."""
        return self.effect is Effect.MEASURE_MORE and self.severity is Severity.ERROR


class Outcome(Result, frozen=True):
    """All checks, and what they come to."""

    ending: Ending
    exit_code: int
    counts: dict[str, int]
    """``pass``, ``fail``, ``measure-more``: what counts for the build; ``warning`` and ``note``:
    checks of tiers of lesser severity that do not pass; ``not-compared``: the baseline sets no
    limit."""
    checks: tuple[Check, ...]
    """The failing ones first, then the open ones, then those that pass."""
    title: str
    campaigns: tuple[str, ...]
    started_unix_ns: int
    ended_unix_ns: int
    confidence: float
    policy: Policy
    baseline: str = ""
    """The campaigns of the baseline, when there is one."""
    schema: int = GATE_SCHEMA_VERSION
