"""One-way times for the budget: what is measured of a direction, on top of what is not known.

    forward_i = constant + path changes so far + PDV_forward_i

The constant part is half of the shortest possible round trip (the shortest way there plus the
shortest way back), or what synchronised clocks say, with the error that they state.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.directions import Directions
from pathbudget.analysis.one_way import one_way_delays
from pathbudget.analysis.packets import LOST_FORWARD, LOST_REVERSE, Stream
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.stream_ways import is_stepped
from pathbudget.analysis.track import Track, merged


@dataclass(frozen=True, slots=True)
class OneWayTracks:
    """Both directions of one path, ns. A packet lost the other way is in neither."""

    forward: Track
    reverse: Track
    error_ns: float | None
    """Error of the constant part where clocks that agree give it; None for an even split."""
    source: str
    """The probes that measured it."""


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """An idle stream with transit times both ways, and the number of its vantage."""

    stream: Stream
    directions: Directions
    vantage: int


def one_way_tracks(path: PathSeries, streams: Iterable[MeasuredStream]) -> OneWayTracks | None:
    """Directions for a path: of its own target, else of a reflector at the same site.

    None where no reflector answered, or where one vantage of the path did not measure to it: its
    requests would be missing.
    """
    of_family = [one for one in streams if one.stream.key.family == path.family]
    own = [one for one in of_family if one.stream.key.target == path.target]
    chosen = _undisturbed(own or of_family)
    if not chosen or path.round_trips is None:
        return None
    if not set(path.round_trips.vantages) <= {one.vantage for one in chosen}:
        return None
    return _tracks(path, chosen, own=bool(own))


def _undisturbed(streams: Sequence[MeasuredStream]) -> list[MeasuredStream]:
    """Single packets where there are any: a train makes a queue of its own."""
    single = [one for one in streams if one.stream.key.train == 1]
    return single or list(streams)


def _tracks(
    path: PathSeries, streams: Sequence[MeasuredStream], *, own: bool
) -> OneWayTracks | None:
    constants = [_constants(one, path, own=own) for one in streams]
    errors = [error for _, _, error in constants]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):  # not all clocks agree: split all of them alike
        constants = [_constants(one, path, own=own, clocks=False) for one in streams]
    forward, reverse = [], []
    for one, (there, back, _) in zip(streams, constants, strict=True):
        level_there, level_back = one.directions.levels_ns()
        forward.append(
            _track(one, there + level_there + one.directions.forward.delays_ns, LOST_REVERSE)
        )
        reverse.append(
            _track(one, back + level_back + one.directions.reverse.delays_ns, LOST_FORWARD)
        )
    return OneWayTracks(
        forward=merged(forward),
        reverse=merged(reverse),
        error_ns=max(known) if len(known) == len(errors) else None,
        source=" and ".join(sorted({one.stream.key.probe for one in streams})),
    )


def _constants(
    one: MeasuredStream, path: PathSeries, *, own: bool, clocks: bool = True
) -> tuple[float, float, float | None]:
    """Constant part there and back, and its error where clocks give it."""
    stream, directions = one.stream, one.directions
    nearest = _nearest(stream)
    there, back = (v.delays_ns[nearest] for v in (directions.forward, directions.reverse))
    there, back = float(np.nan_to_num(there)), float(np.nan_to_num(back))
    delays = one_way_delays(stream, stepped=is_stepped(stream, directions))
    if own and clocks and delays is not None and delays.forward.is_known:
        low, high = delays.forward.low_ns, delays.forward.high_ns
        if high - low < float(stream.round_trips_ns[nearest]):
            middle = (low + high) / 2
            rest = float(stream.round_trips_ns[nearest]) - middle
            return middle - there, rest - back, (high - low) / 2
    shortest = float(stream.round_trips_ns[nearest]) - there - back
    if not own and path.round_trips is not None:
        shortest = float(np.min(path.round_trips.values_ns))
    return shortest / 2, shortest / 2, None


def _nearest(stream: Stream) -> int:
    """The packet with the shortest round trip and both transit times."""
    timed = np.flatnonzero(stream.timed)
    return int(timed[np.argmin(stream.round_trips_ns[timed])])


def _track(one: MeasuredStream, values: Values, other_way: int) -> Track:
    """Packets that went this way: those lost the other way say nothing of it."""
    stream = one.stream
    kept = ~np.isnan(values) & ((stream.marks & other_way) == 0)
    vantages = np.full(int(np.count_nonzero(kept)), one.vantage, dtype=np.int64)
    return Track(stream.sent_unix_ns[kept], values[kept], vantages)
