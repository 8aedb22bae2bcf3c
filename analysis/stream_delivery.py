"""How evenly streams arrive: stalls, bursts, PDV, play-out, buffering on the way; and which part of
a time to first token is the network's.

Samples of the probes `token_stream` and `completion` in, figures with intervals out. Parts of one
stream are neighbours in time, not independent: intervals are those of the effective size.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.quantiles import (
    Estimate,
    Values,
    estimate_quantile,
    independent_size,
    loss_interval,
)
from pathbudget.probes.record import ClockSource, Flag, Metric, Sample
from pathbudget.probes.stream import buffering
from pathbudget.probes.stream.chunk_times import BURST_GAP_NS, pdv_of

MOST_CHUNKS = 100_000
"""No probe asks for longer streams."""

QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream, from the samples of its shot: gaps, in order, as far as it came."""

    seq: int
    gaps: tuple[buffering.GapPair, ...]
    expected: int
    """Chunks asked for; as many as came, where the probe asks for no number."""
    flagged: int = 0
    """Gaps of low confidence: chunks that came together."""

    @property
    def received(self) -> int:
        """Chunks that came."""
        return len(self.gaps) + 1

    @property
    def pdv_ns(self) -> list[int]:
        """PDV of every chunk against the fastest of this stream (RFC 5481)."""
        return pdv_of([gap.received_ns - gap.sent_ns for gap in self.gaps])


@dataclass(frozen=True, slots=True)
class Delivery:
    """What all streams of a series say together. Times in ns, shares with 95 % intervals."""

    streams: int
    chunks_expected: int
    chunks_received: int
    stalls: int
    stall_share: tuple[float, float, float]
    """Of gaps: value, low, high."""
    burst_index: tuple[float, float, float]
    """Share of gaps under a millisecond: value, low, high."""
    gap_ns: dict[float, Estimate]
    variation_ns: dict[float, Estimate]
    """Of the absolute delivery variation."""
    pdv_ns: dict[float, Estimate]
    playout_buffer_ns: Estimate
    """B: the (1 - under-run rate) quantile of PDV."""
    underrun_rate: float
    verdict: buffering.Verdict
    """Whether something on the way holds chunks back."""
    releases: buffering.Releases
    smoothing_streams: tuple[int, int]
    """Streams that a smoother was seen in, and streams in which one could be seen."""


def streams_of(samples: Iterable[Sample]) -> list[Stream]:
    """The streams among the samples of one measurement, by sequence number."""
    gaps: dict[int, dict[int, Sample]] = defaultdict(dict)
    variations: dict[int, dict[int, Sample]] = defaultdict(dict)
    first: dict[int, Sample] = {}
    for sample in samples:
        if sample.metric == Metric.TTFT:
            first[sample.seq] = sample
        elif sample.part is not None and sample.value_ns is not None:
            if sample.metric == Metric.DELIVERY_GAP:
                gaps[sample.seq][sample.part] = sample
            elif sample.metric == Metric.DELIVERY_VARIATION:
                variations[sample.seq][sample.part] = sample
    begun = {seq for seq, one in first.items() if one.value_ns is not None}
    return [
        _stream(seq, gaps[seq], variations[seq], first.get(seq)) for seq in sorted({*gaps, *begun})
    ]


def _stream(
    seq: int, gaps: dict[int, Sample], variations: dict[int, Sample], first: Sample | None
) -> Stream:
    pairs: list[buffering.GapPair] = []
    for part in sorted(gaps):
        if part != len(pairs) + 1 or part not in variations:
            break  # what is behind a hole does not connect
        pairs.append(_pair(gaps[part], variations[part]))
    notes = (first.notes if first is not None else None) or {}
    expected = _expected(notes.get("chunks_expected"), len(pairs) + 1)
    flagged = sum(Flag.LOW_CONFIDENCE in gaps[part].flags for part in gaps)
    return Stream(seq, tuple(pairs), expected, flagged)


def _expected(note: object, received: int) -> int:
    """How many chunks were asked for; a note that is no such number says nothing."""
    if isinstance(note, bool) or not isinstance(note, int | float):
        return received
    return int(note) if received <= note <= MOST_CHUNKS else received


def _pair(gap: Sample, variation: Sample) -> buffering.GapPair:
    assert gap.value_ns is not None
    assert variation.value_ns is not None
    stamps = gap.stamps
    late_ns: int | None = None
    if stamps is not None and stamps.kernel_received_ns is not None:
        late_ns = (stamps.user_received_ns or 0) - stamps.kernel_received_ns
    if gap.clock_source is ClockSource.USER:
        late_ns = None
    by_kernel = (variation.notes or {}).get("send_clock") == "kernel"
    return buffering.GapPair(gap.value_ns, gap.value_ns - variation.value_ns, late_ns, by_kernel)


def evaluate_delivery(
    streams: Sequence[Stream],
    *,
    interval_ns: int,
    buffer_ns: int,
    underrun_rate: float = 0.01,
    path_variation_ns: int = 0,
) -> Delivery | None:
    """All streams of one series; None where no stream has a gap.

    A stall is a gap longer than `interval_ns` + `buffer_ns`. `path_variation_ns` is what the path
    itself may hold a packet for, where that was measured (PDV of round trips): buffering is then
    only what holds longer.
    """
    kept = [stream for stream in streams if stream.gaps]
    if not kept:
        return None
    gaps = _joined([gap.received_ns for gap in stream.gaps] for stream in kept)
    sent = _joined([gap.sent_ns for gap in stream.gaps] for stream in kept)
    pdv = _joined(stream.pdv_ns for stream in kept)
    worth = max(1.0, sum(independent_size(_joined([one.pdv_ns])) for one in kept))
    stalled = gaps > interval_ns + buffer_ns
    releases = sum(
        (buffering.releases_in(one.gaps, path_variation_ns) for one in kept), buffering.Releases()
    )
    smoothed = [buffering.smoothing_in(one.gaps).verdict for one in kept]
    seen = smoothed.count(buffering.Verdict.SMOOTHS)
    tested = len(kept) - smoothed.count(buffering.Verdict.UNDECIDED)
    return Delivery(
        streams=len(streams),
        chunks_expected=sum(stream.expected for stream in streams),
        chunks_received=sum(stream.received for stream in streams),
        stalls=int(stalled.sum()),
        stall_share=_share(stalled),
        burst_index=_share(gaps < BURST_GAP_NS),
        gap_ns=_estimates(gaps, independent_size(gaps)),
        variation_ns=_estimates(np.abs(gaps - sent), independent_size(np.abs(gaps - sent))),
        pdv_ns=_estimates(pdv, worth),
        playout_buffer_ns=estimate_quantile(np.sort(pdv), 1 - underrun_rate, n_effective=worth),
        underrun_rate=underrun_rate,
        verdict=_verdict(releases, seen, tested),
        releases=releases,
        smoothing_streams=(seen, tested),
    )


def _verdict(releases: buffering.Releases, seen: int, tested: int) -> buffering.Verdict:
    """Of all streams together: each test was allowed `ALARM` once per stream."""
    if releases.verdict is buffering.Verdict.BURSTS:
        return buffering.Verdict.BURSTS
    chance = buffering.at_least(seen, tested, buffering.ALARM)
    if seen and chance <= buffering.ALARM and 2 * seen >= tested:
        return buffering.Verdict.SMOOTHS
    return releases.verdict


def _joined(parts: Iterable[Sequence[int]]) -> Values:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def _estimates(values: Values, worth: float) -> dict[float, Estimate]:
    ordered = np.sort(values)
    return {p: estimate_quantile(ordered, p, n_effective=worth) for p in QUANTILES}


def _share(holds: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> tuple[float, float, float]:
    """Share with the Clopper-Pearson interval of the effective size: stalls come in clusters."""
    share = float(holds.mean())
    worth = max(1, round(independent_size(holds.astype(np.float64))))
    low, high = loss_interval(round(share * worth), worth)
    return share, min(low, share), max(high, share)


# Which part of a time to first token is the network's


@dataclass(frozen=True, slots=True)
class ServerTime:
    """What one request waited for the server: its TTFT less one round trip paired with it.

    The round trip lay between the shortest and the longest of those measured near it in time.
    """

    at_unix_ns: int
    ttft_ns: int
    low_ns: int
    high_ns: int
    round_trips: int


def server_times(
    ttfts: Iterable[Sample], round_trips: Iterable[Sample], *, window_ns: int = 5_000_000_000
) -> list[ServerTime]:
    """Each request paired with the round trips measured up to `window_ns` before or after it.

    One without any is left out. Lost probes and those of retransmitted SYNs are no round trips.
    """
    known = sorted(
        (one.sent_unix_ns, one.value_ns)
        for one in round_trips
        if one.value_ns is not None and Flag.SYN_RETRANSMITTED not in one.flags
    )
    times = np.asarray([time for time, _ in known], dtype=np.int64)
    values = np.asarray([value for _, value in known], dtype=np.int64)
    found: list[ServerTime] = []
    for one in sorted(ttfts, key=lambda sample: sample.sent_unix_ns):
        if one.value_ns is None:
            continue
        first = int(np.searchsorted(times, one.sent_unix_ns - window_ns, side="left"))
        last = int(np.searchsorted(times, one.sent_unix_ns + window_ns, side="right"))
        if last > first:
            near = values[first:last]
            low, high = one.value_ns - int(near.max()), one.value_ns - int(near.min())
            found.append(ServerTime(one.sent_unix_ns, one.value_ns, low, high, last - first))
    return found


def server_quantile(ttfts: Values, round_trips: Values, p: float) -> tuple[float, float]:
    """Between which values quantile `p` of the server's part lies, whatever the dependence between
    server and network: bounds of a difference by its two distributions (Makarov 1981; Williamson
    and Downs 1990). Losses and deadlines are ``+inf`` among `ttfts`.

    No mean is taken off anything: a wide distribution of round trips makes wide bounds, and that is
    all that can be said without pairs. Both distributions are taken as they were sampled: the error
    of sampling is not in the bounds. Round trips are finite; raises ValueError for no samples.
    """
    if not len(ttfts) or not len(round_trips):
        raise ValueError("no samples, no quantile")
    wait, trip = np.sort(ttfts), np.sort(round_trips)
    # P(S < t - r) <= P(T < t) + P(R > r), and P(S <= t - r) >= P(T <= t) + P(R >= r) - 1.
    steps = [p, *np.linspace(0.0, 1.0, 1 + 2 * min(max(len(wait), len(trip)), 2_048))]
    lows = [_quantile(wait, u) - _quantile(trip, 1 - p + u) for u in steps if 0 < u <= p]
    highs = [
        _quantile(wait, p + v) - _quantile_above(trip, v) for v in (0.0, *steps) if 0 <= v <= 1 - p
    ]
    return max(lows), min(highs)


def _quantile(ordered: Values, u: float) -> float:
    """Smallest x with F(x) >= u."""
    rank = math.ceil(u * len(ordered) - 1e-9)
    return float(ordered[min(len(ordered), max(1, rank)) - 1])


def _quantile_above(ordered: Values, u: float) -> float:
    """Smallest x with F(x) > u, the largest value where there is none."""
    rank = math.floor(u * len(ordered) + 1e-9)
    return float(ordered[min(len(ordered) - 1, rank)])
