"""The network's two terms of a request, request by request, for one (region, site).

They are the very requests of the budget lines: in + out of each is what the line of the tier's
connection mode and prompt is made of, so the whole budget and the line can never disagree. What a
what-if changes is in `NetworkChange`; everything else is replayed as it was measured.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.line_place import carriage_words, headline_carriage, mixture_weights
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Values, fewest_samples
from pathbudget.analysis.request import KEPT_OPEN, beside, distribution_of, request_times
from pathbudget.analysis.results import Carriage, Carrier, Mode
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.slow_start import extra_round_trips
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import Uploads, of_path
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource
from pathbudget.sites.catalogue import Tier

MIXED = 20_000
"""Requests that stand for a mixture of connection modes: shares are exact to 1 in so many."""

SETUP_FLIGHTS = {Carrier.TLS: 2, Carrier.QUIC: 1}
"""Round trips of a new connection before its request leaves; early data saves one."""


@dataclass(frozen=True, slots=True)
class Near:
    """A point of presence near the user ends connections and keeps warm ones to the site."""

    round_trips: Track | float
    """To the point of presence, in ns: measured, or one number for all."""
    added_ns: float = 0.0
    """What it takes to pass a request on, and its answer back."""


@dataclass(frozen=True, slots=True)
class NetworkChange:
    """What a what-if changes of the network; nothing by default."""

    weights: Mapping[Carriage, float] | None = None
    prompt_bytes: int | None = None
    near: Near | None = None

    @property
    def is_change(self) -> bool:
        """Whether anything is changed at all."""
        return self != NetworkChange()


@dataclass(frozen=True, slots=True)
class NetworkTerms:
    """Both ways of the same requests, and what is to be said of them."""

    incoming: Term
    outgoing: Term
    missing: tuple[str, ...] = ()
    """Connection modes of the mixture that nobody measured: their requests are failures here."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests of one connection mode in order of time: both ways, ns."""

    incoming: Values
    outgoing: Values
    worth: float
    track: Track | None = None
    """Their sums in order of time; None for a mixture, which has no order."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class NetworkSource:
    """What was measured between a region and a site: enough to make its requests again."""

    path: PathSeries
    one_way: OneWayTracks | None = None
    uploads: tuple[Uploads, ...] = field(default=(), repr=False)

    def terms(
        self, tier: Tier, confidence: float = 0.95, change: NetworkChange | None = None
    ) -> NetworkTerms | None:
        """Network in and out of the tier's own requests; None where none was measured."""
        change = change or NetworkChange()
        weights = self.weights(tier, change)
        size = change.prompt_bytes or tier.prompt_bytes
        found = {
            carriage: requests
            for carriage in weights
            if (requests := self._requests(carriage, size, tier, confidence, change.near))
        }
        if not found:
            return None
        missing = {one: weights[one] for one in weights if one not in found}
        requests = _mixed(found, weights, sum(missing.values()))
        source = TermSource.MODEL if change.is_change else TermSource.MEASURED
        notes = tuple(dict.fromkeys(one.note for one in found.values() if one.note))
        return _as_terms(self.path, requests, source, [*missing], notes)

    def weights(self, tier: Tier, change: NetworkChange | None = None) -> Mapping[Carriage, float]:
        """Share of each transport and connection mode: the tier's, or what it is changed to."""
        asked = None if change is None else change.weights
        if asked is not None:
            return asked
        mixture = Mode(tier.mode) is Mode.MIXTURE
        return mixture_weights(tier) if mixture else {headline_carriage(tier): 1.0}

    def _requests(
        self, carriage: Carriage, size: int, tier: Tier, confidence: float, near: Near | None
    ) -> _Requests | None:
        times = request_times(self.path, carriage, self.one_way)
        if times is None:
            return None
        note = ""
        if near is None:
            uploaded, note = self._uploaded(carriage, size, tier, confidence)
            if uploaded is not None:
                return uploaded
        trips, extra = times.round_trips, extra_round_trips(size)
        if near is None:
            total = times.setup_ns + (1 + extra) * trips.values_ns
        else:
            total = _over(near, carriage, times.setup_ns, trips, extra)
        outgoing = beside(trips, self._way_back()) if self.one_way else trips.values_ns / 2
        return _split(Track(trips.sent_unix_ns, total, trips.vantages), outgoing, note)

    def _uploaded(
        self, carriage: Carriage, size: int, tier: Tier, confidence: float
    ) -> tuple[_Requests | None, str]:
        """Uploads of that size that were sent and timed, unless they are too few to tell.

        As for budget lines: too few still show that the allowance is broken.
        """
        uploads = of_path(self.uploads, self.path.target, self.path.family).get((carriage, size))
        if uploads is None or self.path.round_trips is None:
            return None, ""
        total = uploads.with_setup
        made = distribution_of(total)
        p = tier.percentile / 100
        if math.floor(made.n_effective + 1e-9) < fewest_samples(p, confidence):
            low = made.estimate(p, confidence).low
            if low <= tier.network_allowance_ms * NS_PER_MS:
                words = f"{uploads.n} uploads of {size:,} bytes {carriage_words(carriage)}"
                return None, f"Only {words}: the model of slow start stands."
        return _split(total, beside(total, self._way_back()), ""), ""

    def _way_back(self) -> Track:
        """How long answers take, without those that a lost packet says nothing of."""
        track = self.path.round_trips if self.one_way is None else self.one_way.reverse
        assert track is not None  # where there are requests there are round trips
        arrived = np.isfinite(track.values_ns)
        values = track.values_ns[arrived] / (2 if self.one_way is None else 1)
        return Track(track.sent_unix_ns[arrived], values, track.vantages[arrived])


def _over(near: Near, carriage: Carriage, setup: Values, trips: Track, extra: int) -> Values:
    """Requests that end at a point of presence on the way.

    Its flights of set-up and of slow start are of the short leg, its computing is as measured; the
    long leg is crossed once by a warm connection whose window is open. Failures stay failures.
    """
    carrier, mode = carriage
    short = (
        np.full(trips.n, near.round_trips)
        if not isinstance(near.round_trips, Track)
        else beside(trips, _arrived(near.round_trips))
    )
    short = np.minimum(np.where(np.isnan(short), np.inf, short), trips.values_ns)
    flights = 0 if mode in KEPT_OPEN else SETUP_FLIGHTS[carrier] - (mode is Mode.EARLY_DATA)
    with np.errstate(invalid="ignore"):
        computing = np.maximum(0.0, setup - flights * trips.values_ns)
        total: Values = computing + flights * short + trips.values_ns + extra * short
    total += near.added_ns
    return np.where(np.isfinite(setup + trips.values_ns), total, np.inf)


def _arrived(track: Track) -> Track:
    answered = np.isfinite(track.values_ns)
    return Track(track.sent_unix_ns[answered], track.values_ns[answered], track.vantages[answered])


def _split(total: Track, outgoing: Values, note: str) -> _Requests | None:
    """In and out of each request; a failed one failed both ways. None for no known request."""
    known = ~np.isnan(total.values_ns) & ~np.isnan(outgoing)
    if not known.any():
        return None
    values, back = total.values_ns[known], outgoing[known]
    failed = np.isinf(values) | np.isinf(back)
    back = np.where(failed, np.inf, back)
    incoming = np.where(failed, np.inf, values - np.where(failed, 0.0, back))
    kept = Track(total.sent_unix_ns[known], incoming + back, total.vantages[known])
    return _Requests(incoming, back, distribution_of(kept).n_effective, kept, note)


def _mixed(
    found: Mapping[Carriage, _Requests], weights: Mapping[Carriage, float], missing: float
) -> _Requests:
    """One set of requests for all modes, each in its share; those of a missing mode fail.

    Each mode gives its requests evenly spread over its own distribution. They are worth the least
    n_m / w_m: sum w_m^2 F_m (1 - F_m) / n_m <= max(w_m / n_m) F (1 - F), F being concave.
    """
    if len(found) == 1 and missing <= 0:
        return next(iter(found.values()))
    total = sum(weights.values())
    incoming, outgoing = [], []
    for carriage, requests in found.items():
        spread = _spread(requests, round(MIXED * weights[carriage] / total))
        incoming.append(requests.incoming[spread])
        outgoing.append(requests.outgoing[spread])
    lost = np.full(round(MIXED * missing / total), np.inf)
    worth = min(one.worth * total / weights[key] for key, one in found.items() if weights[key])
    everything = np.concatenate([*incoming, lost])
    return _Requests(
        everything,
        np.concatenate([*outgoing, lost]),
        min(worth, len(everything)),
    )


def _spread(requests: _Requests, count: int) -> npt.NDArray[np.int64]:
    """So many requests, evenly spread over the distribution of their sums, rounded up."""
    order = np.argsort(requests.incoming + requests.outgoing, kind="stable")
    ranks = np.ceil(np.arange(1, count + 1) / max(1, count) * len(order) - 1e-9).astype(np.int64)
    return order[np.clip(ranks, 1, len(order)) - 1]


@functools.lru_cache(maxsize=4)
def _ids(count: int) -> tuple[str, ...]:
    """Names of so many requests; one tuple for all pairs with as many."""
    return tuple(f"network:{i}" for i in range(count))


def _as_terms(
    path: PathSeries,
    requests: _Requests,
    source: TermSource,
    missing: list[Carriage],
    notes: tuple[str, ...],
) -> NetworkTerms:
    ids = _ids(len(requests.incoming))
    origin = f"{path.source}, {path.target}" if path.source else path.target

    def term(name: TermName, values: Values) -> Term:
        return Term(
            name=name,
            source=source,
            values_ns=values,
            n_effective=requests.worth,
            requests=ids,
            origin=origin,
            track=requests.track,
        )

    return NetworkTerms(
        incoming=term(TermName.NETWORK_IN, requests.incoming),
        outgoing=term(TermName.NETWORK_OUT, requests.outgoing),
        missing=tuple(carriage_words(carriage) for carriage in missing),
        notes=notes,
    )
