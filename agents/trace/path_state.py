"""All that is remembered of the path to one address, round after round, in bounded memory. Pure.

Samples go in as they come (`docs/probes/trace.md` says what they are); `hops` is what a view shows.
"""

from collections import Counter
from dataclasses import dataclass, field

from pathbudget.agents.ping.sketch import Sketch
from pathbudget.agents.ping.strip import Strip
from pathbudget.probes.record import Metric, Note, Sample
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
    failure: str = ""
    arrived: dict[int, int] = field(default_factory=dict[int, int])
    """The smallest hop limit with which each flow got to the destination: its path ends there,
    though probes may have been sent beyond.
    """

    def put(self, flow: int, limit: int, who: Address | None, *, arrived: bool) -> None:
        """Who answered a probe; an answer counts more than silence before or after it."""
        hops = self.flows.setdefault(flow, {})
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
        """Keep one sample; the round that it ended, if it did."""
        if sample.metric == Metric.HOP_RTT:
            self._take_hop(sample)
            return None
        if sample.metric == Metric.RTT:
            return self._end(sample)
        return None

    def _take_hop(self, sample: Sample) -> None:
        if sample.part is None:
            return
        hop = self.hops.setdefault(sample.part, HopState(sample.part))
        hop.sent += 1
        flow, current = sample.flow or 0, self._round(sample.seq)
        if sample.value_ns is None:
            current.put(flow, sample.part, None, arrived=False)
            if hop.silence is None:
                hop.silence = self._strip()
            hop.silence.add(sample.sent_unix_ns, None)
            return
        hop.answered += 1
        router = self._router(hop, sample.responder or self.address)
        current.put(flow, sample.part, router.address, arrived=sample.responder is None)
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
        notes = sample.notes or {}
        ended.stopped = str(notes.get(HopNote.STOPPED, ""))
        complete, confidence = notes.get(HopNote.COMPLETE), notes.get(HopNote.CONFIDENCE)
        ended.complete = bool(complete) if complete is not None else None
        ended.confidence = float(confidence) if isinstance(confidence, int | float) else None
        ended.path_mtu = _number(notes.get(HopNote.PATH_MTU))
        ended.reached = sample.value_ns is not None
        self.protocol = str(notes.get(HopNote.PROTOCOL, self.protocol))
        self.port = _number(notes.get(HopNote.PORT)) or self.port
        self.rounds += 1
        if sample.value_ns is not None:
            self.reached += 1
            self.target.add(sample.value_ns)
        elif sample.failure is not None:
            ended.failure = str(sample.failure.kind)
            self.failures[ended.failure] += 1
        if ended.flows:
            self.first = self.first or ended
            self.latest = ended
        return ended


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
