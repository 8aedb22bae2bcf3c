"""Measurements side by side, as they happened: a monitor must not see one to its end before others.

Each is cut into slices of time; the slices of all of them come in order. Memory holds measurements
that overlap.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pathbudget.agents.routes.tail import TRACE
from pathbudget.probes.record import Measurement, Sample


class Piece(NamedTuple):
    """The samples of one slice; `until_unix_ns` is its end."""

    until_unix_ns: int
    measurement: Measurement


class _Cut(NamedTuple):
    """Order in the heap: by time, then by arrival."""

    until_unix_ns: int
    number: int
    measurement: Measurement
    samples: Sequence[Sample]
    rest: Iterator[tuple[int, list[Sample]]]

    @property
    def piece(self) -> Piece:
        samples = tuple(self.samples)
        return Piece(self.until_unix_ns, msgspec.structs.replace(self.measurement, samples=samples))


def in_order_of_time(measurements: Iterable[Measurement], slice_ns: int) -> Iterator[Piece]:
    """Slices of `measurements`, which come in the order in which they began.

    A trace is in the slice in which its last packet left, whole.
    """
    heap: list[_Cut] = []
    for number, one in enumerate(measurements):
        first = min((sample.sent_unix_ns for sample in one.samples), default=0)
        while heap and heap[0].until_unix_ns <= first:
            yield _next(heap)
        _push(heap, number, one, _slices(one, slice_ns))
    while heap:
        yield _next(heap)


def _next(heap: list[_Cut]) -> Piece:
    cut = heapq.heappop(heap)
    _push(heap, cut.number, cut.measurement, cut.rest)
    return cut.piece


def _push(
    heap: list[_Cut],
    number: int,
    measurement: Measurement,
    slices: Iterator[tuple[int, list[Sample]]],
) -> None:
    found = next(slices, None)
    if found is not None:
        heapq.heappush(heap, _Cut(found[0], number, measurement, found[1], slices))


def _slices(one: Measurement, slice_ns: int) -> Iterator[tuple[int, list[Sample]]]:
    """Samples by slice, in order; empty slices are none."""
    slices: dict[int, list[Sample]] = {}
    ends: dict[int, int] = {}
    if one.probe == TRACE:
        for sample in one.samples:
            ends[sample.seq] = max(sample.sent_unix_ns, ends.get(sample.seq, 0))
    for sample in one.samples:
        at = ends.get(sample.seq, sample.sent_unix_ns)
        slices.setdefault(at // slice_ns, []).append(sample)
    for number in sorted(slices):
        yield (number + 1) * slice_ns, slices[number]
