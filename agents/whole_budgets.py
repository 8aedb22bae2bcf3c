"""From a store, files of terms and traces to whole budgets: the glue to `analysis.whole_budget`.

Nothing of `analysis` is imported until it is used, so that an agent without numpy starts.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.evaluation import MeasurementStore
from pathbudget.agents.extras import require
from pathbudget.sites.catalogue import Catalogue

if TYPE_CHECKING:
    from pathbudget.analysis.results import Evaluation
    from pathbudget.analysis.whole_budget.evaluation import Networks
    from pathbudget.analysis.whole_budget.terms import Term


@dataclass(frozen=True, slots=True)
class Given:
    """Terms that others measured, and what was left out of their files."""

    terms: tuple["Term", ...] = ()
    notes: tuple[str, ...] = ()


def given_terms(
    files: Sequence[Path] = (), traces: Sequence[Path] = (), span_map: Path | None = None
) -> Given:
    """Terms of the user's files and of exported traces.

    Raises ConfigError for faults of a file, PathbudgetError where an extra is missing.
    """
    require("analysis", "numpy", "scipy")
    paths = [*files, *traces]
    if not paths:
        return Given()
    from pathbudget.agents.telemetry.gather import gather

    gathered = gather(paths, span_map)
    return Given(tuple(gathered.terms), gathered.notes)


def measured_networks(
    store: MeasurementStore,
    catalogue: Catalogue,
    *,
    tiers: tuple[str, ...] | None = None,
    campaign: str | None = None,
    confidence: float = 0.95,
) -> "tuple[Evaluation, Networks]":
    """What was measured of each pair, and an evaluation with no more than the headline
    percentiles and the choice of sites.
    """
    require("analysis", "numpy", "scipy")
    from pathbudget.analysis.evaluate import EvaluationOptions, evaluate_networks

    options = EvaluationOptions(
        tiers=tiers,
        confidence=confidence,
        generated_unix_ns=time.time_ns(),
        percentiles=(),
        whole=False,
    )
    return evaluate_networks(store.measurements(campaign=campaign), catalogue, options)
