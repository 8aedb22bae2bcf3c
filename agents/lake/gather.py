"""Second half: all rows of some pairs, from scratch files, as the series of each pair."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.agents.lake.envelopes import NO_FLOOR, Numbers
from pathbudget.agents.lake.scratch import ScratchFile, read_blocks
from pathbudget.agents.lake.sorting import Member, Sorted
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.track import Track, order_in_time

Pair = tuple[str, str]
Run = tuple[Sorted, slice]
"""Rows of one member in a block."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one task has for a part: its rows, and who its members are."""

    file: ScratchFile
    members: dict[int, tuple[Member, int]]
    """By number in that task: the member, and its noise floor."""


def series_by_pair(
    shares: Sequence[Share], vantages: Sequence[str]
) -> Iterator[tuple[Pair, list[Series]]]:
    """The series of each pair, in the order of `SeriesKey.sort_key`. Raises OSError.

    `vantages` are all names in order: a vantage's number is its place there.
    """
    members, floors, renumber = _common(shares)
    runs = _runs(shares, renumber, len(members))
    numbers = {name: i for i, name in enumerate(vantages)}
    by_key: dict[SeriesKey, list[int]] = {}
    for i, member in enumerate(members):
        by_key.setdefault(member.key, []).append(i)
    by_pair: dict[Pair, list[SeriesKey]] = {}
    for key in sorted(by_key, key=SeriesKey.sort_key):
        by_pair.setdefault((key.region, key.site), []).append(key)
    for pair, keys in sorted(by_pair.items()):
        found: list[Series] = []
        for key in keys:
            its = sorted(by_key[key], key=lambda i: numbers[members[i].vantage])
            parts = [_in_time(runs[i]) for i in its]
            names = [numbers[members[i].vantage] for i in its]
            found.append(_series(key, parts, names, max(floors[i] for i in its)))
        yield pair, found


def _common(shares: Sequence[Share]) -> tuple[list[Member], list[int], list[Numbers]]:
    """Members of all tasks under one number each, their floors, and the new number of each old."""
    numbers: dict[Member, int] = {}
    floors: list[int] = []
    renumber: list[Numbers] = []
    for share in shares:
        table = np.zeros(max(share.members, default=0) + 1, dtype=np.int64)
        for old, (member, floor) in share.members.items():
            new = numbers.setdefault(member, len(numbers))
            if new == len(floors):
                floors.append(floor)
            floors[new] = max(floors[new], floor)
            table[old] = new
        renumber.append(table)
    return list(numbers), floors, renumber


def _runs(shares: Sequence[Share], renumber: Sequence[Numbers], members: int) -> list[list[Run]]:
    """The rows of every member, in the order that they were written in."""
    runs: list[list[Run]] = [[] for _ in range(members)]
    for share, table in zip(shares, renumber, strict=True):
        for block in read_blocks(share.file):
            first = 0
            owners = table[block.members].tolist()
            for member, count in zip(owners, block.counts.tolist(), strict=True):
                runs[member].append((block, slice(first, first + count)))
                first += count
    return runs


def _in_time(runs: Sequence[Run]) -> tuple[Numbers, npt.NDArray[np.float64]]:
    """One vantage in order of time; equal times by sequence, then value (`SeriesBuilder`)."""
    sent = np.concatenate([block.sent_unix_ns[rows] for block, rows in runs])
    values = np.concatenate([block.values_ns[rows] for block, rows in runs])
    if (sent[1:] > sent[:-1]).all():
        return sent, values
    sequence = np.concatenate([block.sequence[rows] for block, rows in runs])
    order = order_in_time(sent, lambda places: (sequence[places], values[places]))
    return sent[order], values[order]


def _merged(
    parts: Sequence[tuple[Numbers, npt.NDArray[np.float64]]], vantages: Sequence[int]
) -> Track:
    """All vantages in order of time; equal times in the order of the vantages."""
    sent = np.concatenate([sent for sent, _ in parts])
    values = np.concatenate([values for _, values in parts])
    lengths = [len(sent) for sent, _ in parts]
    whose = np.repeat(np.array(vantages, dtype=np.int64), lengths)
    if len(parts) == 1:
        return Track(sent, values, whose)
    order = np.argsort(sent, kind="stable")  # merges runs
    return Track(sent[order], values[order], whose[order])


def _series(
    key: SeriesKey,
    parts: Sequence[tuple[Numbers, npt.NDArray[np.float64]]],
    vantages: Sequence[int],
    floor_ns: int,
) -> Series:
    track = _merged(parts, vantages)
    return Series(
        key=key,
        track=track,
        failures=Counter(),
        clock_sources=Counter(),
        flags=Counter(),
        noise_floor_ns=None if floor_ns == NO_FLOOR else floor_ns,
        details=Counter(),
    )
