"""What the gate judges: a store that is evaluated now, or a report that has been."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.cli.exits import ExitCode, fail, tell
from pathbudget.agents.cli.options import Rigour, given_of, tell_left_out
from pathbudget.agents.cli.outputs import STDOUT
from pathbudget.agents.cli.report import evaluated

if TYPE_CHECKING:
    from pathbudget.analysis.gate.policy import Policy
    from pathbudget.analysis.results import Evaluation


@dataclass(frozen=True, slots=True)
class Asked:
    """How a store is to be evaluated."""

    catalogue: tuple[Path, ...] = ()
    campaign: str | None = None
    terms: tuple[Path, ...] = ()
    traces: tuple[Path, ...] = ()
    span_map: Path | None = None
    rigour: Rigour = field(default_factory=Rigour)


def evaluation_of(source: Path, asked: Asked, policy: "Policy") -> "Evaluation":
    """Of a store, or what a report in JSON says."""
    if source != STDOUT and not source.is_file():
        return _of_store(source, asked, policy)
    if asked != Asked():
        message = "a report has been evaluated already: of the options of a store none is for it"
        raise fail(f"{message} (--catalogue, --campaign, --terms, ...)", ExitCode.USAGE)
    from pathbudget.analysis.gate.evaluation_file import parse_evaluation

    if source == STDOUT:
        return parse_evaluation(sys.stdin.buffer.read(), "standard input")
    return parse_evaluation(source.read_bytes(), str(source))


def _of_store(store: Path, asked: Asked, policy: "Policy") -> "Evaluation":
    given = given_of([*asked.terms], [*asked.traces], asked.span_map)
    if given.terms and not policy.whole:
        tell("Whole requests are judged where the policy says whole = true; this one does not.")
    percentiles = {*policy.percentiles}
    percentiles.update(p for rules in policy.tier.values() for p in rules.percentiles)
    evaluation = evaluated(
        store,
        [*asked.catalogue],
        policy.tiers,
        asked.campaign,
        percentiles=tuple(sorted(percentiles)),
        terms=given.terms,
        rigour=asked.rigour,
    )
    tell_left_out(given)
    return evaluation
