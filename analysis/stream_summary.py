"""One stream of packets as a result: everything that needs packets in their order."""

import numpy as np

from pathbudget.analysis.clock_fit import Cut
from pathbudget.analysis.directions import (
    Directions,
    Variation,
    directions_of,
    round_trip_variation,
)
from pathbudget.analysis.flows import FlowSpread, stream_flow_spread
from pathbudget.analysis.level_segments import BLOCK_PACKETS, MOST_BLOCKS
from pathbudget.analysis.loss_patterns import loss_episodes, loss_pattern
from pathbudget.analysis.outage_rule import consecutive_losses
from pathbudget.analysis.outages import Outage, find_outages, usual_loss_ratio
from pathbudget.analysis.packets import DUPLICATED, HOST_BUSY, LOST_FORWARD, LOST_REVERSE, Stream
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.stream_results import (
    Bounded,
    ClockPair,
    ClockStep,
    FlowInfo,
    FlowSpreadInfo,
    LossPatterns,
    OutageInfo,
    Outages,
    PathChange,
    StreamSummary,
    TrainInfo,
    TrainPositionInfo,
    Way,
)
from pathbudget.analysis.stream_ways import bounded, ways_of
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.trains import Trains, trains_of

PPM = 1e6


def summarise_stream(
    stream: Stream, confidence: float = 0.95, directions: Directions | None = None
) -> StreamSummary:
    """Everything of one stream. `directions`, where the caller has made them already."""
    directions = directions or directions_of(stream, confidence)
    round_trip, cuts = round_trip_variation(stream) or (None, ())
    key = stream.key
    floor = stream.noise_floor_ns
    copies = stream.counters["duplicate"]
    duplicated = stream.marked(DUPLICATED)
    return StreamSummary(
        region=key.region,
        site=key.site,
        target=key.target,
        address=key.address,
        probe=key.probe,
        family=key.family,
        vantage=key.vantage,
        options=key.options,
        loaded=key.loaded,
        started_unix_ns=int(stream.sent_unix_ns[0]),
        ended_unix_ns=int(stream.sent_unix_ns[-1]),
        sent=stream.n,
        lost=int(np.count_nonzero(stream.lost)),
        duplicated=duplicated,
        duplicate_copies=max(copies, duplicated),
        host_busy=stream.marked(HOST_BUSY),
        noise_floor_ms=None if floor is None else floor / NS_PER_MS,
        stateless_reflector=stream.counters["stateless_reflector"] > 0,
        ways=ways_of(stream, directions, round_trip, confidence),
        clock_pair=None if directions is None else _clock_pair(stream, directions),
        path_changes=_path_changes(stream, directions, cuts),
        loss_patterns=_loss_patterns(stream),
        outages=_outages(stream),
        flow_spreads=_flow_spreads(stream, directions, confidence),
        trains=_trains(stream, directions, round_trip, confidence),
    )


def _clock_pair(stream: Stream, directions: Directions) -> ClockPair:
    longest = max(directions.fit.pieces, key=lambda piece: piece.end - piece.first)
    low, high = longest.skew - longest.skew_error, longest.skew + longest.skew_error
    return ClockPair(
        skew_ppm=longest.skew * PPM,
        skew_low_ppm=low * PPM,
        skew_high_ppm=high * PPM,
        steps=tuple(
            ClockStep(
                at_unix_ns=int(stream.sent_unix_ns[step.at]),
                step_ms=step.step_ns / NS_PER_MS,
                error_ms=step.error_ns / NS_PER_MS,
            )
            for step in directions.steps
        ),
    )


def _path_changes(
    stream: Stream, directions: Directions | None, cuts: tuple[Cut, ...]
) -> tuple[PathChange, ...]:
    """By direction where that is known, else those of the round trip.

    Another level on other flows is none: equal-cost paths may differ as much.
    """
    known = directions is not None
    changes = directions.path_changes if directions is not None else cuts
    return tuple(
        PathChange(
            at_unix_ns=int(stream.sent_unix_ns[cut.at]),
            forward_ms=cut.forward_ns / NS_PER_MS if known else None,
            reverse_ms=cut.reverse_ns / NS_PER_MS if known else None,
            round_trip_ms=(cut.forward_ns + cut.reverse_ns) / NS_PER_MS,
            error_ms=cut.error_ns / NS_PER_MS,
        )
        for cut in changes
        if cut.is_path_change and _keeps_its_flows(stream, cut.at)
    )


def _keeps_its_flows(stream: Stream, at: int) -> bool:
    """Whether the packets on both sides of a cut are mostly of the same set of flows.

    A cut lies in a block of packets, not between two of them.
    """
    block = max(BLOCK_PACKETS, stream.n // MOST_BLOCKS)
    flow_sets = stream.flow_sets[stream.runs]
    before, after = flow_sets[max(0, at - block) : at], flow_sets[at : at + block]
    return bool(np.isin(before, after).mean() >= 0.5 and np.isin(after, before).mean() >= 0.5)


def _loss_patterns(stream: Stream) -> LossPatterns:
    pattern = loss_pattern(stream.lost, stream.tmax_ns)
    episodes = loss_episodes(stream.lost)
    lengths = pattern.period_lengths
    return LossPatterns(
        tmax_ms=None if pattern.tmax_ns is None else pattern.tmax_ns / NS_PER_MS,
        loss_distance_median=float(np.median(pattern.distances)) if pattern.distances else None,
        loss_periods=len(lengths),
        loss_period_mean_packets=sum(lengths) / len(lengths) if lengths else None,
        loss_period_longest_packets=max(lengths, default=0),
        loss_episode_frequency=episodes.frequency,
        loss_episode_mean_packets=episodes.mean_duration_pairs,
    )


def _outages(stream: Stream) -> Outages:
    ratio = usual_loss_ratio(stream.lost)
    rule = consecutive_losses(ratio)
    found = find_outages(stream.sent_unix_ns, stream.lost, rule)
    return Outages(
        consecutive_losses=rule,
        false_alarms_expected=stream.n * ratio**rule,
        outages=tuple(_outage(outage) for outage in found),
    )


def _outage(outage: Outage) -> OutageInfo:
    longest = outage.longest_ns
    return OutageInfo(
        began_after_unix_ns=outage.last_good_ns,
        began_by_unix_ns=outage.first_lost_ns,
        ended_after_unix_ns=outage.last_lost_ns,
        ended_by_unix_ns=outage.first_good_ns,
        lost=outage.lost,
        shortest_ms=outage.shortest_ns / NS_PER_MS,
        longest_ms=None if longest is None else longest / NS_PER_MS,
    )


def _flow_spreads(
    stream: Stream, directions: Directions | None, confidence: float
) -> tuple[FlowSpreadInfo, ...]:
    """Of the round trip; and of each way, whose clocks are the same for all flows."""
    delays = {Way.ROUND_TRIP: stream.round_trips_ns}
    if directions is not None:
        delays |= _each_way(stream, directions)
    finest = float(stream.noise_floor_ns or 0)
    spreads = {
        way: stream_flow_spread(stream, values, confidence, finest)
        for way, values in delays.items()
    }
    return tuple(_spread(way, spread) for way, spread in spreads.items() if spread is not None)


def _each_way(stream: Stream, directions: Directions) -> dict[Way, Values]:
    """Delays of each way. A packet lost the other way says nothing of it; one that nobody can
    place may have been lost this way.
    """
    ways = (
        (Way.FORWARD, directions.forward, LOST_REVERSE),
        (Way.REVERSE, directions.reverse, LOST_FORWARD),
    )
    return {
        way: np.where(stream.marks & elsewhere, np.nan, variation.delays_ns)
        for way, variation, elsewhere in ways
    }


def _spread(way: Way, spread: FlowSpread) -> FlowSpreadInfo:
    low, value, high = (milliseconds(x) for x in (spread.low_ns, spread.value_ns, spread.high_ns))
    return FlowSpreadInfo(
        way=way,
        ecmp_spread_ms=Bounded(value_ms=value, low_ms=low, high_ms=high),
        decided=spread.is_seen,
        may_miss_paths=spread.may_miss_paths,
        flows=tuple(
            FlowInfo(
                flow=flow.flow,
                n=flow.n,
                lost=flow.lost,
                minimum_ms=milliseconds(flow.minimum_ns),
                median_ms=Bounded(
                    value_ms=milliseconds(flow.median_ns),
                    low_ms=milliseconds(flow.low_ns),
                    high_ms=milliseconds(flow.high_ns),
                ),
            )
            for flow in spread.flows
        ),
    )


def _trains(
    stream: Stream,
    directions: Directions | None,
    round_trip: Variation | None,
    confidence: float,
) -> tuple[TrainInfo, ...]:
    """By direction where that is known, else of the round trip."""
    delays: dict[Way, Values] = {}
    if directions is not None:
        delays = _each_way(stream, directions)
    elif round_trip is not None:
        delays = {Way.ROUND_TRIP: round_trip.delays_ns}
    found = {way: trains_of(stream, values, confidence) for way, values in delays.items()}
    return tuple(_train(way, trains) for way, trains in found.items() if trains is not None)


def _train(way: Way, trains: Trains) -> TrainInfo:
    return TrainInfo(
        way=way,
        length=trains.length,
        trains=trains.trains,
        growth_p95_ms=bounded(trains.growth),
        dispersion_p50_ms=bounded(trains.dispersion),
        positions=tuple(
            TrainPositionInfo(
                position=place.position,
                sent=place.sent,
                lost=place.lost,
                growth_p50_ms=bounded(place.growth),
            )
            for place in trains.positions
        ),
    )
