"""A baseline: what was measured when somebody last said "this is good", in a file of its own.

It holds every network line with its interval, so that another policy can be compared with it too,
and the definitions that the lines rest on. Numbers of other definitions are not compared at all.
"""

import math
from collections.abc import Iterable, Iterator

import msgspec

from pathbudget.analysis.gate.checks import Numbers, Subject
from pathbudget.analysis.gate.quantities import all_quantities
from pathbudget.analysis.gate.subject_words import subject_words
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.results import Evaluation, Objective, Result, TierInfo
from pathbudget.probes.errors import ConfigError, Fault

BASELINE_SCHEMA_VERSION = 1
AGAIN = "a baseline of the same definitions (make one with --write-baseline)"
NO_BASELINE = "a file that pathbudget budget check --write-baseline has made"


class Kept(Result, frozen=True):
    """One quantity as it was."""

    subject: Subject
    numbers: Numbers
    checked: bool = False
    """Whether the policy of that time checked it: if it is gone, that is told."""


class KeptSites(Result, frozen=True):
    """The choice of sites of one tier."""

    tier: str
    objective: Objective
    k: int
    sites: tuple[str, ...]
    decided: bool


class Baseline(Result, frozen=True):
    """The file."""

    pathbudget_baseline: int
    """Version of this schema; it also tells the file from others."""
    confidence: float
    tiers: tuple[TierInfo, ...]
    """As they were defined."""
    percentiles: tuple[float, ...]
    """Of the lines."""
    kept: tuple[Kept, ...]
    choices: tuple[KeptSites, ...]
    campaigns: tuple[str, ...]
    generated_unix_ns: int


def baseline_of(evaluation: Evaluation, checked: Iterable[Subject] = ()) -> Baseline:
    """What `evaluation` says, as a baseline. `checked` names what the policy asks for."""
    asked = set(checked)
    kept = [
        Kept(subject=one.subject, numbers=one.numbers, checked=one.subject in asked)
        for one in all_quantities(evaluation)
        if one.numbers.n
    ]
    return Baseline(
        pathbudget_baseline=BASELINE_SCHEMA_VERSION,
        confidence=evaluation.provenance.confidence,
        tiers=evaluation.tiers,
        percentiles=tuple(sorted({one.subject.percentile for one in kept})),
        kept=tuple(sorted(kept, key=_order)),
        choices=tuple(_choices(evaluation)),
        campaigns=evaluation.provenance.campaigns,
        generated_unix_ns=evaluation.generated_unix_ns,
    )


def _choices(evaluation: Evaluation) -> Iterator[KeptSites]:
    lookup = Lookup(evaluation)
    for tier in evaluation.tiers:
        if (chosen := lookup.chosen(tier.name)) and chosen.sites:
            yield KeptSites(
                tier=tier.name,
                objective=chosen.objective,
                k=chosen.k,
                sites=tuple(sorted(chosen.sites)),
                decided=chosen.decided,
            )


def _order(one: Kept) -> tuple[object, ...]:
    return tuple(str(word) for word in msgspec.structs.astuple(one.subject))


def render_baseline(baseline: Baseline) -> bytes:
    """The file: indented and sorted, so that a change of it can be read."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"


def parse_baseline(content: bytes, file: str = "baseline") -> Baseline:
    """The baseline in some bytes. Raises ConfigError."""
    try:
        head = msgspec.json.decode(content, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(file, "", f"is no baseline: {error}", NO_BASELINE) from None
    if head.pathbudget_baseline != BASELINE_SCHEMA_VERSION:
        problem = f"has schema version {head.pathbudget_baseline}"
        raise refusal(file, "pathbudget_baseline", problem, f"version {BASELINE_SCHEMA_VERSION}")
    try:
        baseline = msgspec.json.decode(content, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(file, "", f"is damaged: {error}", NO_BASELINE) from None
    if faults := list(_contradictions(baseline, file)):
        raise ConfigError(faults)
    return baseline


def _contradictions(baseline: Baseline, file: str) -> Iterator[Fault]:
    """Entries that no run writes: an interval without its value, and a line that is there twice."""
    seen: set[Subject] = set()
    for place, one in enumerate(baseline.kept):
        numbers, where = one.numbers, f"kept[{place}] ({subject_words(one.subject)})"
        ends = (numbers.low_ms, numbers.value_ms, numbers.high_ms)
        low, value, high = (math.inf if end is None else end for end in ends)
        if not low <= value <= high:
            problem = "the value is outside its interval"
            yield Fault(file, where, problem, "low_ms <= value_ms <= high_ms; null is no limit")
        if one.subject in seen:
            yield Fault(file, where, "stands there twice", "each line once")
        seen.add(one.subject)


class _Head(Result, frozen=True):
    pathbudget_baseline: int


def refuse_other_definitions(
    baseline: Baseline, evaluation: Evaluation, tiers: Iterable[TierInfo], file: str
) -> None:
    """Raise ConfigError where the numbers of the baseline mean something else than those of now:
    another confidence, or another definition of a tier that both have.
    """
    faults: list[Fault] = []
    then, now = baseline.confidence, evaluation.provenance.confidence
    if then != now:
        problem = f"its intervals are of {then:.10g}, those of this run of {now:.10g}"
        faults.append(Fault(file, "confidence", problem, AGAIN))
    before = {tier.name: tier for tier in baseline.tiers}
    for tier in tiers:
        if tier.name in before:
            faults += _changes(before[tier.name], tier, file)
    if faults:
        raise ConfigError(faults)


def refuse_other_percentiles(baseline: Baseline, asked: Iterable[float], file: str) -> None:
    """Raise ConfigError where a percentile is asked for that no line of the baseline has."""
    missing = sorted(set(asked) - set(baseline.percentiles))
    if missing and baseline.kept:
        has = ", ".join(f"p{one:g}" for one in baseline.percentiles)
        wants = ", ".join(f"p{one:g}" for one in missing)
        raise refusal(file, "percentiles", f"it has {has}, and {wants} is checked", AGAIN)


def _changes(before: TierInfo, now: TierInfo, file: str) -> Iterator[Fault]:
    """What of a tier's definition is no longer what it was; its title is a word."""
    for name in TierInfo.__struct_fields__:
        then, today = getattr(before, name), getattr(now, name)
        if name != "title" and then != today:
            problem = f"was {_shown(then)}, is {_shown(today)}"
            yield Fault(file, f"tier {now.name}, {name}", problem, AGAIN)


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 160 else text[:157] + "..."


def refusal(file: str, where: str, problem: str, expected: str) -> ConfigError:
    """One fault of a baseline file."""
    return ConfigError([Fault(file, where, problem, expected)])
