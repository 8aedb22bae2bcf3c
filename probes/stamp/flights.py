"""What a Session-Sender remembers: of each packet, and of each session."""

from typing import NamedTuple

import msgspec

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


class Flight(msgspec.Struct, gc=False):
    """One packet, from its sending on; after its outcome still known, for copies of the reply.

    `left_by_kernel` is T3 by the kernel of the reflector, as in a packet: from the Follow-Up of a
    later reply. `session` and what it holds refer to each other only until the outcome.
    """

    shot: Shot
    session: "SenderState"
    number: int
    t1: int
    sent: Reading
    deadline_ns: int
    key: tuple[int, int] | None = None
    kernel_sent_unix_ns: int | None = None
    answer: Answer | None = None
    left_by_kernel: int | None = None
    duplicated: bool = False
    done: bool = False
    timed_out: bool = False


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
