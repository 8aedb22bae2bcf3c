"""What a Session-Sender remembers: of each packet, and of each session."""

from typing import NamedTuple

from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.stamp.loss_direction import FIRST_NUMBER, Count, LossDirection


class Answer(NamedTuple):
    """A reply that is ours. Timestamps and error estimate as in the packet."""

    read: Reading
    kernel_unix_ns: int | None
    sender: str
    ttl: int | None
    own: int
    """The reflector's sequence number."""
    arrived: int
    """T2"""
    left: int
    """T3"""
    error: int


class Flight:
    """One packet, from its sending on; after its outcome still known, for copies of the reply."""

    __slots__ = (
        "answer",
        "deadline_ns",
        "done",
        "duplicated",
        "kernel_sent_unix_ns",
        "key",
        "left_by_kernel",
        "number",
        "sent",
        "session",
        "shot",
        "t1",
        "timed_out",
    )

    def __init__(
        self, shot: Shot, session: "SenderState", number: int, t1: int, sent: Reading
    ) -> None:
        self.shot = shot
        self.session = session
        self.number = number
        self.t1 = t1
        self.sent = sent
        self.deadline_ns = sent.monotonic_ns + shot.timeout_ns
        self.key: tuple[int, int] | None = None
        self.kernel_sent_unix_ns: int | None = None
        self.answer: Answer | None = None
        self.left_by_kernel: int | None = None
        """T3 by the kernel of the reflector, as in a packet; from the Follow-Up of a later one."""
        self.duplicated = False
        self.done = False
        self.timed_out = False


class SenderState:
    """One STAMP session: one address and port, from one of our ports, under one SSID."""

    __slots__ = (
        "address",
        "flow",
        "follows_up",
        "held",
        "losses",
        "next_number",
        "port",
        "ssid",
        "stateless_told",
    )

    def __init__(
        self, address: str, port: int, flow: int, ssid: int, *, follows_up: bool, count: Count
    ) -> None:
        self.address = address
        self.port = port
        self.flow = flow
        self.ssid = ssid
        self.next_number = FIRST_NUMBER
        self.follows_up = follows_up
        """Whether the reflector can be expected to tell when its last reply really left."""
        self.held: dict[int, Flight] = {}
        """Answered packets that wait for that, by the reflector's sequence number."""
        self.losses = LossDirection(count)
        self.stateless_told = False
