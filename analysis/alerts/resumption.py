"""Resumption rate fallen: handshakes that offer a ticket, and how many of them are resumed.

The share of the recent time against that of the time before, each with its interval: fallen when
the recent one surely lies further below than allowed. While an alert lasts, the share before it is
kept, so that the fall does not become the usual thing to compare with.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pathbudget.analysis.alerts.model import AlertKind, Kept, Signal
from pathbudget.analysis.alerts.requests_over import FUTURE_NS
from pathbudget.analysis.alerts.rules import ResumptionRule, slice_of
from pathbudget.analysis.alerts.shares import Count, Share, WindowCounts, share_of
from pathbudget.analysis.report.route_words import lasting
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.analysis.setups import SetupCollector
from pathbudget.analysis.shots import shot_key, shots_of
from pathbudget.probes.record import Measurement, Metric


class Offers(NamedTuple):
    """Whose handshakes they are."""

    region: str
    site: str
    target: str
    transport: str
    mode: str


class Resumptions:
    """Takes measurements, or pieces of them, and counts tickets offered and taken."""

    def __init__(self, rule: ResumptionRule) -> None:
        self._length_ns = rule.recent_ns + rule.usual_ns
        self._slice_ns = slice_of(rule.recent_ns)
        self._counts: dict[Offers, WindowCounts] = {}

    def see(self, measurement: Measurement, now_unix_ns: int | None = None) -> None:
        """Take the handshakes of one."""
        if all(one.metric != Metric.SETUP for one in measurement.samples):
            return
        key = shot_key(measurement)
        for shot in shots_of(measurement):
            if now_unix_ns is not None and shot.sent_unix_ns > now_unix_ns + FUTURE_NS:
                continue
            collector = SetupCollector()
            collector.add(measurement, key, [shot])
            for group in collector.groups():
                resumed = sum(math.isfinite(value) for value in group.setups)
                if group.mode is not Mode.COLD and (resumed or group.counts["other_mode"]):
                    transport = str(group.key.transport or Carrier.TLS)
                    name = Offers(key.region, key.site, key.target, transport, str(group.mode))
                    self._of(name).add_one(shot.sent_unix_ns, hit=bool(resumed))

    def items(self) -> Iterator[tuple[Offers, WindowCounts]]:
        """In order."""
        for name in sorted(self._counts):
            yield name, self._counts[name]

    def _of(self, name: Offers) -> WindowCounts:
        if name not in self._counts:
            self._counts[name] = WindowCounts(self._length_ns, self._slice_ns)
        return self._counts[name]


def resumption_signals(
    rule: ResumptionRule, counts: Resumptions, kept: Kept, now_unix_ns: int
) -> Iterator[Signal]:
    """One signal for each target, transport and mode."""
    for name, windows in counts.items():
        key = f"{rule.name}/{'/'.join(name)}"
        until = min(windows.newest_unix_ns or now_unix_ns, now_unix_ns)
        recent = windows.within(until, rule.recent_ns)
        both = windows.within(until, rule.recent_ns + rule.usual_ns)
        if now_unix_ns - until > rule.recent_ns:
            recent = Count()
        before = Count(both.hits - recent.hits, both.n - recent.n)
        usual, since = _usual(before, kept.get(key, {}), now_unix_ns)
        yield _signal(rule, name, key, recent, usual, since, now_unix_ns)


def _usual(before: Count, kept: Mapping[str, float], now_unix_ns: int) -> tuple[Count, float]:
    """What is compared with, and since when that stands."""
    if not kept:
        return before, float(now_unix_ns)
    return Count(int(kept["resumed"]), int(kept["offered"])), kept["since_unix_ns"]


def _signal(
    rule: ResumptionRule,
    name: Offers,
    key: str,
    recent: Count,
    usual: Count,
    since: float,
    now_unix_ns: int,
) -> Signal:
    now, then = share_of(recent, rule.confidence), share_of(usual, rule.confidence)
    bad = _fallen(now, then, rule.fall)
    words = _words(name, now, then, rule)
    if now_unix_ns - since >= rule.accept_ns:
        bad = False
        words = f"{words.rstrip('.')}; that is the usual share from now on."
    return Signal(
        key=key,
        rule=rule.name,
        kind=AlertKind.RESUMPTION_FALLEN,
        severity=rule.severity,
        bad=bad,
        summary=words,
        labels=name._asdict(),
        numbers={
            "resumed_ratio": round(now.value, 6) if now.n else None,
            "resumed_ratio_low": round(now.low, 6),
            "resumed_ratio_high": round(now.high, 6),
            "offered": float(now.n),
            "usual_ratio": round(then.value, 6) if then.n else None,
            "usual_ratio_low": round(then.low, 6),
            "usual_ratio_high": round(then.high, 6),
            "usual_offered": float(then.n),
        },
        kept={
            "resumed": float(usual.hits),
            "offered": float(usual.n),
            "since_unix_ns": since,
        },
    )


def _fallen(now: Share, then: Share, fall: float) -> bool | None:
    """Surely further below than `fall`; surely not; or undecided."""
    if not now.n or not then.n:
        return None
    if then.low - now.high > fall:
        return True
    return False if then.high - now.low < fall else None


def _words(name: Offers, now: Share, then: Share, rule: ResumptionRule) -> str:
    where = f"{name.region} > {name.site}, {name.target} over {name.transport}"
    mode = name.mode.replace("_", " ")
    if not now.n or not then.n:
        missing = "recent" if not now.n else "earlier"
        return f"{where}: no {missing} {mode} handshake to compare."
    return (
        f"{where}: {100 * now.value:.0f} % of {now.n} {mode} handshakes of "
        f"{lasting(rule.recent_ns)} were resumed ({100 * now.low:.0f} to {100 * now.high:.0f} %), "
        f"before that {100 * then.value:.0f} % ({100 * then.low:.0f} to {100 * then.high:.0f} %)."
    )
