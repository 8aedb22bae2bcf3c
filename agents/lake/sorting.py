"""Which series each row belongs to: the rules of `series.SeriesCollector`, for columns.

The rules are its own tables; a test holds both against each other on every kind of sample.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pathbudget.agents.lake.envelopes import NO_FLOOR, Envelopes, Numbers, key_parts
from pathbudget.agents.lake.rows import FLAG_BIT, Rows, Vocabulary
from pathbudget.analysis.series import (
    APART,
    LOST,
    NO_NAME,
    NOT_SENT,
    OTHER_MODE,
    REFUSALS,
    WALL_CLOCKS,
    SeriesKey,
    loaded_samples,
)
from pathbudget.probes.record import (
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Vantage,
)

Mask = npt.NDArray[np.bool_]
Words = frozenset[str]

OF_RECORDS: Words = frozenset(
    {
        *(Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE),
        *(Metric.UPLOAD, Metric.TTFT, Metric.DELIVERY_GAP),
    }
)
"""Metrics whose lines need more of a record than its number: these records are read whole."""
NAMELESS: Words = frozenset(map(str, NO_NAME))
NO_LOSS: Words = frozenset(map(str, (*NOT_SENT, *OTHER_MODE)))
WALL: Words = frozenset(map(str, WALL_CLOCKS))
CONNECTS: Words = frozenset({Metric.CONNECT})


@dataclass(frozen=True, slots=True)
class Member:
    """One series as one vantage measured it."""

    key: SeriesKey
    vantage: str


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows that count, part by part, and member by member within a part."""

    members: Numbers
    """Number of each member that has any."""
    counts: Numbers
    sent_unix_ns: Numbers
    sequence: Numbers
    values_ns: npt.NDArray[np.float64]


class Sorter:
    """Sorts portions of rows of one file; members are numbered as they come.

    `parts` says which part of the work the pairs of region and site belong to.
    """

    def __init__(
        self, envelopes: Envelopes, vocabulary: Vocabulary, parts: Mapping[tuple[str, str], int]
    ) -> None:
        self.members: list[Member] = []
        self.part_of: list[int] = []
        """Part of each member."""
        self.floors_ns: list[int] = []
        """Largest noise floor of the measurements of each member, or `NO_FLOOR`."""
        self.unresolved: Counter[tuple[str, str, str]] = Counter()
        """(region, site, target) to how many samples had no address to be sent to."""
        self.record_probes: set[str] = set()
        """Probes with samples of `OF_RECORDS`."""
        self._envelopes = envelopes
        self._vocabulary = vocabulary
        self._parts = parts
        self._all_wanted = bool(envelopes.wanted.all())
        self._by_member: dict[Member, int] = {}
        self._numbers: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        """Member by code of group, metric, mode and load; -1 where none is known yet."""
        self._words = 0
        """Number of words that the codes are made for."""

    def sort(self, rows: Rows) -> Sorted:
        """The rows that are in a series, by part and member."""
        left_out = self._left_out(rows)
        values = rows.values_ns
        if rows.flags.any() or rows.responder.any() or values.min(initial=0.0) < 0:
            values, excluded = self._marked(rows)
            left_out = left_out | excluded
        return self._by_member_of(rows, values, left_out)

    def _left_out(self, rows: Rows) -> Mask:
        """Rows that are not wanted, of no series, or failures that are no loss of a network."""
        if self._all_wanted:
            left_out = np.zeros(len(rows.values_ns), dtype=np.bool_)
        else:
            left_out = ~self._envelopes.wanted[rows.measurement]
        if self._any(OF_RECORDS):
            self._note_probes(rows, ~left_out)
        if self._any(APART):
            left_out |= self._has(rows.metric, APART)
        failed = np.flatnonzero(rows.failure_kind)
        left_out[failed[self._no_attempt(rows, failed, left_out)]] = True
        return left_out

    def _note_probes(self, rows: Rows, wanted: Mask) -> None:
        special = wanted & self._has(rows.metric, OF_RECORDS)
        if special.any():
            groups = np.unique(self._envelopes.group[rows.measurement[special]])
            self.record_probes |= {self._envelopes.groups[int(i)].probe for i in groups}

    def _any(self, words: Words) -> bool:
        return not words.isdisjoint(self._vocabulary.words)

    def _has(self, codes: npt.NDArray[np.int32], words: Words) -> Mask:
        table = np.array([word in words for word in self._vocabulary.words], dtype=np.bool_)
        return table[codes]

    def _no_attempt(self, rows: Rows, failed: Numbers, left_out: Mask) -> Mask:
        """Which of the failures are no loss."""
        kinds = rows.failure_kind[failed]
        nameless = self._has(kinds, NAMELESS)
        if nameless.any():
            nameless &= ~self._has(rows.metric[failed], frozenset({Metric.RESOLVE}))
            self._count_unresolved(rows.measurement[failed[nameless & ~left_out[failed]]])
        return nameless | self._has(kinds, NO_LOSS)

    def _count_unresolved(self, measurements: Numbers) -> None:
        groups, counts = np.unique(self._envelopes.group[measurements], return_counts=True)
        for group, count in zip(groups.tolist(), counts.tolist(), strict=True):
            parts = key_parts(self._envelopes.groups[group], "")
            self.unresolved[parts["region"], parts["site"], parts["target"]] += count

    def _marked(self, rows: Rows) -> tuple[npt.NDArray[np.float64], Mask]:
        """Values by what marks say of them, and which are excluded."""
        answered = rows.failure_kind == 0
        excluded = rows.values_ns < 0
        stepped = (rows.flags & FLAG_BIT[Flag.CLOCK_STEP]) > 0
        if stepped.any():
            excluded |= answered & stepped & self._has(rows.clock_source, WALL)
        excluded |= answered & self._foreign(rows)
        late = (rows.flags & FLAG_BIT[Flag.LATE]) > 0
        again = (rows.flags & FLAG_BIT[Flag.SYN_RETRANSMITTED]) > 0
        again &= self._has(rows.metric, CONNECTS)
        return np.where(late | again, LOST, rows.values_ns), excluded

    def _foreign(self, rows: Rows) -> Mask:
        """Answers of another address than the one probed."""
        result = np.zeros(len(rows.responder), dtype=np.bool_)
        places = np.flatnonzero(rows.responder)
        if not len(places):
            return result
        groups = self._envelopes.group[rows.measurement[places]]
        pairs, which = np.unique(
            np.column_stack((rows.responder[places], groups)), axis=0, return_inverse=True
        )
        foreign = [
            self._vocabulary.words[word] != self._envelopes.groups[group].address
            for word, group in pairs.tolist()
        ]
        result[places] = np.array(foreign, dtype=np.bool_)[which.reshape(-1)]
        return result

    def _by_member_of(self, rows: Rows, values: npt.NDArray[np.float64], left_out: Mask) -> Sorted:
        """Bring the rows of each member together; refused connects count twice."""
        loaded = self._loaded(rows)
        metric, twice = rows.metric, np.empty(0, dtype=np.int64)
        if (refused := (rows.flags & FLAG_BIT[Flag.REFUSED]) > 0).any():
            refused &= self._has(metric, CONNECTS)
            twice = np.flatnonzero(refused & ~left_out)
            metric = np.where(refused, np.int32(self._vocabulary.number(REFUSALS)), metric)
            self._vocabulary.number(Metric.CONNECT)
        members = self._numbered(rows.measurement, metric, rows.mode, loaded, left_out)
        again = self._numbered(
            rows.measurement[twice], rows.metric[twice], rows.mode[twice],
            None if loaded is None else loaded[twice], np.zeros(len(twice), dtype=np.bool_),
        )  # fmt: skip
        take = np.flatnonzero(~left_out) if left_out.any() else None
        order, present, counts = self._order(members, take, again)
        rows_in_order = order if take is None and not len(twice) else np.concatenate(
            (np.arange(len(values)) if take is None else take, twice)
        )[order]  # fmt: skip
        found = values[rows_in_order]
        if len(twice):
            found[order >= len(order) - len(twice)] = LOST
        return Sorted(
            present, counts, rows.sent_unix_ns[rows_in_order], rows.sequence[rows_in_order], found
        )

    def _order(
        self, members: Numbers, take: Numbers | None, again: Numbers
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Where the rows stand in the order of parts and members; those members, with counts."""
        kept = members if take is None else members[take]
        if len(again):
            kept = np.concatenate((kept, again))
        small = np.uint16 if len(self.members) < 1 << 16 else np.int64
        by_part = np.lexsort((np.arange(len(self.members)), np.array(self.part_of)))
        turns = np.empty(len(self.members), dtype=small)
        turns[by_part] = np.arange(len(self.members), dtype=small)
        order = np.argsort(turns[kept], kind="stable")  # of 16 bits: a radix sort
        counts = np.bincount(kept, minlength=len(self.members))[by_part]
        there = np.flatnonzero(counts)
        return order, by_part[there], counts[there]

    def _loaded(self, rows: Rows) -> Mask | None:
        """As `series.loaded_samples`; None where no sample says so."""
        marked = (rows.flags & FLAG_BIT[Flag.LOADED]) > 0
        if not marked.any():
            return None
        for number in np.unique(rows.measurement[marked]).tolist():
            first, last = np.searchsorted(rows.measurement, [number, number + 1])
            if not marked[first:last].all():
                marked[first:last] = _marks_of(rows.part(first, last), marked[first:last])
        return marked

    def _numbered(
        self,
        measurement: Numbers,
        metric: npt.NDArray[np.int32],
        mode: npt.NDArray[np.int32],
        loaded: Mask | None,
        left_out: Mask,
    ) -> Numbers:
        """The member of each row; of those left out any number."""
        self._make_room()
        words = self._words
        codes = (self._envelopes.group * (words * words * 2))[measurement]
        codes += metric * np.int32(2 * words)
        codes += mode * np.int32(2)
        if loaded is not None:
            codes += loaded
        members: Any = self._numbers[codes]
        if len(members) and members.min() < 0:
            new = np.flatnonzero((members < 0) & ~left_out)
            for code in np.unique(codes[new]).tolist():
                self._numbers[code] = self._member(code)
            members = self._numbers[codes]
        self._note_floors(members, measurement, left_out)
        found: Numbers = members
        return found

    def _make_room(self) -> None:
        """Codes grow with the number of words; then the members get new ones."""
        if len(self._vocabulary.words) > self._words:
            self._words = 2 * len(self._vocabulary.words)
            size = len(self._envelopes.groups) * self._words**2 * 2
            self._numbers = np.full(size, -1, dtype=np.int32)

    def _member(self, code: int) -> int:
        rest, loaded = divmod(code, 2)
        rest, mode = divmod(rest, self._words)
        group, metric = divmod(rest, self._words)
        envelope, word = self._envelopes.groups[group], self._vocabulary.words[metric]
        key = SeriesKey(
            **key_parts(envelope, word),
            metric=word,
            mode=self._vocabulary.words[mode] if mode else None,
            loaded=bool(loaded),
        )
        member = Member(key, envelope.vantage.name)
        number = self._by_member.setdefault(member, len(self.members))
        if number == len(self.members):
            self.members.append(member)
            self.part_of.append(self._parts[key.region, key.site])
            self.floors_ns.append(NO_FLOOR)
        return number

    def _note_floors(self, members: Numbers, measurement: Numbers, left_out: Mask) -> None:
        """The largest floor of the measurements that have a row in a member."""
        if not len(members):
            return
        first, last = int(measurement.min()), int(measurement.max())
        span = last - first + 1
        there = np.zeros((len(self.members) + 1) * span, dtype=np.bool_)
        there[(members + 1) * span + (measurement - first)] = True
        if left_out.any():
            there[:] = False
            kept = ~left_out
            there[(members[kept] + 1) * span + (measurement[kept] - first)] = True
        floors = self._envelopes.floors_ns[first : last + 1]
        largest = np.where(there.reshape(-1, span)[1:], floors, NO_FLOOR).max(axis=1)
        self.floors_ns = np.maximum(self.floors_ns, largest).tolist()


_FAILED = Failure(FailureKind.TIMEOUT, Stage.WAIT)


def _marks_of(rows: Rows, marked: Mask) -> Sequence[bool]:
    """Loaded or not, of all samples of one measurement, by the rule for records."""
    samples = tuple(
        Sample(0, "", sent, None if value == LOST else 0, _FAILED if value == LOST else None,
               flags=(Flag.LOADED,) if mark else ())
        for sent, value, mark in zip(
            rows.sent_unix_ns.tolist(), rows.values_ns.tolist(), marked.tolist(), strict=True
        )
    )  # fmt: skip
    return loaded_samples(Measurement("", Vantage("", ""), Target("", ""), "", 0, samples))
