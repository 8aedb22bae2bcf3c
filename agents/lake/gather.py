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
from pathbudget.analysis.track import Track

Pair = tuple[str, str]


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
    (sent, values, sequence), owners, counts = _all_rows(shares, renumber)
    order = _by_owner(owners, counts)
    sent, values = sent[order], values[order]
    ends = np.cumsum(np.bincount(owners, counts, minlength=len(members)).astype(np.int64))
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
            places = [slice(int(ends[i - 1]) if i else 0, int(ends[i])) for i in its]
            parts = [_in_time(sent[one], values[one], sequence, order[one]) for one in places]
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


def _all_rows(
    shares: Sequence[Share], renumber: Sequence[Numbers]
) -> tuple[tuple[Numbers, npt.NDArray[np.float64], Numbers], Numbers, Numbers]:
    """Send times, values and sequence numbers of all rows; of every run of rows in a block its
    member and its length.
    """
    blocks: list[Sorted] = []
    owners: list[Numbers] = []
    for share, table in zip(shares, renumber, strict=True):
        for block in read_blocks(share.file):
            blocks.append(block)
            owners.append(table[block.members])
    return (
        (
            np.concatenate([block.sent_unix_ns for block in blocks]),
            np.concatenate([block.values_ns for block in blocks]),
            np.concatenate([block.sequence for block in blocks]),
        ),
        np.concatenate(owners),
        np.concatenate([block.counts for block in blocks]),
    )


def _by_owner(owners: Numbers, counts: Numbers) -> Numbers:
    """The order that brings the runs of every owner together, and keeps them in order."""
    runs = np.argsort(owners, kind="stable")
    begins = (np.cumsum(counts) - counts)[runs]
    lengths = counts[runs]
    offsets = begins - (np.cumsum(lengths) - lengths)
    found: Numbers = np.repeat(offsets, lengths)
    found += np.arange(len(found))
    return found


def _in_time(
    sent: Numbers, values: npt.NDArray[np.float64], sequence: Numbers, rows: Numbers
) -> tuple[Numbers, npt.NDArray[np.float64]]:
    """One vantage in order of time; equal times by sequence, then value (`SeriesBuilder`).

    `sequence` is of all rows, and `rows` says which are those of the vantage.
    """
    if (sent[1:] > sent[:-1]).all():
        return sent, values
    order = np.lexsort((values, sequence[rows], sent))
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
    order = np.argsort(sent, kind="stable")
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
