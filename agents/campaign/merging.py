"""Many ascending streams of times into one, for tens of thousands of streams and for months.

A heap (or `heapq.merge`) touches for every shot a stream that has long left the processor's cache:
that costs more than its arithmetic. So each stream is asked for a few times at once, these go into
windows of time, and a window is sorted when its turn comes. What is kept is bounded by the number
of streams, not by how long it runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, islice

Shot = tuple[int, int, int]
"""Time (ns), number of the stream, number in that stream: their order is that of the tuples."""

AHEAD = 8
"""Times drawn from a stream at once."""
PER_WINDOW = 8
"""Shots that a window holds on average: what is sorted, and drawn anew, in one go. More would be
faster on the whole, but each window makes a send wait."""


def merge(streams: Sequence[Iterator[int]], mean_gap_ns: float) -> Iterator[Shot]:
    """Everything that `streams` yield, in order of time, then of stream.

    `mean_gap_ns` is the expected time between two shots of all streams together; it decides on the
    speed, never on the order. Each stream must ascend.
    """
    width = max(1, int(mean_gap_ns * PER_WINDOW))
    windows: defaultdict[int, list[Shot]] = defaultdict(list)

    def draw(stream: int, number: int) -> None:
        for shot_number, time in enumerate(islice(streams[stream], AHEAD), number):
            windows[time // width].append((time, stream, shot_number))

    for stream in range(len(streams)):
        draw(stream, 0)
    for window in count():
        if not windows:
            return
        shots = windows.get(window)
        if shots is None:
            continue
        # The last of each batch draws the next one, perhaps into this very window: the list grows
        # under the loop until the streams are ahead of it.
        for _, stream, number in shots:
            if number % AHEAD == AHEAD - 1:
                draw(stream, number + 1)
        del windows[window]
        shots.sort()
        yield from shots
