"""All that is remembered of the path to one address, round after round, in bounded memory. Pure.

Samples go in as they come (`docs/probes/trace.md` says what they are); `hops` is what a view shows.
"""

from collections import Counter
from dataclasses import dataclass, field

from pathbudget.agents.ping.sketch import Sketch
from pathbudget.agents.ping.strip import Strip
from pathbudget.probes.record import FailureKind, Metric, Note, Sample, Stage
from pathbudget.probes.trace.contract import HopNote

MOST_ADDRESSES = 64
"""Of one hop limit; more are counted together under the last one's name."""
MOST_OPEN = 16
"""Rounds that are under way at once; an older one that never ended is forgotten."""
OTHERS = "others"
Address = str
FlowHops = dict[int, Address | None]
"""Who answered by hop limit; None: nobody did."""


@dataclass(slots=True)
class Router:
    """One address at one hop limit."""

    address: Address
    strip: Strip
    rtt: Sketch = field(default_factory=Sketch)
    labels: str = ""
    mtu: int | None = None
    translated: bool = False
    return_hops: int | None = None
    refusal: str = ""
    """Type and code of the ICMP message where it was not the usual one."""
    interface: str = ""


@dataclass(slots=True)
class HopState:
    """What was sent with one hop limit, and who answered."""

    limit: int
    sent: int = 0
    answered: int = 0
    routers: dict[Address, Router] = field(default_factory=dict[Address, Router])
    silence: Strip | None = None


@dataclass(slots=True)
class Round:
    """One trace: what each flow passed."""

    number: int
    flows: dict[int, FlowHops] = field(default_factory=dict[int, FlowHops])
    stopped: str = ""
    complete: bool | None = None
    confidence: float | None = None
    reached: bool = False
    path_mtu: int | None = None
    black_hole: int | None = None
    """Hop limit behind which long packets vanish without a word."""
    per_packet: str = ""
    """Hop limits at which one flow met several routers."""
    limited: frozenset[int] = frozenset()
    """Hop limits at which the trace itself found that silence is no loss: asked again, they answer.
    """
    changed: bool = False
    """The path changed under way; what was seen before that is left out."""
    unprivileged: bool = False
    failure: str = ""
    arrived: dict[int, int] = field(default_factory=dict[int, int])
    """The smallest hop limit with which each flow got to the destination: its path ends there,
    though probes may have been sent beyond.
    """

    sent: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """When the latest probe of a flow with a hop limit left."""

    def put(
        self, flow: int, limit: int, who: Address | None, at_unix_ns: int, *, arrived: bool
    ) -> None:
        """Who answered a probe; an answer counts more than silence before or after it."""
        hops = self.flows.setdefault(flow, {})
        self.sent[flow, limit] = max(at_unix_ns, self.sent.get((flow, limit), 0))
        if arrived and limit < self.arrived.get(flow, limit + 1):
            self.arrived[flow] = limit
            for beyond in [one for one in hops if one > limit]:
                del hops[beyond]
        if limit > self.arrived.get(flow, limit):
            return
        if who is not None:
            hops[limit] = who
        else:
            hops.setdefault(limit, None)

    def read(self, notes: dict[str, Note]) -> None:
        """What the destination's sample says of the whole trace. Call it once, at the end."""
        self.stopped = str(notes.get(HopNote.STOPPED, ""))
        complete, confidence = notes.get(HopNote.COMPLETE), notes.get(HopNote.CONFIDENCE)
        self.complete = bool(complete) if complete is not None else None
        self.confidence = float(confidence) if isinstance(confidence, int | float) else None
        self.path_mtu = _number(notes.get(HopNote.PATH_MTU))
        self.black_hole = _number(notes.get(HopNote.BLACK_HOLE))
        self.per_packet = str(notes.get(HopNote.PER_PACKET, ""))
        self.limited = frozenset(map(int, str(notes.get(HopNote.LIMITED, "")).split()))
        self.unprivileged = notes.get(HopNote.UNPRIVILEGED) is True
        changed = _number(notes.get(HopNote.CHANGED))
        if changed is not None:
            self.changed = True
            self.forget_before(changed)
        self.sent.clear()

    def forget_before(self, unix_ns: int) -> None:
        """The path changed then: what was seen before is of one that is no more."""
        for (flow, limit), at in self.sent.items():
            if at < unix_ns:
                self.flows[flow].pop(limit, None)
        self.flows = {flow: hops for flow, hops in self.flows.items() if hops}

    def addresses(self, limit: int) -> Counter[Address]:
        """Who answered there, by number of flows."""
        found = (hops.get(limit) for hops in self.flows.values())
        return Counter(address for address in found if address is not None)

    def asked(self, limit: int) -> int:
        """Flows that were probed there."""
        return sum(limit in hops for hops in self.flows.values())

    @property
    def longest(self) -> int:
        """The greatest hop limit that somebody answered; that of silence only where nobody did."""
        answered = [n for hops in self.flows.values() for n, who in hops.items() if who is not None]
        return max(
            answered, default=max((max(h, default=0) for h in self.flows.values()), default=0)
        )


class PathState:
    """One target address. `column_ns` is the time of one column of the strips."""

    def __init__(
        self,
        *,
        host: str,
        address: str,
        start_unix_ns: int,
        column_ns: int,
        timeout_ns: int,
    ) -> None:
        self.host = host
        self.address = address
        self.started_unix_ns = start_unix_ns
        self.hops: dict[int, HopState] = {}
        self.target = Sketch()
        """Round trips to the destination on the first flow, one a round."""
        self.rounds = 0
        self.reached = 0
        self.left_out = 0
        """Rounds that never began, because earlier ones were still under way."""
        self.first: Round | None = None
        self.latest: Round | None = None
        self.failures: Counter[str] = Counter()
        self.protocol = ""
        self.port: int | None = None
        self.counted: Counter[str] = Counter()
        self._column_ns = column_ns
        self._timeout_ns = timeout_ns
        self._open: dict[int, Round] = {}

    @property
    def shown(self) -> Round | None:
        """The latest round that ended; before the first has, what is known of it."""
        return self.latest or next(iter(self._open.values()), None)

    def take(self, sample: Sample) -> Round | None:
        """Keep one sample; the round that it ended, if it did. One that was left out is none."""
        if sample.metric == Metric.HOP_RTT:
            self._take_hop(sample)
            return None
        if sample.metric != Metric.RTT:
            return None
        if sample.seq not in self._open and _not_sent(sample):
            self.left_out += 1
            return None
        return self._end(sample)

    def _take_hop(self, sample: Sample) -> None:
        if sample.part is None:
            return
        hop = self.hops.setdefault(sample.part, HopState(sample.part))
        hop.sent += 1
        flow, current = sample.flow or 0, self._round(sample.seq)
        if sample.value_ns is None:
            current.put(flow, sample.part, None, sample.sent_unix_ns, arrived=False)
            if hop.silence is None:
                hop.silence = self._strip()
            hop.silence.add(sample.sent_unix_ns, None)
            return
        hop.answered += 1
        router = self._router(hop, sample.responder or self.address)
        arrived = sample.responder is None
        current.put(flow, sample.part, router.address, sample.sent_unix_ns, arrived=arrived)
        router.rtt.add(sample.value_ns)
        router.strip.add(sample.sent_unix_ns, sample.value_ns)
        _take_notes(router, sample.notes or {})
        if sample.responder is not None:
            router.refusal = _refusal(sample.responder, sample.notes or {})

    def _router(self, hop: HopState, address: Address) -> Router:
        if address not in hop.routers and len(hop.routers) >= MOST_ADDRESSES:
            address = OTHERS
        if address not in hop.routers:
            hop.routers[address] = Router(address, self._strip())
        return hop.routers[address]

    def _strip(self) -> Strip:
        return Strip(self.started_unix_ns, self._column_ns, self._timeout_ns)

    def _round(self, number: int) -> Round:
        if number not in self._open:
            self._open[number] = Round(number)
            while len(self._open) > MOST_OPEN:
                del self._open[min(self._open)]
        return self._open[number]

    def _end(self, sample: Sample) -> Round:
        ended = self._round(sample.seq)
        del self._open[sample.seq]
        ended.read(sample.notes or {})
        ended.reached = sample.value_ns is not None
        self.protocol = str((sample.notes or {}).get(HopNote.PROTOCOL, self.protocol))
        self.port = _number((sample.notes or {}).get(HopNote.PORT)) or self.port
        self.rounds += 1
        if sample.value_ns is not None:
            self.reached += 1
            self.target.add(sample.value_ns)
        elif sample.failure is not None:
            ended.failure = str(sample.failure.kind)
            self.failures[ended.failure] += 1
        if ended.flows:  # a long round may end after the one that began behind it
            if self.first is None or ended.number < self.first.number:
                self.first = ended
            if self.latest is None or ended.number > self.latest.number:
                self.latest = ended
        return ended


def _not_sent(sample: Sample) -> bool:
    failure = sample.failure
    return failure is not None and failure.kind is FailureKind.LOCAL and failure.stage is Stage.SEND


def _take_notes(router: Router, notes: dict[str, Note]) -> None:
    """What the latest answer said of itself."""
    router.labels = str(notes.get(HopNote.MPLS, router.labels))
    router.interface = str(notes.get(HopNote.INTERFACE, router.interface))
    router.mtu = _number(notes.get(HopNote.MTU)) or router.mtu
    router.translated = router.translated or notes.get(HopNote.TRANSLATED) is True
    back = _number(notes.get(HopNote.RETURN_HOPS))
    router.return_hops = router.return_hops if back is None else back


def _refusal(responder: Address, notes: dict[str, Note]) -> str:
    """Type and code of destination unreachable (RFC 792 type 3, RFC 4443 type 1), or nothing."""
    answer = str(notes.get(HopNote.ICMP, ""))
    return answer if answer.startswith("1/" if ":" in responder else "3/") else ""


def _number(note: Note | None) -> int | None:
    return note if isinstance(note, int) and not isinstance(note, bool) else None
