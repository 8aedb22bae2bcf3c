"""RIPE Atlas results as they lie in a file, all firmware versions in one shape per type.

Field names are those of https://atlas.ripe.net/docs/apis/measurement-result-format/. Only what is
imported is named here; the decoder passes over everything else. Fields of `Ping` stand in the order
in which the platform writes them, because the decoder finds them faster so.
"""

from typing import Annotated, Literal

import msgspec

from pathbudget.probes.record import AddressFamily

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
NO_RTT = -1e300
"""Stands for a reply without ``rtt``."""
LONGEST_RTT = 100_000_000
"""Milliseconds (28 hours). Up to here a float64, times 10^6 and rounded, is the written decimal."""

Seconds = Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000)]
"""Unix time that still fits 64 bits in nanoseconds."""
Id = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Hops = Annotated[int, msgspec.Meta(ge=0, le=255)]


class PingReply(msgspec.Struct, gc=False, frozen=True):
    """One packet, or one answer too many (`dup`)."""

    rtt: float = NO_RTT
    dup: bool | int = False
    ttl: Hops = 0
    x: str = ""
    error: str = ""
    late: bool | int = False


class Ping(msgspec.Struct, gc=False, kw_only=True):
    """``ping``, since firmware 4400. A time to live of 0 stands for none."""

    fw: Id = 0
    lts: int | None = None
    dst_name: str | None = None
    af: int | None = None
    dst_addr: str | None = None
    ttl: Hops | None = None
    result: list[PingReply]
    dup: int | None = 0
    rcvd: int | None = None
    sent: int | None = None
    msm_id: Id
    prb_id: Id
    timestamp: Seconds
    type: Literal["ping"]
    step: int | None = None
    addr: str | None = None
    name: str | None = None
    pf: int | None = None
    error: str | None = None
    dnserr: str | None = None


class PingTotals(msgspec.Struct, kw_only=True):
    """``ping`` without ``result``: the oldest firmware, which kept no single packet."""

    fw: Id = 0
    lts: int | None = None
    dst_name: str | None = None
    af: int | None = None
    dst_addr: str | None = None
    ttl: Hops | None = None
    rcvd: int = 0
    sent: int = 0
    min: float = NO_RTT
    max: float = NO_RTT
    avg: float = NO_RTT
    msm_id: Id
    prb_id: Id
    timestamp: Seconds
    type: Literal["ping"]
    result: None = None
    step: int | None = None
    addr: str | None = None
    name: str | None = None
    pf: int | None = None
    error: str | None = None
    dnserr: str | None = None


class HopReply(msgspec.Struct, gc=False, frozen=True, rename={"origin": "from"}):
    """One packet of one hop. `late` is an answer to an earlier packet, `x` no answer in time."""

    origin: str = ""
    rtt: float = NO_RTT
    ttl: Hops = 0
    err: str | int | None = None
    late: bool | int | None = None
    dup: bool | int = False
    x: str = ""
    error: str = ""
    ittl: Hops | None = None
    """Hop limit of the packet as it was quoted, where it is not 1."""
    mtu: int | None = None
    icmpext: msgspec.Raw = msgspec.Raw()
    """ICMP extensions (RFC 4884), read apart: a strange one spoils no answer."""


class LabelEntry(msgspec.Struct, gc=False, frozen=True):
    """One entry of an MPLS label stack (RFC 4950)."""

    label: int
    exp: int
    s: int
    ttl: int


class Extension(msgspec.Struct, gc=False, frozen=True, rename={"kind": "class", "sub": "type"}):
    """One object of an ICMP extension; class 1, type 1 is a label stack."""

    kind: int = 0
    sub: int = 0
    mpls: list[LabelEntry] = []


class Extensions(msgspec.Struct, gc=False, frozen=True):
    """``icmpext`` of an answer."""

    obj: list[Extension] = []


class Hop(msgspec.Struct, gc=False, frozen=True):
    """All packets sent with one time to live."""

    hop: int = 0
    result: list[HopReply] = []
    error: str = ""


class Traceroute(msgspec.Struct, kw_only=True, rename={"origin": "from"}):
    """``traceroute``. In firmware 1 `result` is the text that the command printed.

    `origin` and `src_addr` are the probe's own addresses, known so as not to be stored.
    """

    fw: Id = 0
    lts: int | None = None
    endtime: Seconds | None = None
    dst_name: str | None = None
    dst_addr: str | None = None
    proto: str = ""
    af: int | None = None
    size: int | None = None
    paris_id: int | None = None
    """Number of the flow; 0 is classic traceroute, where every packet is a flow of its own."""
    origin: str | None = None
    src_addr: str | None = None
    result: list[Hop] | str | None = None
    msm_id: Id
    prb_id: Id
    timestamp: Seconds
    type: Literal["traceroute"]
    step: int | None = None
    addr: str | None = None
    name: str | None = None
    pf: int | None = None
    error: str | None = None
    dnserr: str | None = None


class Alert(msgspec.Struct, gc=False, frozen=True):
    """TLS alert (RFC 8446 section 6). Some firmware misspells the key."""

    level: int = 0
    description: int | None = None
    decription: int | None = None


class SslCert(msgspec.Struct, kw_only=True):
    """``sslcert``. `ttc` and `rt` are both counted from the SYN, in ms; `ttr` is the resolver's."""

    fw: Id = 0
    lts: int | None = None
    dst_name: str | None = None
    dst_port: int | str | None = None
    dst_addr: str | None = None
    af: int | None = None
    ttr: float = NO_RTT
    ttc: float = NO_RTT
    rt: float = NO_RTT
    alert: Alert | None = None
    cert: list[msgspec.Raw] | None = None
    err: str | None = None
    error: str | None = None
    dnserr: str | None = None
    sockerr: str | None = None
    msm_id: Id
    prb_id: Id
    timestamp: Seconds
    type: Literal["sslcert"]
    step: int | None = None
    addr: str | None = None
    name: str | None = None
    pf: int | None = None


class Envelope(msgspec.Struct, kw_only=True):
    """What every result has."""

    type: str
    msm_id: Id
    prb_id: Id
    timestamp: Seconds
    fw: int | str
    result: msgspec.Raw = msgspec.Raw(b"null")


class Addresses(msgspec.Struct, rename={"public": "from"}):
    """Addresses of the probe: near-personal, decoded only when they are to be kept."""

    public: str | None = None
    src_addr: str | None = None
    srcaddr: str | None = None


Result = Ping | PingTotals | Traceroute | SslCert


def nanoseconds(milliseconds: float) -> int | None:
    """The written decimal number of milliseconds in ns; None for what cannot be a round trip."""
    if 0 <= milliseconds <= LONGEST_RTT:
        return round(milliseconds * MILLISECOND)
    return None


def family_of(result: Result) -> AddressFamily | None:
    """From `af`, from `pf` of old firmware, else from the look of the address."""
    version = result.af or result.pf
    if version is None and (address := address_of(result)):
        version = 6 if ":" in address else 4
    return {4: AddressFamily.IPV4, 6: AddressFamily.IPV6}.get(version or 0)


def address_of(result: Result) -> str:
    """The address that was probed; empty when the name did not resolve."""
    return result.dst_addr or result.addr or ""


def name_of(result: Result) -> str:
    """The name that was asked for, or the address where there is none."""
    return result.dst_name or result.name or address_of(result)
