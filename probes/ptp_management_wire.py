"""PTP management messages (IEEE 1588, clause 15) as linuxptp's ptp4l answers them on its socket.

    header    34 octets: type 13, version 2, length, domain, ..., source port identity, sequence
    then      target port identity 10, hops 2, action 1, reserved 1
    TLV       type 2 (1 is management), length 2, management id 2, data

No sockets here: bytes in, values out.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from pathbudget.probes.clock_statement import UNSYNCHRONISED, ClockStatement

MESSAGE_TYPE, VERSION = 0x0D, 2
CURRENT_DATA_SET, PARENT_DATA_SET, TIME_PROPERTIES = 0x2001, 0x2002, 0x2003
TIME_STATUS_NP = 0xC000
"""linuxptp's own: whether there is a grandmaster, and the last offset from it."""
QUESTIONS = (CURRENT_DATA_SET, PARENT_DATA_SET, TIME_PROPERTIES, TIME_STATUS_NP)
TRACEABLE_CLASSES = (6, 7)
"""clockClass of a grandmaster that is, or lately was, locked to a primary reference (table 4)."""
PTP_TIMESCALE, UTC_OFFSET_VALID = 1 << 3, 1 << 2
LARGEST_NS = 10**18

_GET, _RESPONSE, _MANAGEMENT_TLV = 0, 2, 1
_HEADER = struct.Struct(">BBHBBHqI8sHHBb")
_ACTION = struct.Struct(">8sHBBBB")
_TLV = struct.Struct(">HHH")
_DATA_AT = _HEADER.size + _ACTION.size + _TLV.size
_CURRENT = struct.Struct(">Hqq")
_PARENT = struct.Struct(">10sBBHIBBBHB8s")
_PROPERTIES = struct.Struct(">HBB")
_STATUS = struct.Struct(">qqiiH12si8s")


class Answer(NamedTuple):
    """One data set that ptp4l has sent."""

    domain: int
    question: int
    data: bytes


def get_request(question: int, domain: int, port: int, sequence: int) -> bytes:
    """Ask for one data set; `port`, any 16 bits of our own, comes back with the answer."""
    length = _DATA_AT
    head = (MESSAGE_TYPE, VERSION, length, domain, 0, 0, 0, 0, bytes(8), port, sequence, 4, 0x7F)
    everybody = _ACTION.pack(b"\xff" * 8, 0xFFFF, 0, 0, _GET, 0)
    return _HEADER.pack(*head) + everybody + _TLV.pack(_MANAGEMENT_TLV, 2, question)


def read_answer(message: bytes, port: int) -> Answer | None:
    """One answer to us; None for anything else. Never raises."""
    if len(message) < _DATA_AT:
        return None
    kind, version, _, domain, *_ = _HEADER.unpack_from(message)
    _, target, _, _, action, _ = _ACTION.unpack_from(message, _HEADER.size)
    tlv, length, question = _TLV.unpack_from(message, _HEADER.size + _ACTION.size)
    if kind & 0x0F != MESSAGE_TYPE or version & 0x0F != VERSION or target != port:
        return None
    if action & 0x0F != _RESPONSE or tlv != _MANAGEMENT_TLV:
        return None
    data = message[_DATA_AT : _DATA_AT + max(0, length - 2)]
    return Answer(domain, question, data)


def read_state(answers: Mapping[int, bytes], *, bounded: bool) -> ClockStatement | None:
    """What ptp4l says of the clock that it disciplines, from the data sets of one domain.

    Bound: |offset from the master| + mean path delay (were all of it in one direction) + the
    accuracy that the grandmaster claims; none where the grandmaster is not traceable to UTC, where
    it does not say how far PTP time is from UTC, or where `bounded` is false because ptp4l may be
    disciplining a clock of a network card. None without an answer that can be read.
    """
    try:
        _, offset, delay = _CURRENT.unpack_from(answers[CURRENT_DATA_SET])
        parent = _PARENT.unpack_from(answers[PARENT_DATA_SET])
        _, flags, _ = _PROPERTIES.unpack_from(answers[TIME_PROPERTIES])
        present = _STATUS.unpack_from(answers[TIME_STATUS_NP])[6]
    except (KeyError, struct.error):
        return None
    if not present:
        return UNSYNCHRONISED
    offset_ns, delay_ns = -(-abs(offset) >> 16), -(-abs(delay) >> 16)
    if max(offset_ns, delay_ns) > LARGEST_NS:
        return None
    accuracy_ns = accuracy_of(parent[7]) if parent[6] in TRACEABLE_CLASSES else None
    utc = not flags & PTP_TIMESCALE or flags & UTC_OFFSET_VALID
    known = bounded and utc and accuracy_ns is not None
    return ClockStatement(
        synchronised=True,
        bound_ns=offset_ns + delay_ns + (accuracy_ns or 0) if known else None,
        estimated_ns=offset_ns,
    )


def accuracy_of(code: int) -> int | None:
    """clockAccuracy in nanoseconds, rounded up (IEEE 1588-2019, table 5): 1 and 2.5 picoseconds
    times powers of ten from 0x17 to 0x2F; None where it is unknown or worse than a second.
    """
    if not 0x17 <= code <= 0x2F:
        return None
    decade, half = divmod(code - 0x17, 2)
    tenths_of_ps = (25 if half else 10) * int(10**decade)
    return -(-tenths_of_ps // 10_000)
