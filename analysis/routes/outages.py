"""Outages and flapping of one series, out of stored samples or as packets come.

The rule is that of `analysis/outage_rule.py`. Everything goes by the times of *sending*, which were
fixed beforehand (open loop): an outage is no pause of ours, and losses are counted whether or not
anything comes back. Two ways in:

    outages(series, samples)     all of a batch
    OutageWatch(series)          as they come: `sent` and `answered` for each packet, and `advance`
                                 with the time; or `see` with samples, where somebody else waits

At a probe every 10 ms and up to 5 % random loss, 7 losses in a row are an outage: 60 ms from first
to last, and `patience_ns` until the last one counts as lost. So it is reported 0.77 s after it
began at the latest (false alarms at 5 %: 0.05 ** 7 of 95 answered packets a second, one in 156
days).
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis import outage_rule
from pathbudget.analysis.outage_rule import consecutive_losses
from pathbudget.analysis.outages import find_outages, usual_loss_ratio
from pathbudget.analysis.routes.model import Outage, OutageKind, PathSeries, Window
from pathbudget.analysis.routes.sweeps import ROUND_TRIPS, is_lost
from pathbudget.probes.record import Sample

PATIENCE_NS = 700_000_000
"""An answer that takes longer counts as lost (Tmax of RFC 7680)."""
FLAPS = 3
FLAP_NS = 600 * 10**9
"""So many outages, each beginning within a half of this after the one before, are one flapping."""
PAUSE_NS = 60 * 10**9
"""Nothing sent for so long: what was lost before and after is not one run."""
MOST_PENDING = 65_536
"""Packets whose fate is not known, at most; then the oldest count as lost."""


class _Flapping:
    """Joins outages that follow each other closely."""

    def __init__(self, series: PathSeries) -> None:
        self._series = series
        self._current: Outage | None = None
        self._lost_before = 0

    def began(self, raw: outage_rule.Outage) -> Outage:
        """A new one: by itself, or one more of a flapping."""
        window = _window(raw.last_good_unix_ns, raw.first_lost_unix_ns)
        last = self._current
        near = last is not None and window.by_unix_ns - _latest(last) <= FLAP_NS // (FLAPS - 1)
        if last is None or not near:
            self._lost_before = 0
            self._current = Outage(OutageKind.OUTAGE, self._series, window, None, raw.lost)
            return self._current
        self._lost_before = last.lost
        times = last.times + 1
        self._current = replace(last, ended=None, lost=last.lost + raw.lost, times=times)
        return self._told(window, raw.lost)

    def ended(self, raw: outage_rule.Outage) -> Outage:
        """The same one is over."""
        assert self._current is not None
        assert raw.first_good_unix_ns is not None
        ended = Window(raw.last_lost_unix_ns, raw.first_good_unix_ns)
        self._current = replace(self._current, ended=ended, lost=self._lost_before + raw.lost)
        began = _window(raw.last_good_unix_ns, raw.first_lost_unix_ns)
        return self._told(began, raw.lost)

    def _told(self, began: Window, lost: int) -> Outage:
        """Fewer than `FLAPS` are told one by one."""
        assert self._current is not None
        if self._current.times >= FLAPS:
            return replace(self._current, kind=OutageKind.FLAPPING)
        return replace(self._current, began=began, lost=lost, times=1)


def outages(series: PathSeries, samples: Iterable[Sample]) -> list[Outage]:
    """All outages among round trips, in any order; flapping instead of its single outages."""
    known = [(one.sent_unix_ns, gone) for one in samples if (gone := _fate(one)) is not None]
    known.sort()
    sent = np.array([when for when, _ in known], dtype=np.int64)
    lost = np.array([gone for _, gone in known], dtype=np.bool_)
    rule = consecutive_losses(usual_loss_ratio(lost)) if len(lost) else outage_rule.FEWEST
    flapping, found = _Flapping(series), list[Outage]()
    for part in np.split(np.arange(len(sent)), np.flatnonzero(np.diff(sent) > PAUSE_NS) + 1):
        for one in find_outages(sent[part], lost[part], rule):
            raw = outage_rule.Outage(
                one.last_good_ns, one.first_lost_ns, one.last_lost_ns, one.first_good_ns, one.lost
            )
            told = flapping.began(raw)
            _take(found, told if raw.first_good_unix_ns is None else flapping.ended(raw))
    return found


def _take(found: list[Outage], outage: Outage) -> None:
    """A flapping stands for all outages since it began."""
    if outage.kind is OutageKind.FLAPPING:
        while found and found[-1].began.by_unix_ns >= outage.began.by_unix_ns:
            found.pop()
    found.append(outage)


@dataclass(slots=True)
class _Packet:
    sent_unix_ns: int
    lost: bool | None = None
    skipped: bool = False

    def __lt__(self, other: "_Packet") -> bool:
        return self.sent_unix_ns < other.sent_unix_ns


class OutageWatch:
    """One series as it comes. Every method returns what it brought to light: an outage without end
    when it is noticed, the same one with its end when that is over. Memory: `MOST_PENDING` packets.

    `patience_ns`: who uses `see` must take the timeout of the probe, at least; times are Unix ns.
    """

    def __init__(self, series: PathSeries, patience_ns: int = PATIENCE_NS) -> None:
        self.series = series
        self.patience_ns = patience_ns
        self.late = 0
        """Answers that came after their packet had been given up."""
        self._rule = outage_rule.OutageWatch()
        self._flapping = _Flapping(series)
        self._waiting: list[_Packet] = []
        self._announced: dict[int, _Packet] = {}
        self._last_sent = 0
        self._now = 0

    @property
    def pending(self) -> int:
        """Packets whose fate is not known or cannot be told yet."""
        return len(self._waiting)

    def sent(self, sent_unix_ns: int) -> list[Outage]:
        """A packet has left. Its sending time is its name, so no two may have the same."""
        self._put(_Packet(sent_unix_ns), announced=True)
        return self.advance(sent_unix_ns)

    def answered(self, sent_unix_ns: int, now_unix_ns: int) -> list[Outage]:
        """The packet that was sent then has been answered."""
        packet = self._announced.get(sent_unix_ns)
        if packet is None:
            self.late += 1
        else:
            packet.lost = now_unix_ns - sent_unix_ns > self.patience_ns
        return self.advance(now_unix_ns)

    def see(self, sample: Sample) -> list[Outage]:
        """A finished sample, in any order within `patience_ns`. What was sent is known of those
        sent `patience_ns` earlier, so outages are told so much later.
        """
        if sample.metric not in ROUND_TRIPS:
            return []
        if sample.sent_unix_ns < self._last_sent:
            self.late += 1
            return []
        fate = _fate(sample)
        packet = _Packet(sample.sent_unix_ns, lost=fate, skipped=fate is None)
        self._put(packet, announced=False)
        return self.advance(sample.sent_unix_ns)

    def advance(self, now_unix_ns: int) -> list[Outage]:
        """It is so late now: what is not answered after `patience_ns` is lost."""
        self._now = max(self._now, now_unix_ns)
        found: list[Outage] = []
        while self._waiting and self._is_settled(self._waiting[0]):
            packet = heapq.heappop(self._waiting)
            self._announced.pop(packet.sent_unix_ns, None)
            found += self._feed(packet)
        return found

    def finish(self) -> list[Outage]:
        """Nothing more will come: what still waits for earlier ones is taken as it is."""
        latest = max((packet.sent_unix_ns for packet in self._waiting), default=self._now)
        return self.advance(latest + self.patience_ns)

    def _put(self, packet: _Packet, *, announced: bool) -> None:
        heapq.heappush(self._waiting, packet)
        if announced:
            self._announced[packet.sent_unix_ns] = packet

    def _is_settled(self, packet: _Packet) -> bool:
        overdue = self._now - packet.sent_unix_ns >= self.patience_ns
        known = packet.sent_unix_ns in self._announced and packet.lost is not None
        return overdue or known or len(self._waiting) > MOST_PENDING

    def _feed(self, packet: _Packet) -> list[Outage]:
        pause = packet.sent_unix_ns - self._last_sent > PAUSE_NS
        self._last_sent = packet.sent_unix_ns
        if packet.skipped or (pause and self._rule.ongoing is None):
            self._rule.cut()
        if packet.skipped:
            return []
        lost = packet.lost is not False
        raw = self._rule.feed(packet.sent_unix_ns, lost=lost)
        if raw is None:
            return []
        return [self._flapping.ended(raw) if raw.over else self._flapping.began(raw)]


def _fate(sample: Sample) -> bool | None:
    return is_lost(sample) if sample.metric in ROUND_TRIPS else None


def _window(after: int | None, by: int) -> Window:
    return Window(by if after is None else after, by)


def _latest(outage: Outage) -> int:
    return outage.began.by_unix_ns if outage.ended is None else outage.ended.by_unix_ns
