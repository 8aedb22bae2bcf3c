"""Uploads beside the model of slow start: how far the model is from what was measured."""

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import beside
from pathbudget.analysis.request_numbers import median_ms, middle, quantile_ms, signed_quantile_ms
from pathbudget.analysis.request_results import UploadSummary
from pathbudget.analysis.setups import LARGEST_REST, SHORTEST_NS
from pathbudget.analysis.slow_start import flights
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import Uploads


def summarise_uploads(
    uploads: Uploads, round_trips: Track | None, confidence: float
) -> UploadSummary:
    """One group of uploads; the model takes the round trip nearest in time to each of them."""
    key, track = uploads.key, uploads.track
    modelled = np.full(track.n, np.nan)
    single = modelled
    if round_trips is not None:
        arrived = np.isfinite(round_trips.values_ns)
        single = beside(
            track,
            Track(
                round_trips.sent_unix_ns[arrived],
                round_trips.values_ns[arrived],
                round_trips.vantages[arrived],
            ),
        )
        modelled = flights(key.bytes) * single
    both = np.isfinite(modelled) & np.isfinite(track.values_ns)
    ratios = track.values_ns[both] / single[both]
    acknowledged = uploads.acknowledged_ns[np.isfinite(uploads.acknowledged_ns)]
    return UploadSummary(
        region=key.region,
        site=key.site,
        target=key.target,
        family=key.family,
        transport=key.carrier,
        mode=key.mode,
        bytes=key.bytes,
        version=key.version,
        n=track.n,
        losses=track.losses,
        measured_p50_ms=quantile_ms(track, 0.5, confidence),
        measured_p95_ms=quantile_ms(track, 0.95, confidence),
        model_p50_ms=median_ms(modelled[both]),
        model_error_ms=signed_quantile_ms((track.values_ns - modelled)[both], 0.5, confidence),
        acknowledged_p50_ms=median_ms(acknowledged),
        flights_model=flights(key.bytes),
        round_trips_measured=_counted(ratios, single[both], middle(uploads.flights)),
        flights_seen=middle(uploads.flights),
        flow_stalls=uploads.flow_stalls,
        retransmitted=uploads.retransmitted,
        refused_status=uploads.refused_status,
    )


def _counted(ratios: Values, round_trips: Values, seen: int | None) -> float | None:
    """Median of uploads in round trips; None where computing takes the time (`setups`)."""
    if not len(ratios) or float(np.median(round_trips)) < SHORTEST_NS:
        return None
    found = float(np.median(ratios))
    return found if seen is None or abs(found - seen) <= LARGEST_REST else None
