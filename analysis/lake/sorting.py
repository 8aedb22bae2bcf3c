"""Which series each row belongs to: the rules of `series.SeriesCollector`, for columns.

The rules are its own tables; a test holds both against each other on every kind of sample.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.lake.envelopes import NO_FLOOR, Envelopes, Numbers, key_parts
from pathbudget.analysis.lake.rows import FLAG_BIT, Rows, Vocabulary
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

OF_RECORDS = frozenset(
    {
        *(Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE),
        *(Metric.UPLOAD, Metric.TTFT, Metric.DELIVERY_GAP),
    }
)
"""Metrics whose lines need more of a record than its number: these records are read whole."""


@dataclass(frozen=True, slots=True)
class Member:
    """One series as one vantage measured it."""

    key: SeriesKey
    vantage: str


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows that count, those of one member together, in the order they came within it."""

    members: Numbers
    """Number of each member that has any, rising."""
    counts: Numbers
    sent_unix_ns: Numbers
    sequence: Numbers
    values_ns: npt.NDArray[np.float64]


class Sorter:
    """Sorts portions of rows of one file; members are numbered as they come."""

    def __init__(self, envelopes: Envelopes, vocabulary: Vocabulary) -> None:
        self.members: list[Member] = []
        self.floors_ns: list[int] = []
        """Largest noise floor of the measurements of each member, or `NO_FLOOR`."""
        self.unresolved: Counter[tuple[str, str, str]] = Counter()
        """(region, site, target) to how many samples had no address to be sent to."""
        self.record_probes: set[str] = set()
        """Probes with samples of `OF_RECORDS`."""
        self._envelopes = envelopes
        self._vocabulary = vocabulary
        self._numbers: dict[tuple[int, int, int, bool], int] = {}
        self._by_member: dict[Member, int] = {}

    def sort(self, rows: Rows) -> Sorted:
        """The rows that are in a series, by member."""
        wanted = self._envelopes.wanted[rows.measurement]
        self._note_probes(rows, wanted)
        counted = wanted & ~self._has(rows.metric, APART)
        lost = np.isinf(rows.values_ns)
        counted &= ~(lost & self._no_attempt(rows, counted & lost))
        values = rows.values_ns
        if rows.flags.any() or rows.responder.any() or values.min(initial=0.0) < 0:
            values = self._marked(rows, lost, counted)
        return self._by_code(rows, values, counted)

    def _note_probes(self, rows: Rows, wanted: Mask) -> None:
        special = wanted & self._has(rows.metric, OF_RECORDS)
        if special.any():
            groups = np.unique(self._envelopes.group[rows.measurement[special]])
            self.record_probes |= {self._envelopes.groups[int(i)].probe for i in groups}

    def _has(
        self, codes: npt.NDArray[np.int32], words: "frozenset[str] | frozenset[Metric]"
    ) -> Mask:
        table = np.array([word in words for word in self._vocabulary.words], dtype=np.bool_)
        return table[codes] if table.any() else np.zeros(len(codes), dtype=np.bool_)

    def _no_attempt(self, rows: Rows, failed: Mask) -> Mask:
        """Failures that are no loss of a network."""
        kinds = rows.failure_kind
        nameless = self._has(kinds, frozenset(map(str, NO_NAME)))
        nameless &= ~self._has(rows.metric, frozenset({Metric.RESOLVE}))
        if (both := nameless & failed).any():
            self._count_unresolved(rows, both)
        others = frozenset(map(str, (*NOT_SENT, *OTHER_MODE)))
        return nameless | self._has(kinds, others)

    def _count_unresolved(self, rows: Rows, mask: Mask) -> None:
        groups, counts = np.unique(
            self._envelopes.group[rows.measurement[mask]], return_counts=True
        )
        for group, count in zip(groups.tolist(), counts.tolist(), strict=True):
            parts = key_parts(self._envelopes.groups[group], "")
            self.unresolved[parts["region"], parts["site"], parts["target"]] += count

    def _marked(self, rows: Rows, lost: Mask, counted: Mask) -> npt.NDArray[np.float64]:
        """Values by what marks say of them; takes out of `counted` what is excluded."""
        answered = ~lost
        counted &= ~(rows.values_ns < 0)
        stepped = (rows.flags & FLAG_BIT[Flag.CLOCK_STEP]) > 0
        if stepped.any():
            wall = self._has(rows.clock_source, frozenset(map(str, WALL_CLOCKS)))
            counted &= ~(answered & stepped & wall)
        counted &= ~(answered & self._foreign(rows))
        late = (rows.flags & FLAG_BIT[Flag.LATE]) > 0
        again = (rows.flags & FLAG_BIT[Flag.SYN_RETRANSMITTED]) > 0
        again &= self._has(rows.metric, frozenset({Metric.CONNECT}))
        return np.where(late | again, LOST, rows.values_ns)

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

    def _by_code(self, rows: Rows, values: npt.NDArray[np.float64], counted: Mask) -> Sorted:
        """Number the rows by member, the refused connects twice, and bring members together."""
        loaded = self._loaded(rows)
        metric = rows.metric
        refused = (rows.flags & FLAG_BIT[Flag.REFUSED]) > 0
        take = None if counted.all() else np.flatnonzero(counted)
        if refused.any():
            refused &= counted & self._has(metric, frozenset({Metric.CONNECT}))
            twice = np.flatnonzero(refused)
            take = np.concatenate((np.arange(len(values)) if take is None else take, twice))
            metric = np.where(refused, self._vocabulary.number(REFUSALS), metric)[take]
            metric[len(take) - len(twice) :] = self._vocabulary.number(Metric.CONNECT)
            values = values[take]
            values[len(take) - len(twice) :] = LOST
        elif take is not None:
            metric, values = metric[take], values[take]
        parts = (rows.measurement, rows.mode, loaded, rows.sent_unix_ns, rows.sequence)
        measurement, mode, loaded, sent, sequence = (
            parts if take is None else (part[take] for part in parts)
        )
        members = self._numbered(measurement, metric, mode, loaded)
        small = members.astype(np.uint16) if len(self.members) < 1 << 16 else members
        order = np.argsort(small, kind="stable")  # of 16 bits: a radix sort
        counts = np.bincount(members, minlength=len(self.members))
        present = np.flatnonzero(counts)
        return Sorted(present, counts[present], sent[order], sequence[order], values[order])

    def _loaded(self, rows: Rows) -> Mask:
        """As `series.loaded_samples`; only measurements of which some samples say so need it."""
        marked = (rows.flags & FLAG_BIT[Flag.LOADED]) > 0
        if not marked.any():
            return marked
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
        loaded: Mask,
    ) -> Numbers:
        """The member of each row."""
        words, groups = len(self._vocabulary.words), self._envelopes.group[measurement]
        codes = ((groups * words + metric) * words + mode) * 2 + loaded
        distinct, which = _distinct(codes, len(self._envelopes.groups) * words * words * 2)
        numbers = np.empty(len(distinct), dtype=np.int64)
        for i, code in enumerate(distinct.tolist()):
            rest, is_loaded = divmod(code, 2)
            rest, its_mode = divmod(rest, words)
            group, its_metric = divmod(rest, words)
            numbers[i] = self._member(group, its_metric, its_mode, bool(is_loaded))
        members = numbers[which]
        self._note_floors(members, measurement)
        return members

    def _member(self, group: int, metric: int, mode: int, loaded: bool) -> int:
        known = self._numbers.get((group, metric, mode, loaded))
        if known is not None:
            return known
        envelope, word = self._envelopes.groups[group], self._vocabulary.words[metric]
        key = SeriesKey(
            **key_parts(envelope, word),
            metric=word,
            mode=self._vocabulary.words[mode] if mode else None,
            loaded=loaded,
        )
        member = Member(key, envelope.vantage.name)
        number = self._by_member.setdefault(member, len(self.members))
        if number == len(self.members):
            self.members.append(member)
            self.floors_ns.append(NO_FLOOR)
        self._numbers[group, metric, mode, loaded] = number
        return number

    def _note_floors(self, members: Numbers, measurement: Numbers) -> None:
        """The largest floor of the measurements that have a row in a member."""
        if not len(members):
            return
        first = int(measurement.min())
        span = int(measurement.max()) - first + 1
        codes = members * span + (measurement - first)
        distinct, _ = _distinct(codes, len(self.members) * span)
        floors = self._envelopes.floors_ns[first + distinct % span]
        for number, floor in zip((distinct // span).tolist(), floors.tolist(), strict=True):
            self.floors_ns[number] = max(self.floors_ns[number], floor)


def _distinct(codes: Numbers, bound: int) -> tuple[Numbers, Numbers]:
    """The distinct codes, rising, and which of them each is; quick where they are small."""
    if bound > 1 << 22:
        distinct, which = np.unique(codes, return_inverse=True)
        return distinct, which
    present = np.zeros(bound, dtype=np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    places = np.zeros(bound, dtype=np.int32)
    places[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, places[codes]


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
