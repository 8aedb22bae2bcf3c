"""Unions and differences of stretches of time, in ns. A stretch is (begin, end), end excluded."""

from collections.abc import Iterable, Sequence

Stretch = tuple[int, int]


def united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time without overlaps, in order; empty stretches are gone."""
    merged: list[Stretch] = []
    for begin, end in sorted(stretches):
        if end <= begin:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def length(stretches: Iterable[Stretch]) -> int:
    """How long all of them are together; time that several share counts once."""
    return sum(end - begin for begin, end in united(stretches))


def without(stretch: Stretch, others: Iterable[Stretch]) -> list[Stretch]:
    """What of `stretch` is in none of `others`, in order."""
    left: list[Stretch] = []
    at, end = stretch
    for begin, until in united(others):
        if begin >= end:
            break
        if begin > at:
            left.append((at, begin))
        at = max(at, until)
    if at < end:
        left.append((at, end))
    return left


def moved_inside(inner: Stretch, outer: Stretch) -> int:
    """By how much to move `inner`, as little as that takes, so that it lies in `outer`.

    0 where it does, and where it is longer and cannot.
    """
    if inner[1] - inner[0] > outer[1] - outer[0]:
        return 0
    return max(0, outer[0] - inner[0]) - max(0, inner[1] - outer[1])


def total(stretches: Sequence[Stretch]) -> int:
    """The sum of the lengths; time that several share counts several times."""
    return sum(max(0, end - begin) for begin, end in stretches)
