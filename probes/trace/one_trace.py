"""One trace under way: what its packets find, and what is said of it at its end. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import timed_out
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Note, Sample, Stage
from pathbudget.probes.trace.contract import (
    Answer,
    AnswerKind,
    Flow,
    FlowPacket,
    HopNote,
    TraceProtocol,
)
from pathbudget.probes.trace.enumeration import Enumeration
from pathbudget.probes.trace.flow_keys import FlowKeys
from pathbudget.probes.trace.hop_samples import (
    Sent,
    hop_sample,
    no_target_sample,
    refusal,
    silent_sample,
    target_sample,
)
from pathbudget.probes.trace.pace import HopPaces
from pathbudget.probes.trace.path_mtu import MtuProbe, MtuVerdict, PathMtuSearch
from pathbudget.probes.trace.rules import Algorithm, Rules, Stopped, Want

SHORTEST_PATIENCE_NS = 300_000_000
FIRST_PATIENCE_NS = 1_000_000_000
LARGEST_MTU = 9_000
ALL_THE_WAY = 255
_SAYS = {
    Stopped.GAP: "nobody answers any more, nor does the destination",
    Stopped.LIMIT: "the destination is further than max_hops",
    Stopped.BUDGET: "the trace was not done by its deadline or with its packets",
    Stopped.ARRIVED: "the destination answered only other flows",
}
Builder = Callable[[Flow, int, int, int], FlowPacket]
"""Flow, hop limit, token, size."""


@dataclass(slots=True, eq=False)
class OneTrace:
    """One shot. `in_flight` packets have no sample yet, `queued` ones have not left."""

    shot: Shot
    family: AddressFamily
    protocol: TraceProtocol
    port: int
    keys: FlowKeys
    build: Builder
    deadline_ns: int
    rules: Rules
    mtu: bool = False
    notes: dict[str, Note] = field(default_factory=dict[str, Note])
    on_end: Callable[[], None] = lambda: None
    number: int = 0
    enumeration: Enumeration = field(init=False)
    in_flight: int = 0
    queued: int = 0
    packets: int = 0
    first_sent: Reading | None = None
    pace: HopPaces = field(default_factory=HopPaces)
    search: PathMtuSearch | None = None
    _longest_ns: int = 0
    _arrived: dict[int, Sample] = field(default_factory=dict[int, Sample])
    _refused: tuple[Failure, str] | None = None
    _changed_unix_ns: int | None = None
    _unsent: Failure | None = None

    def __post_init__(self) -> None:
        self.enumeration = Enumeration(self.rules, canonical(self.shot.address))

    @property
    def epoch(self) -> int:
        """Packets of an earlier one say nothing of the path of now."""
        return self.enumeration.restarts

    def patience_ns(self) -> int:
        """How long to wait before asking again, or going on. The packet may be answered later."""
        known = 3 * self._longest_ns if self._longest_ns else FIRST_PATIENCE_NS
        return min(self.shot.timeout_ns, max(SHORTEST_PATIENCE_NS, known))

    def wants(self) -> list[Want]:
        """What to send next."""
        before = self.epoch
        wanted = self.enumeration.wanted()
        if self.epoch != before:
            self._forget_the_past()
        return wanted

    def next_mtu_probe(self) -> MtuProbe | None:
        """The next packet that looks for the path MTU; only once the path is known."""
        if not self.mtu or not self._arrived or self.enumeration.spent:
            return None
        if self.search is None:
            hops = self.enumeration.sights.hops
            ends = min(self._arrived)
            named = [n for n, one in hops.items() if n < ends and 0 in one.sights]
            answered = [n for n in named if hops[n].sights[0].names]
            self.search = PathMtuSearch(self.family, LARGEST_MTU, answered)
        return self.search.next()

    def heard(
        self, sent: Sent, answer: Answer, now: Reading, *, translated: bool, ambiguous: bool
    ) -> Sample:
        """A packet was answered: its sample."""
        sample = hop_sample(sent, answer, now, translated=translated, ambiguous=ambiguous)
        assert sample.value_ns is not None
        self._longest_ns = max(self._longest_ns, min(sample.value_ns, self.shot.timeout_ns))
        if sent.mtu_size:
            self._mtu_heard(sent, answer)
        elif sent.epoch == self.epoch:
            self._tell(sent, answer, sample)
        return sample

    def given_up(self, sent: Sent) -> None:
        """A packet was not answered for so long that it is time to go on."""
        if sent.mtu_size:
            assert self.search is not None
            self.search.lost(_mtu_probe(sent))
        elif sent.epoch == self.epoch:
            hop = self.enumeration.sights.hops.get(sent.limit)
            if hop is not None and hop.answers:
                self.pace.unanswered(sent.limit, rationed=hop.late_answers > 0)
            self.enumeration.silent(sent.flow, sent.limit)

    def unsent(self, sent: Sent, failure: Failure) -> Sample:
        """A packet could not leave: its sample."""
        self._unsent = failure
        if sent.mtu_size:
            assert self.search is not None
            self.search.refused(_mtu_probe(sent))
        elif sent.epoch == self.epoch:
            self.enumeration.silent(sent.flow, sent.limit, for_good=True)
        return silent_sample(sent, failure)

    def target_sample(self, now: Reading) -> Sample:
        """The sample of the whole trace."""
        began = self.first_sent or now
        notes = self._all_notes()
        if self._arrived:
            return target_sample(self.shot, self._arrived[min(self._arrived)], began, notes)
        failure, responder = self._why_not()
        key = self.keys.flow(0).key
        return no_target_sample(
            self.shot, began, failure, flow=key, responder=responder, notes=notes
        )

    def _tell(self, sent: Sent, answer: Answer, sample: Sample) -> None:
        name = canonical(answer.responder)
        kind = answer.kind
        if kind is AnswerKind.ARRIVED:
            name = self.enumeration.destination
            if sent.flow == 0:
                self._arrived.setdefault(sent.limit, sample)
        elif kind is not AnswerKind.EXCEEDED and sent.flow == 0 and self._refused is None:
            self._refused = (refusal(self.family, answer), name)
        self.pace.answered(sent.limit)
        self.enumeration.answered(
            sent.flow,
            sent.limit,
            name,
            terminal=kind is not AnswerKind.EXCEEDED,
            asked=sent.asked,
        )

    def _mtu_heard(self, sent: Sent, answer: Answer) -> None:
        assert self.search is not None
        if answer.kind in (AnswerKind.ARRIVED, AnswerKind.EXCEEDED):
            self.search.answered(_mtu_probe(sent))
        elif answer.kind is AnswerKind.TOO_BIG:
            self.search.too_big(_mtu_probe(sent), answer.mtu, canonical(answer.responder))
        else:
            self.search.lost(_mtu_probe(sent))

    def _forget_the_past(self) -> None:
        self._arrived.clear()
        self._refused = None
        self._changed_unix_ns = 0

    def note_change(self, now: Reading) -> None:
        """The trace has just begun again."""
        if self._changed_unix_ns == 0:
            self._changed_unix_ns = now.unix_ns

    def _why_not(self) -> tuple[Failure, str | None]:
        stopped = self.enumeration.stopped
        if stopped is Stopped.UNREACHABLE and self._refused is not None:
            return self._refused
        if self._unsent is not None and not self._longest_ns:
            return self._unsent, None
        if stopped is Stopped.LOOP:
            detail = "packets go round in circles"
            return Failure(FailureKind.TIME_EXCEEDED, Stage.WAIT, detail), None
        waited = timed_out(Stage.WAIT, self.shot.timeout_ns)
        detail = f"{waited.detail}: {_SAYS.get(stopped, stopped)}"
        return Failure(FailureKind.TIMEOUT, Stage.WAIT, detail), None

    def _all_notes(self) -> dict[str, Note]:
        found = self.enumeration
        notes: dict[str, Note] = {
            HopNote.PROTOCOL: str(self.protocol),
            HopNote.STOPPED: str(found.stopped),
            HopNote.COMPLETE: found.complete,
            HopNote.PACKETS: self.packets,
            **self.notes,
        }
        if self.port and self.protocol is not TraceProtocol.ICMP:
            notes[HopNote.PORT] = self.port
        if self.rules.algorithm is not Algorithm.PARIS:
            notes[HopNote.CONFIDENCE] = self.rules.confidence
        limited = [n for n, one in sorted(found.sights.hops.items()) if one.limited]
        for key, limits in ((HopNote.LIMITED, limited), (HopNote.PER_PACKET, found.sights.sprayed)):
            if limits:
                notes[key] = " ".join(map(str, limits))
        if self._changed_unix_ns:
            notes[HopNote.CHANGED] = self._changed_unix_ns
        notes.update(self._mtu_notes())
        return notes

    def _mtu_notes(self) -> dict[str, Note]:
        result = None if self.search is None else self.search.result()
        if result is None or result.mtu is None or result.verdict is not MtuVerdict.FOUND:
            return {}
        notes: dict[str, Note] = {HopNote.PATH_MTU: result.mtu}
        if result.narrowed_by is not None:
            notes[HopNote.NARROWED_BY] = result.narrowed_by
        if result.black_hole:
            notes[HopNote.BLACK_HOLE] = result.last_reached or 0
        return notes


def _mtu_probe(sent: Sent) -> MtuProbe:
    return MtuProbe(sent.mtu_size, None if sent.limit == ALL_THE_WAY else sent.limit)
