"""What pairs of series, or single durations, tell: latency under load, and timers of stacks."""

from collections.abc import Iterable, Mapping

import numpy as np

from pathbudget.analysis.quantiles import empirical_quantile
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.stream_results import Bounded, TimerInfo, UnderLoad
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.timer_artefacts import timer_artefacts
from pathbudget.analysis.under_load import added_by_load
from pathbudget.probes.record import Metric

PERCENTILES = (50.0, 95.0)

WITH_TIMERS = frozenset(
    {Metric.RTT, Metric.CONNECT, Metric.ECHO, Metric.TLS_HANDSHAKE, Metric.SETUP}
)


def under_load(series: Mapping[SeriesKey, Series], confidence: float) -> tuple[UnderLoad, ...]:
    """Every loaded series that has an idle one beside it."""
    return tuple(
        _difference(idle, loaded, percentile, confidence)
        for key, loaded in series.items()
        if key.loaded and (idle := series.get(key._replace(loaded=False))) is not None
        for percentile in PERCENTILES
    )


def _difference(idle: Series, loaded: Series, percentile: float, confidence: float) -> UnderLoad:
    p = percentile / 100
    added = added_by_load(idle.track.values_ns, loaded.track.values_ns, p, confidence)
    assert added is not None  # a series has at least one sample
    before, after = (
        milliseconds(empirical_quantile(np.sort(one.track.values_ns), p)) for one in (idle, loaded)
    )
    key = idle.key
    return UnderLoad(
        region=key.region,
        site=key.site,
        target=key.target,
        probe=key.probe,
        metric=key.metric,
        family=key.family,
        percentile=percentile,
        idle_n=idle.track.n,
        loaded_n=loaded.track.n,
        idle_ms=before,
        loaded_ms=after,
        added_ms=Bounded(
            value_ms=milliseconds(added.value),
            low_ms=milliseconds(added.low),
            high_ms=milliseconds(added.high),
        ),
    )


def series_timers(series: Iterable[Series]) -> tuple[TimerInfo, ...]:
    """Timers that show in the durations of idle series."""
    return tuple(
        TimerInfo(
            region=one.key.region,
            site=one.key.site,
            target=one.key.target,
            probe=one.key.probe,
            metric=one.key.metric,
            timer_ms=artefact.timer_ms,
            words=artefact.words,
            n=artefact.n,
            of=artefact.of,
        )
        for one in series
        if not one.key.loaded and one.key.metric in WITH_TIMERS
        for artefact in timer_artefacts(one.track.values_ns)
    )
