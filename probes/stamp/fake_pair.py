"""A sender and a reflector that talk to each other without a network, in fake time; for tests."""

from collections import Counter
from dataclasses import dataclass, field

from pathbudget.probes.channels import Datagram, DatagramBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import AddressFamily, Metric, Sample, Target
from pathbudget.probes.stamp.events import Outcome
from pathbudget.probes.stamp.reflector_session import Answer, ReflectorSession
from pathbudget.probes.stamp.sender_session import SenderSession

MS = 1_000_000
SERIES = 7
UNIX_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000
NEAR, FAR = "192.0.2.100", "192.0.2.1"
SENDER_PORT, PORT = 40_000, 8620
FORWARD_NS, RESIDENCE_NS, SEND_CALL_NS, REVERSE_NS = 30 * MS, 40_000, 10_000, 20 * MS


@dataclass
class FakePair:
    """`step` sends one packet and has it answered, or lost; then time moves on by the interval.

    A packet takes 30 ms there and 20 ms back. Either end reads its clock 10 us before its kernel
    stamps the packet, and the reflector holds it for 40 us before that.
    """

    sender: SenderSession
    reflector: ReflectorSession
    interval_ns: int = 100 * MS
    timeout_ns: int = 250 * MS
    offset_ns: int = 0
    """By how much the reflector's clock is ahead."""
    now_ns: int = 0
    samples: list[Sample] = field(default_factory=list[Sample])
    counts: Counter[str] = field(default_factory=Counter[str])
    answers: list[Answer] = field(default_factory=list[Answer])
    seq: int = 0

    def reading(self, now_ns: int | None = None) -> Reading:
        """Both clocks of the sender."""
        now = self.now_ns if now_ns is None else now_ns
        return Reading(MONOTONIC_NS + now, UNIX_NS + now, 100)

    def send(self) -> bytes:
        """One request, as it leaves: its kernel stamp is 10 us later."""
        target = Target("far", FAR, port=PORT)
        due = MONOTONIC_NS + self.now_ns
        shot = Shot(
            SERIES, self.seq, target, FAR, AddressFamily.IPV4, self.timeout_ns, 0, due_ns=due
        )
        number, payload = self.sender.request(shot, self.reading())
        self.sender.sent(number, 0, self.seq)
        stamp = UNIX_NS + self.now_ns + SEND_CALL_NS
        self.sender.receive(0, DatagramBatch(sent=[(self.seq, stamp)]), self.reading())
        self.seq += 1
        return payload

    def reflect(self, request: bytes, sender_port: int = SENDER_PORT) -> Answer | None:
        """What the reflector says to a request that was sent now."""
        came = UNIX_NS + self.now_ns + SEND_CALL_NS + FORWARD_NS + self.offset_ns
        left = came + RESIDENCE_NS
        answer = self.reflector.receive(
            request, NEAR, sender_port, FAR, 60, 0, came, left, MONOTONIC_NS + self.now_ns
        )
        if answer is not None:
            self.answers.append(answer)
            self.reflector.sent(answer, len(self.answers))
            self.reflector.transmitted(len(self.answers), left + SEND_CALL_NS)
        return answer

    def must_reflect(self, request: bytes) -> Answer:
        """As `reflect`, where an answer is expected."""
        answer = self.reflect(request)
        if answer is None:
            raise AssertionError(f"not answered: {dict(self.reflector.refused)}")
        return answer

    def arrive(self, payload: bytes, *, sender: str = FAR, late_ns: int = 0) -> None:
        """A reply to the packet that was sent now comes to the sender."""
        took = SEND_CALL_NS + FORWARD_NS + RESIDENCE_NS + SEND_CALL_NS + REVERSE_NS + late_ns
        stamp = UNIX_NS + self.now_ns + took
        datagram = Datagram(payload, sender, PORT, NEAR, 55, 0, stamp)
        now = self.reading(self.now_ns + took + 50_000)
        self.sender.receive(0, DatagramBatch(arrivals=[datagram]), now)
        self.collect()

    def step(self, *, forward: bool = True, reverse: bool = True) -> None:
        """One packet, lost on neither way unless it is said."""
        request = self.send()
        if forward:
            answer = self.must_reflect(request)
            if reverse:
                self.arrive(answer.payload)
        self.pass_time()

    def pass_time(self, by_ns: int | None = None) -> None:
        """Time moves on, and what is due times out."""
        self.now_ns += self.interval_ns if by_ns is None else by_ns
        self.sender.expire(self.reading())
        self.collect()

    def end(self) -> None:
        """Until everything has its outcome."""
        self.pass_time(10 * self.timeout_ns)
        self.sender.finish()
        self.collect()

    def collect(self) -> None:
        """Take what the sender has to say."""
        for event in self.sender.events():
            if isinstance(event, Outcome):
                self.samples.extend(event.samples)
            else:
                self.counts[event.word] += 1

    def of(self, metric: Metric) -> list[Sample]:
        """The samples of one metric, by their number."""
        return sorted(
            (one for one in self.samples if one.metric == metric), key=lambda one: one.seq
        )

    def failures(self) -> list[Sample]:
        """The packets without a number."""
        return [one for one in self.of(Metric.RTT) if one.failure is not None]
