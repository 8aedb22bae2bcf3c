"""Budget lines: the network's terms of the end-to-end budget, each with interval and verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pathbudget.analysis.mixture import Part, mixture_estimate
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Estimate
from pathbudget.analysis.request import Distribution, RequestTimes, request_times
from pathbudget.analysis.results import BudgetLine, Direction, Method, Mode, Verdict
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.slow_start import extra_round_trips
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.verdict import NO_ALLOWANCE, Question, judge
from pathbudget.sites.catalogue import Tier

MEASURABLE_MODES = (Mode.COLD, Mode.RESUMED, Mode.WARM)


@dataclass(frozen=True, slots=True)
class _Place:
    """Coordinates of a line in the table of lines."""

    tier: Tier
    direction: Direction
    mode: Mode
    percentile: float

    @property
    def headline(self) -> bool:
        return (
            self.direction is Direction.NETWORK
            and self.mode == self.tier.mode
            and self.percentile == self.tier.percentile
        )


class PathBudget:
    """All lines of one path. Distributions are made once and shared by tiers and percentiles."""

    def __init__(
        self, path: PathSeries, confidence: float = 0.95, one_way: OneWayTracks | None = None
    ) -> None:
        self.path = path
        self.one_way = one_way
        self._confidence = confidence
        self._requests: dict[Mode, RequestTimes] = {
            mode: times
            for mode in MEASURABLE_MODES
            if (times := request_times(path, mode, one_way)) is not None
        }
        self._distributions: dict[tuple[Mode, Direction, int], Distribution] = {}

    @property
    def unjoined(self) -> int:
        """Set-ups that no line uses, because their vantage measured no round trip."""
        return sum(times.unjoined for times in self._requests.values())

    def lines(self, tier: Tier, percentiles: Sequence[float]) -> Iterator[BudgetLine]:
        """Every line of a tier: modes x directions x percentiles."""
        wanted = sorted({*(float(p) for p in percentiles), float(tier.percentile)})
        for mode in Mode:
            for direction in Direction:
                for percentile in wanted:
                    yield self._line(_Place(tier, direction, mode, percentile))

    def headline(self, tier: Tier) -> BudgetLine:
        """The one line that the tier's own mode and percentile single out."""
        return self._line(_Place(tier, Direction.NETWORK, Mode(tier.mode), float(tier.percentile)))

    def _line(self, place: _Place) -> BudgetLine:
        weights = mode_weights(place)
        parts = {
            mode: self._distribution(mode, place)
            for mode in MEASURABLE_MODES
            if weights.get(mode, 0) > 0 and mode in self._requests
        }
        missing = tuple(mode for mode in weights if weights[mode] > 0 and mode not in parts)
        if not parts:
            return _empty_line(self.path.region, self.path.site, place, self._why(place))
        estimate = mixture_estimate(
            [Part(weights[mode], distribution) for mode, distribution in parts.items()],
            place.percentile / 100,
            missing_weight=sum(weights[mode] for mode in missing),
            confidence=self._confidence,
        )
        return self._filled(place, estimate, parts, missing)

    def _filled(
        self,
        place: _Place,
        estimate: Estimate,
        parts: dict[Mode, Distribution],
        missing: tuple[str, ...],
    ) -> BudgetLine:
        losses = sum(distribution.losses for distribution in parts.values())
        one_way = self.one_way if place.direction is not Direction.NETWORK else None
        estimate = _with_clock_error(estimate, one_way)
        allowance = allowance_ms(place)
        question = Question(
            percentile=place.percentile,
            allowance_ms=allowance,
            confidence=self._confidence,
            losses=losses,
            noise_floor_ms=(self.path.noise_floor_ns or 0) / NS_PER_MS,
            missing_modes=missing,
        )
        verdict, reason = judge(estimate, question)
        if verdict is Verdict.PASS and self.path.refuses_everybody:
            verdict, reason = Verdict.UNDECIDED, _refuses_everybody(self.path)
        return BudgetLine(
            region=self.path.region,
            site=self.path.site,
            tier=place.tier.name,
            direction=place.direction,
            mode=place.mode,
            percentile=place.percentile,
            value_ms=milliseconds(estimate.value),
            low_ms=milliseconds(estimate.low),
            high_ms=milliseconds(estimate.high),
            n=estimate.n,
            n_effective=estimate.n_effective,
            losses=losses,
            method=weakest(method_of(mode, place, one_way) for mode in parts),
            allowance_ms=allowance,
            verdict=verdict,
            reason=reason,
            headline=place.headline,
            target=self.path.target,
            family=self.path.family,
            round_trips_from=self.path.source if one_way is None else one_way.source,
        )

    def _distribution(self, mode: Mode, place: _Place) -> Distribution:
        extra = 0
        if place.direction is not Direction.EGRESS:
            extra = extra_round_trips(place.tier.prompt_bytes)
        key = (mode, place.direction, extra)
        if key not in self._distributions:
            self._distributions[key] = self._requests[mode].distribution(place.direction, extra)
        return self._distributions[key]

    def _why(self, place: _Place) -> str:
        if self.path.round_trips is None:
            return "no round trip was measured for this pair."
        if place.mode is Mode.MIXTURE:
            return "none of the connection modes of the mixture was measured for this pair."
        return f"no {place.mode} connection was measured for this pair."


NAME_NOT_FOUND = "name not found, nothing was sent."


def unmeasured_headline(
    region: str, site: str, tier: Tier, reason: str = "this pair was not measured."
) -> BudgetLine:
    """The headline line of a pair without a sample: no numbers, and why."""
    place = _Place(tier, Direction.NETWORK, Mode(tier.mode), float(tier.percentile))
    return _empty_line(region, site, place, reason)


def _empty_line(region: str, site: str, place: _Place, reason: str) -> BudgetLine:
    allowance = allowance_ms(place)
    return BudgetLine(
        region=region,
        site=site,
        tier=place.tier.name,
        direction=place.direction,
        mode=place.mode,
        percentile=place.percentile,
        value_ms=None,
        low_ms=None,
        high_ms=None,
        n=0,
        n_effective=0.0,
        losses=0,
        method=Method.DERIVED_FROM_RTT if place.mode is Mode.WARM else Method.MEASURED,
        allowance_ms=allowance,
        verdict=Verdict.NOT_MEASURED,
        reason=NO_ALLOWANCE if allowance is None else reason,
        headline=place.headline,
    )


def mode_weights(place: _Place) -> dict[str, float]:
    """Share of each connection mode in the traffic of a line; the shares sum to 1."""
    if place.mode is not Mode.MIXTURE:
        return {place.mode: 1.0}
    total = sum(place.tier.mixture.values())
    return {mode: weight / total for mode, weight in place.tier.mixture.items() if weight > 0}


def allowance_ms(place: _Place) -> float | None:
    """Only the network as a whole has an allowance."""
    if place.direction is not Direction.NETWORK:
        return None
    return place.tier.network_allowance_ms


def _refuses_everybody(path: PathSeries) -> str:
    return (
        f"{path.target} refused every one of {path.connects} TCP connects: the network would do, "
        "and no service answers there."
    )


def _with_clock_error(estimate: Estimate, one_way: OneWayTracks | None) -> Estimate:
    """The estimate with the error of the clocks in its interval, where clocks are part of it."""
    if one_way is None or not one_way.error_ns:
        return estimate
    low = max(0.0, estimate.low - one_way.error_ns)
    return replace(estimate, low=low, high=estimate.high + one_way.error_ns)


def method_of(mode: Mode, place: _Place, one_way: OneWayTracks | None = None) -> Method:
    """How the line of one mode comes about (docs/metrics.md)."""
    if one_way is not None:
        extra = extra_round_trips(place.tier.prompt_bytes)
        if place.direction is Direction.INGRESS and extra:
            return Method.DERIVED_FROM_RTT
        return Method.SYMMETRIC_SPLIT if one_way.error_ns is None else Method.MEASURED
    if mode is Mode.WARM:
        return Method.DERIVED_FROM_RTT
    if place.direction is not Direction.NETWORK:
        return Method.SYMMETRIC_SPLIT
    if extra_round_trips(place.tier.prompt_bytes):
        return Method.DERIVED_FROM_RTT
    return Method.MEASURED


STRENGTH = (Method.MEASURED, Method.SYMMETRIC_SPLIT, Method.DERIVED_FROM_RTT)


def weakest(methods: Iterator[Method]) -> Method:
    """A mixture is as well measured as its worst part."""
    return max(methods, key=STRENGTH.index)
