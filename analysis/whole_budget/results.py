"""What is said of a whole budget. Milliseconds; None is no limit, as everywhere in results."""

from enum import StrEnum

import msgspec


class Combine(StrEnum):
    """How the terms become one time."""

    INDEPENDENT = "independent"
    """Convolution: no term is slow because another one is."""
    JOINT = "joint"
    """Request by request where terms have ids of requests in common; else as independent."""
    BOUND = "bound"
    """However they depend on each other: a time that is surely enough."""


class WholeVerdict(StrEnum):
    """Whether the request as a whole keeps its target."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNDECIDED = "undecided"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable, and made by keyword."""


class WholeTerm(Result, frozen=True):
    """One term of the whole."""

    name: str
    """As in the tier; ``network`` where one assumed number stands for both ways."""
    source: str
    """measured, traces, file, model, or tier: its allowance, which nobody measured."""
    origin: str
    n: int
    """Requests; 0 for an allowance."""
    n_effective: float | None
    losses: int
    allowance_ms: float | None
    """None for a term that the tier does not have; of `network_in` that of both ways."""
    mean_ms: float | None
    """Over the requests that did not fail."""
    value_ms: float | None
    """Its own quantile at the percentile of the whole."""
    low_ms: float | None
    high_ms: float | None
    contribution_ms: float | None
    """Its mean in requests about as slow as the percentile of the whole: these add up to it."""
    stretch: float | None
    """Factor on all of its times that would just keep the target: 0 where it would have to vanish,
    or even that is not enough; None where any factor will do."""
    headroom_ms: float | None
    """What its own quantile may grow by that factor; negative where it must shrink."""
    leverage: float
    """What the percentile falls by per ms off its mean, all of its times by the same factor."""
    relief_per_ms: float
    """By how much the share of breaches falls per ms off its mean; 0 where none is about the
    target."""


class Combination(Result, frozen=True):
    """The whole by one way of combining."""

    method: str
    """independent, joint, bound, or sum_of_quantiles, which is neither an estimate nor a bound."""
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    note: str


class Deadline(Result, frozen=True):
    """The largest time to first token with which the whole keeps its target."""

    at_percentile_ms: float | None
    """Its quantile at the tier's percentile, all its times stretched by one factor."""
    at_percentile_safe_ms: float | None
    """The same with the upper interval end of the whole within the target."""
    hard_ms: float | None
    """A time that no request exceeds: target less the quantile of all other terms."""
    hard_safe_ms: float | None


class WholeBudget(Result, frozen=True):
    """L_E2E of one (region, site, tier) at the tier's percentile."""

    region: str
    """Empty where no network was measured: the budget of the tier itself."""
    site: str
    tier: str
    percentile: float
    target_ms: float
    combine: Combine
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None
    headroom_ms: float | None
    """Target less value."""
    n: int
    """Samples of the term that has the fewest; 0 where nothing was sampled."""
    n_effective: float | None
    breach: float
    """Share of the requests above the target, failed ones among them."""
    breach_low: float
    breach_high: float
    failing: float
    """Share of the requests that fail."""
    verdict: WholeVerdict
    reason: str
    terms: tuple[WholeTerm, ...]
    combinations: tuple[Combination, ...]
    fix_first: str
    """Name of the term, ``network`` for both ways; empty where none helps more than another."""
    fix_reason: str
    deadline: Deadline | None
    """None for a tier without a time to first token."""
    assumed: tuple[str, ...]
    """Terms that stand at the tier's allowance."""
    notes: tuple[str, ...] = ()


class Figure(Result, frozen=True):
    """One quantile of the whole, with its interval."""

    percentile: float
    value_ms: float | None
    low_ms: float | None
    high_ms: float | None


class WhatIf(Result, frozen=True):
    """One lever, or several together: what the whole is with it, and what that rests on."""

    lever: str
    """As it was written: ``prefix-cache=0.6``."""
    title: str
    before: WholeBudget
    after: WholeBudget
    before_figures: tuple[Figure, ...]
    after_figures: tuple[Figure, ...]
    assumptions: tuple[str, ...]
    confirm: tuple[str, ...]
    """Which measurement would show whether it is so."""
    notes: tuple[str, ...] = ()
