"""scamper's JSON as it lies in a file: what ``scamper -O json`` and ``sc_warts2json`` write.

Only what is imported is named here; the decoder passes over everything else.
"""

from typing import Annotated, Literal

import msgspec

SECOND, MICROSECOND = 1_000_000_000, 1_000
NO_RTT = -1e300
"""Stands for a reply without ``rtt``."""

Limit = Annotated[int, msgspec.Meta(ge=1, le=255)]
Octet = Annotated[int, msgspec.Meta(ge=0, le=255)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Flow = Annotated[int, msgspec.Meta(ge=0, le=2**32)]


class Time(msgspec.Struct, gc=False, frozen=True):
    """Unix time that still fits 64 bits in nanoseconds."""

    sec: Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000)]
    usec: Annotated[int, msgspec.Meta(ge=0, lt=1_000_000)] = 0

    @property
    def unix_ns(self) -> int:
        """Since the epoch."""
        return self.sec * SECOND + self.usec * MICROSECOND


class LabelEntry(msgspec.Struct, gc=False, frozen=True):
    """One entry of an MPLS label stack (RFC 4950)."""

    mpls_label: int
    mpls_exp: int
    mpls_s: int
    mpls_ttl: int


class Extension(msgspec.Struct, gc=False, frozen=True):
    """One object of an ICMP extension (RFC 4884)."""

    ie_cn: int = 0
    ie_ct: int = 0
    mpls_labels: list[LabelEntry] = []


class HopReply(msgspec.Struct, gc=False, frozen=True):
    """One answer in a ``trace``; packets without one are only counted there."""

    addr: str
    probe_ttl: Limit
    probe_id: Count = 0
    rtt: float = NO_RTT
    tx: Time | None = None
    reply_ttl: Octet = 0
    icmp_type: Octet | None = None
    icmp_code: Octet | None = None
    icmp_q_ttl: Octet | None = None
    icmpext: msgspec.Raw = msgspec.Raw()


class Trace(msgspec.Struct, frozen=True):
    """``trace``: one flow, or none that can be named (methods that are no Paris ones)."""

    type: Literal["trace"]
    src: str
    dst: str
    start: Time
    method: str = ""
    stop_reason: str = ""
    stop_data: int = 0
    probe_size: Count | None = None
    probe_count: Count = 0
    icmp_sum: Flow | None = None
    sport: Flow | None = None
    hops: list[HopReply] = []


class LinkReply(msgspec.Struct, gc=False, frozen=True):
    """One answer in a ``tracelb``."""

    rtt: float = NO_RTT
    ttl: Octet = 0
    icmp_type: Octet | None = None
    icmp_code: Octet | None = None
    icmp_q_ttl: Octet | None = None
    icmpext: msgspec.Raw = msgspec.Raw()


class LinkProbe(msgspec.Struct, gc=False, frozen=True):
    """One packet in a ``tracelb``, with the answers to it."""

    ttl: Limit
    flowid: Flow
    tx: Time | None = None
    replies: list[LinkReply] = []


class Link(msgspec.Struct, gc=False, frozen=True):
    """Where packets that passed a node came next. ``*``: nobody answered."""

    addr: str
    probes: list[LinkProbe] = []


class Node(msgspec.Struct, gc=False, frozen=True):
    """A router, with what follows one hop limit later, two (behind a silent hop) ..."""

    addr: str
    linkc: Count = 0
    links: list[list[Link]] = []


class TraceLb(msgspec.Struct, frozen=True):
    """``tracelb``: many flows, by the MDA."""

    type: Literal["tracelb"]
    src: str
    dst: str
    start: Time
    method: str = ""
    probe_size: Count | None = None
    confidence: Count = 0
    probec: Count = 0
    probec_max: Count = 0
    nodes: list[Node] = []


class Envelope(msgspec.Struct, frozen=True):
    """What tells the kind of a line. Lines of M-Lab's archive begin with one of metadata."""

    type: str = ""
    hostname: str = ""
    uuid: str | None = msgspec.field(default=None, name="UUID")
