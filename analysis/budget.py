"""Budget lines: the network's terms of the end-to-end budget, each with interval and verdict."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from pathbudget.analysis.intervals.sequential import always_valid_mixture
from pathbudget.analysis.line_place import (
    LinePlace,
    carriage_words,
    headline_carriage,
    method_of,
    mixture_carriage,
    mixture_weights,
    weakest,
)
from pathbudget.analysis.mixture import Part, mixture_estimate
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.path_choice import CARRIERS, PathSeries
from pathbudget.analysis.quantiles import Estimate, fewest_samples
from pathbudget.analysis.request import (
    Distribution,
    RequestTimes,
    distribution_of,
    request_times,
    uploaded,
)
from pathbudget.analysis.results import (
    BudgetLine,
    Carriage,
    Carrier,
    Direction,
    Mode,
    Verdict,
)
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.siting.decision_results import HeadlineSampling
from pathbudget.analysis.siting.sampling import of_parts
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import Uploads, of_path
from pathbudget.analysis.verdict import NO_ALLOWANCE, Question, judge
from pathbudget.sites.catalogue import Tier

ALWAYS = ((Carrier.TLS, Mode.COLD), (Carrier.TLS, Mode.RESUMED), (Carrier.TLS, Mode.WARM))
"""Modes that have lines even where nobody measured them; others where somebody did."""

MEASURABLE = tuple((carrier, mode) for carrier in CARRIERS for mode in Mode if mode != Mode.MIXTURE)

PER_REQUEST = (Direction.INGRESS, Direction.EGRESS, Direction.NETWORK)


class PathBudget:
    """All lines of one path. Distributions are made once and shared by tiers and percentiles."""

    def __init__(
        self,
        path: PathSeries,
        confidence: float = 0.95,
        one_way: OneWayTracks | None = None,
        *,
        uploads: Iterable[Uploads] = (),
        streams: dict[Carrier, Track] | None = None,
        always_valid: bool = False,
        never_passes: str = "",
    ) -> None:
        """`never_passes`: why a line that would pass is undecided; empty where it may pass."""
        self.path = path
        self.one_way = one_way
        self._confidence = confidence
        self._always_valid = always_valid
        self._never_passes = never_passes
        self._requests: dict[Carriage, RequestTimes] = {
            carriage: times
            for carriage in MEASURABLE
            if (times := request_times(path, carriage, one_way)) is not None
        }
        self._uploads = of_path(uploads, path.target, path.family)
        self._streams = streams or {}
        self._distributions: dict[tuple[Carriage, Direction, int, bool], Distribution] = {}
        self._estimates: dict[object, tuple[tuple[Part, ...], Estimate]] = {}

    @property
    def unjoined(self) -> int:
        """Set-ups that no line uses, because their vantage measured no round trip."""
        return sum(times.unjoined for times in self._requests.values())

    def lines(self, tier: Tier, percentiles: Sequence[float]) -> Iterator[BudgetLine]:
        """Every line of a tier: modes over transports x directions x prompts x percentiles."""
        wanted = sorted({*(float(p) for p in percentiles), float(tier.percentile)})
        for carrier, mode in self._carriages(tier):
            for direction in PER_REQUEST:
                sizes = tier.prompt_sizes if direction is not Direction.EGRESS else (0,)
                for size in sizes:
                    for percentile in wanted:
                        yield self._line(
                            LinePlace(tier, direction, carrier, mode, percentile, size)
                        )
        for carrier in self._streams:
            for percentile in wanted:
                yield self._line(
                    LinePlace(tier, Direction.STREAM, carrier, Mode.WARM, percentile, 0)
                )

    def headline(self, tier: Tier) -> BudgetLine:
        """The one line that the tier's own transport, mode and percentile single out."""
        return self._line(headline_place(tier))

    def sampling(self, tier: Tier) -> HeadlineSampling | None:
        """What the headline may be for all that was measured; None where nothing was."""
        place = headline_place(tier)
        weights = place.weights()
        parts = [
            Part(weights[carriage], self._distribution(carriage, place))
            for carriage in MEASURABLE
            if carriage in weights and carriage in self._requests
        ]
        if not parts:
            return None
        missing = max(0.0, 1 - sum(part.weight for part in parts))
        table = of_parts(parts, place.percentile / 100, missing if missing > 1e-9 else 0.0)
        values = tuple(milliseconds(float(value)) for value in table)
        region, site = self.path.region, self.path.site
        return HeadlineSampling(region=region, site=site, tier=tier.name, values_ms=values)

    def _carriages(self, tier: Tier) -> list[Carriage]:
        """Modes over transports that have lines in the tier, in one order for all tiers."""
        named = {*ALWAYS, *mixture_weights(tier), headline_carriage(tier)}
        new = {carriage for carriage in self._requests if carriage in self.path.setups}
        kept = {(carrier, Mode.WARM) for carrier, _ in new}
        sent = {carriage for carriage, _ in self._uploads}
        ordered = [one for one in MEASURABLE if one in named | new | kept | sent]
        return [*ordered, mixture_carriage(tier)]

    def _line(self, place: LinePlace) -> BudgetLine:
        if place.direction is Direction.STREAM:
            parts = {(place.carrier, place.mode): distribution_of(self._streams[place.carrier])}
            return self._filled(place, parts, ())
        scarce = self._scarce(place)
        line = self._of_requests(place)
        if not scarce or line.verdict is Verdict.FAIL:
            return line
        line = self._of_requests(replace(place, modelled=frozenset(scarce)))
        return msgspec.structs.replace(line, reason=f"{line.reason} {_too_few(place, scarce)}")

    def _scarce(self, place: LinePlace) -> dict[Carriage, int]:
        """Number of the uploads that are too few to give the percentile an upper limit. They may
        show that a line fails; else they would make it undecided where the model can tell.
        """
        needed = fewest_samples(place.percentile / 100, self._confidence)
        return {
            carriage: self._uploads[carriage, place.request_bytes].n
            for carriage in place.weights()
            if self._is_uploaded(carriage, place)
            and carriage in self._requests
            and math.floor(self._distribution(carriage, place).n_effective + 1e-9) < needed
        }

    def _of_requests(self, place: LinePlace) -> BudgetLine:
        weights = place.weights()
        parts: dict[Carriage, Distribution] = {
            carriage: self._distribution(carriage, place)
            for carriage in MEASURABLE
            if carriage in weights and carriage in self._requests
        }
        missing = tuple(carriage for carriage in weights if carriage not in parts)
        if not parts:
            return _empty_line(self.path.region, self.path.site, place, self._why(place))
        return self._filled(place, parts, missing)

    def _filled(
        self,
        place: LinePlace,
        parts: dict[Carriage, Distribution],
        missing: tuple[Carriage, ...],
    ) -> BudgetLine:
        weights = place.weights()
        estimate = self._estimate(
            tuple(
                Part(weights[carriage], distribution) for carriage, distribution in parts.items()
            ),
            place.percentile / 100,
            sum(weights[carriage] for carriage in missing),
        )
        one_way = self.one_way if place.direction is not Direction.NETWORK else None
        estimate = _with_clock_error(estimate, one_way)
        losses = sum(distribution.losses for distribution in parts.values())
        verdict, reason = self._judged(place, estimate, losses, parts, missing)
        return BudgetLine(
            **_coordinates(place),
            region=self.path.region,
            site=self.path.site,
            value_ms=milliseconds(estimate.value),
            low_ms=milliseconds(estimate.low),
            high_ms=milliseconds(estimate.high),
            n=estimate.n,
            n_effective=estimate.n_effective,
            losses=losses,
            method=weakest(
                method_of(one[1], place, one_way, uploaded=self._is_uploaded(one, place))
                for one in parts
            ),
            verdict=verdict,
            reason=reason,
            target=self.path.target,
            family=self.path.family,
            round_trips_from=self.path.source if one_way is None else one_way.source,
            upload=self._upload_words(place, parts),
        )

    def _estimate(self, parts: tuple[Part, ...], p: float, missing_weight: float) -> Estimate:
        """The estimate of a mixture; tiers that ask the same share it."""
        asked = tuple((part.weight, id(part.distribution)) for part in parts)
        key = (asked, p, missing_weight)
        if key not in self._estimates:  # the parts are kept, so that no other gets their ids
            made = always_valid_mixture if self._always_valid else mixture_estimate
            estimate = made(parts, p, missing_weight=missing_weight, confidence=self._confidence)
            self._estimates[key] = parts, estimate
        return self._estimates[key][1]

    def _judged(
        self,
        place: LinePlace,
        estimate: Estimate,
        losses: int,
        parts: Iterable[Carriage],
        missing: tuple[Carriage, ...],
    ) -> tuple[Verdict, str]:
        question = Question(
            percentile=place.percentile,
            allowance_ms=place.allowance_ms,
            confidence=self._confidence,
            losses=losses,
            noise_floor_ms=(self.path.noise_floor_ns or 0) / NS_PER_MS,
            missing_modes=tuple(carriage_words(carriage) for carriage in missing),
        )
        verdict, reason = judge(estimate, question)
        over_tcp = any(carrier is Carrier.TLS for carrier, _ in parts)
        if verdict is Verdict.PASS and over_tcp and self.path.refuses_everybody:
            return Verdict.UNDECIDED, _refuses_everybody(self.path)
        if verdict is Verdict.PASS and self._never_passes:
            return Verdict.UNDECIDED, self._never_passes
        return verdict, reason

    def _is_uploaded(self, carriage: Carriage, place: LinePlace) -> bool:
        """Whether requests of this size were sent and timed, so that no model is needed."""
        return (
            place.has_upload
            and carriage not in place.modelled
            and (carriage, place.request_bytes) in self._uploads
        )

    def _upload_words(self, place: LinePlace, parts: Iterable[Carriage]) -> str:
        if not place.has_upload:
            return ""
        found = {self._is_uploaded(carriage, place) for carriage in parts}
        return "both" if len(found) > 1 else "measured" if found == {True} else "modelled"

    def _distribution(self, carriage: Carriage, place: LinePlace) -> Distribution:
        is_uploaded = self._is_uploaded(carriage, place)
        by = place.request_bytes if is_uploaded else place.extra_round_trips
        key = (carriage, place.direction, by, is_uploaded)
        if key not in self._distributions:
            self._distributions[key] = self._made(carriage, place, is_uploaded=is_uploaded)
        return self._distributions[key]

    def _made(self, carriage: Carriage, place: LinePlace, *, is_uploaded: bool) -> Distribution:
        round_trips = self.path.round_trips
        if is_uploaded and round_trips is not None:
            uploads = self._uploads[carriage, place.request_bytes]
            return uploaded(uploads, round_trips, self.one_way, place.direction)
        times = self._requests[carriage]
        return times.distribution(place.direction, place.extra_round_trips)

    def _why(self, place: LinePlace) -> str:
        if self.path.round_trips is None:
            return "no round trip was measured for this pair."
        if place.mode is Mode.MIXTURE:
            return "none of the connection modes of the mixture was measured for this pair."
        words = carriage_words((place.carrier, place.mode))
        return f"no {words} connection was measured for this pair."


def _too_few(place: LinePlace, scarce: Mapping[Carriage, int]) -> str:
    """``Only 2 uploads of 4,000 bytes cold: the model of slow start stands.``"""
    words = [
        f"{n} upload{'' if n == 1 else 's'} of {place.request_bytes:,} bytes "
        f"{carriage_words(carriage)}"
        for carriage, n in scarce.items()
    ]
    return f"Only {' and '.join(words)}: the model of slow start stands."


NAME_NOT_FOUND = "name not found, nothing was sent."


def headline_place(tier: Tier) -> LinePlace:
    """Where the headline line of a tier stands."""
    carrier, mode = headline_carriage(tier)
    percentile = float(tier.percentile)
    return LinePlace(tier, Direction.NETWORK, carrier, mode, percentile, tier.prompt_bytes)


def unmeasured_headline(
    region: str, site: str, tier: Tier, reason: str = "this pair was not measured."
) -> BudgetLine:
    """The headline line of a pair without a sample: no numbers, and why."""
    return _empty_line(region, site, headline_place(tier), reason)


def _coordinates(place: LinePlace) -> dict[str, Any]:
    """What every line says of its own place."""
    return {
        "tier": place.tier.name,
        "direction": place.direction,
        "transport": place.carrier,
        "mode": place.mode,
        "percentile": place.percentile,
        "prompt_bytes": place.prompt_bytes,
        "allowance_ms": place.allowance_ms,
        "headline": place.headline,
    }


def _empty_line(region: str, site: str, place: LinePlace, reason: str) -> BudgetLine:
    return BudgetLine(
        **_coordinates(place),
        region=region,
        site=site,
        value_ms=None,
        low_ms=None,
        high_ms=None,
        n=0,
        n_effective=0.0,
        losses=0,
        method=None,
        verdict=Verdict.NOT_MEASURED,
        reason=NO_ALLOWANCE if place.allowance_ms is None else reason,
    )


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
