"""What a choice of sites says beyond the choice itself: how stable it is, and what to measure next.

Milliseconds (covering: shares of the weight) throughout; the JSON of a report holds these as they
are. Kept apart from `results.py`, which has them as optional fields.
"""

import msgspec


class ChoiceShare(msgspec.Struct, frozen=True, kw_only=True):
    """How often resampled measurements ask for these sites."""

    sites: tuple[str, ...]
    share: float


class SiteShare(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of the resampled choices a site is."""

    site: str
    share: float


class MeasureNext(msgspec.Struct, frozen=True, kw_only=True):
    """One pair that is worth measuring (more)."""

    region: str
    site: str
    samples: int
    """How many further samples the reduction is for; the same for every pair of a list."""
    reduction: float
    """By how much these samples are expected to lower the regret, in the unit of the value."""
    per_sample: float
    measured: int
    """Samples there are now; 0 for a pair that was not measured."""
    text: str


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """How a choice stands up to the uncertainty of its measurements.

    Every headline line is drawn anew from its sampling distribution, `resamples` times, each pair
    by itself, and the best choice looked for each time. Regret is what the recommended choice
    costs more than the best one of the same draw; never negative.
    """

    resamples: int
    seed: int
    choices: tuple[ChoiceShare, ...]
    """The most frequent choices, with the recommended one always among them."""
    sites: tuple[SiteShare, ...]
    share_of_best: float
    """How often the recommended choice is the best."""
    regret_mean: float
    regret_median: float
    regret_p95: float
    regret_relative_p95: float | None
    """The same relative to the best choice of the draw; None where that may be 0."""
    method: str
    """``all choices`` or ``neighbouring choices``: where the best of a draw was looked for."""
    looked_at: int
    """Number of choices that each draw was judged on."""
    measure_next: tuple[MeasureNext, ...] = ()
    """Pairs by expected reduction of regret, the most worth first."""
    prior: str = ""
    """What unmeasured pairs were taken to be while looking for what to measure next."""
    not_ranked: int = 0
    """Unmeasured pairs about which nothing can be said beforehand."""


class HeadlineSampling(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling distribution of one headline value: what it may be for all that was measured."""

    region: str
    site: str
    tier: str
    values_ms: tuple[float | None, ...]
    """At `sampling.PROBABILITIES`; None is unbounded."""


class SiteFact(msgspec.Struct, frozen=True, kw_only=True):
    """What the catalogue knows of a chosen site, beside what was measured."""

    site: str
    exchanges: tuple[str, ...]
    networks: tuple[int, ...]
    """AS numbers present at the facility, of those that the catalogue lists."""
    mean_distance_km: float | None
    """Mean over the traffic that the site serves; None without coordinates."""
    farthest_km: float | None
    price_per_month: float | None
    capacity: float | None
    power_kw: float | None
    share: float
    """Share of the weight that it serves."""
