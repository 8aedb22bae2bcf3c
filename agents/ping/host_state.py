"""All that is remembered of one series (one host, one probe, one address), in bounded memory."""

from collections import Counter
from typing import NamedTuple

from pathbudget.agents.ping.directions import Directions
from pathbudget.agents.ping.in_order import InOrder, Numbered
from pathbudget.agents.ping.load_rate import OurLoad
from pathbudget.agents.ping.phases import OURS, OWN_LOAD, Phase
from pathbudget.agents.ping.sketch import Sketch
from pathbudget.agents.ping.strip import Strip
from pathbudget.analysis.outage_rule import Outage, OutageWatch
from pathbudget.probes.record import (
    Direction,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
)

NOT_SENT = frozenset({FailureKind.PERMISSION, FailureKind.LOCAL, FailureKind.NO_ROUTE})
"""Failures of this host: the network was not asked, so they are no loss (RFC 7680)."""
STATELESS = "stateless_reflector"
"""What the stamp probe counts where a reflector does not number its replies."""
MOST_FLOWS = 64
TRANSITS = frozenset({str(Metric.TRANSIT_FORWARD), str(Metric.TRANSIT_REVERSE)})
NOT_ROUND_TRIPS = frozenset({str(Flag.SYN_RETRANSMITTED)})
"""The time of a retransmission timer is no round trip: the first SYN was lost."""

Result = tuple[int, int | None, int | None, bool]
"""(when sent, value or None for a loss, flow, whether our own load was on the path)."""


class Placed(NamedTuple):
    """Losses by direction as far as the reflector's count could place them. `unknown` are not
    placed: some wait for the next answer of the reflector, others stay so.
    """

    sent: int
    forward: int
    reverse: int
    unknown: int

    def bounds(self, direction: Direction) -> tuple[float, float]:
        """Least and greatest share lost there; on the way back, of those that arrived."""
        forward = direction is Direction.FORWARD
        of = self.sent if forward else self.sent - self.forward
        lost = self.forward if forward else self.reverse
        return (lost / of, (lost + self.unknown) / of) if of else (0.0, 1.0)


class PhaseState:
    """Answers and losses while our own load was on the path, or while it was not."""

    __slots__ = ("answers", "lost")

    def __init__(self) -> None:
        self.answers = Sketch()
        self.lost = 0

    @property
    def loss_ratio(self) -> float | None:
        """0 to 1; None where nothing was sent then."""
        sent = self.answers.n + self.lost
        return self.lost / sent if sent else None

    def take(self, value_ns: int | None) -> None:
        """An answer, or a loss (None)."""
        if value_ns is None:
            self.lost += 1
        else:
            self.answers.add(value_ns)


class HostState:
    """Statistics of one series. `sent` counts packets whose fate is known: answered or lost.

    `flows` says that flows were asked for, each many packets long. Otherwise a probe may use a new
    one for each packet, and all of them are one stream.
    """

    def __init__(
        self,
        *,
        host: str,
        probe: str,
        address: str,
        start_unix_ns: int,
        column_ns: int,
        timeout_ns: int,
        flows: bool = False,
    ) -> None:
        self.host = host
        self.probe = probe
        self.address = address
        self.started_unix_ns = start_unix_ns
        self.answers = Sketch()
        self.phases: dict[Phase | None, PhaseState] = {
            one: PhaseState() for one in (Phase.IDLE, Phase.RAMPING, Phase.LOADED)
        }
        self.ipdv = Sketch()
        self.lost = 0
        self.not_sent = 0
        self.failures: Counter[str] = Counter()
        self.last_failure = ""
        self.flags: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.clocks: Counter[str] = Counter()
        self.flows: dict[int, Sketch] = {}
        self._by_flow = flows
        self.directions = Directions()
        self.watch = OutageWatch()
        self.last_outage: Outage | None = None
        self.last_ns: int | None = None
        self.strip = Strip(start_unix_ns, column_ns, timeout_ns)
        self.own_load: OurLoad | None = None
        """What our own load came to; None where there is none."""
        self._order: InOrder[Result | None] = InOrder(timeout_ns)
        self._before: dict[int | None, int] = {}

    @property
    def sent(self) -> int:
        """Packets that were answered or are lost."""
        return self.answers.n + self.lost

    @property
    def loss_ratio(self) -> float | None:
        """Share of packets lost, 0 to 1; None while the fate of none is known."""
        return self.lost / self.sent if self.sent else None

    @property
    def lost_by_direction(self) -> Placed | None:
        """Losses that the reflector's own count could place; None where it does not count."""
        if STATELESS in self.counted or self.probe != "stamp" or not self.answers.n:
            return None
        forward = min(self.lost, self.counted["lost_forward"])
        reverse = min(self.lost - forward, self.counted["lost_reverse"])
        return Placed(self.sent, forward, reverse, self.lost - forward - reverse)

    def take(self, sample: Sample, primary: str, phase: Phase | None = None) -> Outage | None:
        """Take one sample; `primary` is the metric of which each send has exactly one.

        `phase` is None where no load of our own is planned. The outage that was noticed or ended
        with this sample is returned.
        """
        if sample.metric == primary:
            return self._take_primary(sample, phase)
        if sample.metric in TRANSITS and sample.value_ns is not None and not self._by_flow:
            if Flag.CLOCK_STEP in sample.flags:
                self.directions.clear()
            else:
                self.directions.add(sample.seq, sample.metric, sample.sent_unix_ns, sample.value_ns)
        return None

    def count(self, word: str) -> None:
        """Something that is no sample: ``duplicate``, ``late``, ``foreign`` ..."""
        self.counted[word] += 1

    def finish(self) -> Outage | None:
        """Nothing more will come: look at what still waited for earlier packets."""
        return self._in_order(self._order.rest())

    def _take_primary(self, sample: Sample, phase: Phase | None) -> Outage | None:
        self.flags.update(sample.flags)
        if sample.failure is not None and _was_not_sent(sample.failure):
            self._not_sent(sample)
            return self._in_order(self._order.push(sample.seq, None, sample.sent_unix_ns))
        value = None if NOT_ROUND_TRIPS.intersection(sample.flags) else sample.value_ns
        self.strip.add(sample.sent_unix_ns, value, loaded=phase in OWN_LOAD)
        if phase in self.phases:
            self.phases[phase].take(value)
        if value is None:
            self._loss(sample)
        else:
            self._answer(sample, value)
        flow = sample.flow if self._by_flow else None
        result = (sample.sent_unix_ns, value, flow, phase in OURS)
        return self._in_order(self._order.push(sample.seq, result, sample.sent_unix_ns))

    def _not_sent(self, sample: Sample) -> None:
        self.not_sent += 1
        self._explain(sample)

    def _loss(self, sample: Sample) -> None:
        self.lost += 1
        self._explain(sample)

    def _answer(self, sample: Sample, value: int) -> None:
        self.last_ns = value
        self.answers.add(value)
        self.clocks[sample.clock_source] += 1
        flow = sample.flow if self._by_flow else None
        if flow is not None and (flow in self.flows or len(self.flows) < MOST_FLOWS):
            self.flows.setdefault(flow, Sketch()).add(value)

    def _explain(self, sample: Sample) -> None:
        failure = sample.failure
        if failure is None:
            self.failures[Flag.SYN_RETRANSMITTED] += 1
            return
        self.failures[failure.kind] += 1
        self.last_failure = failure.kind.replace("_", " ")
        if failure.detail and failure.kind is not FailureKind.TIMEOUT:
            self.last_failure += f": {failure.detail}"
        elif sample.responder:
            self.last_failure += f" (says {sample.responder})"

    def _in_order(self, ready: list[Numbered[Result | None]]) -> Outage | None:
        """Successive packets in order of sending: IPDV, and losses in a row."""
        news: Outage | None = None
        for _, result, gap in ready:
            if result is None or gap:
                self._before.clear()
                self.watch.cut()
            if result is None:
                continue
            sent, value, flow, ours = result
            self._vary(value, flow)
            if ours and value is None:
                continue  # our own load may have pushed it out: no outage of the path
            outage = self.watch.feed(sent, lost=value is None)
            if outage is not None:
                self.last_outage = news = outage
        return news

    def _vary(self, value: int | None, flow: int | None) -> None:
        """IPDV (RFC 3393) of successive packets of one flow: two paths are no variation of one."""
        before = self._before.pop(flow, None)
        if value is None:
            return
        if before is not None:
            self.ipdv.add(abs(value - before))
        if len(self._before) < MOST_FLOWS:
            self._before[flow] = value


def _was_not_sent(failure: Failure) -> bool:
    """This host did not ask the network, or did not know whom to ask."""
    return failure.kind in NOT_SENT or failure.stage is Stage.RESOLVE
