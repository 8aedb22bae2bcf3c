"""From a store to an evaluation: the glue between `agents` and `analysis`.

Nothing of `analysis` is imported until it is used, so that an agent without numpy starts.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from pathbudget.agents.extras import require
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue

if TYPE_CHECKING:
    from pathbudget.analysis.results import Evaluation
    from pathbudget.analysis.whole_budget.terms import Term


class MeasurementStore(Protocol):
    """What is needed of a store."""

    def measurements(
        self, *, campaign: str | None = None, since_unix_ns: int | None = None
    ) -> Iterable[Measurement]:
        """Every measurement, of one campaign or since a moment where wanted."""
        ...


def evaluate_store(
    store: MeasurementStore,
    catalogue: Catalogue,
    *,
    tiers: tuple[str, ...] | None = None,
    campaign: str | None = None,
    since_unix_ns: int | None = None,
    choose: tuple[int, ...] = (1, 2, 3),
    confidence: float = 0.95,
    title: str = "",
    generated_unix_ns: int | None = None,
    percentiles: tuple[float, ...] = (),
    terms: tuple["Term", ...] = (),
    always_valid: bool = False,
    require_busy_hours: bool = False,
) -> "Evaluation":
    """Evaluate what a store holds, of one campaign or since a moment where wanted. `percentiles`
    get lines beside the usual ones; `terms` are those of whole requests that others measured.

    Raises PathbudgetError that names the extra to install where numpy or scipy is missing, and
    ConfigError for a tier that the catalogue does not have.
    """
    require("analysis", "numpy", "scipy")
    from pathbudget.analysis.evaluate import EvaluationOptions, evaluate

    usual = EvaluationOptions().percentiles
    options = EvaluationOptions(
        tiers=tiers,
        confidence=confidence,
        choose=choose,
        title=title,
        generated_unix_ns=time.time_ns() if generated_unix_ns is None else generated_unix_ns,
        percentiles=tuple(sorted({*usual, *percentiles})),
        terms=terms,
        always_valid=always_valid,
        require_busy_hours=require_busy_hours,
    )
    found = store.measurements(campaign=campaign, since_unix_ns=since_unix_ns)
    return evaluate(found, catalogue, options)
