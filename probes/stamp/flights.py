"""What a Session-Sender remembers of each packet."""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot

if TYPE_CHECKING:
    from pathbudget.probes.stamp.sender_states import SenderState


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
