"""chronyd's command protocol, version 6: the one request that everybody may make, tracking.

The layout is that of chrony's `candm.h`. All integers are in network order:

    request   version 1, type 1, reserved 2, command 2, attempt 2, sequence 4, padding 8; as long as
              the reply, so that the port cannot amplify
    reply     version 1, type 1, reserved 2, command 2, reply 2, status 2, padding 6, sequence 4,
              padding 8, then the reply's own fields

No sockets here: bytes in, values out.
"""

import struct

from pathbudget.probes.clock_statement import UNSYNCHRONISED, ClockStatement, root_distance

VERSION = 6
REQUEST_TYPE, REPLY_TYPE = 1, 2
TRACKING_REQUEST, TRACKING_REPLY = 33, 5
SUCCESS = 0
LEAP_UNSYNCHRONISED = 3
LOCAL_REFERENCE = 0x7F7F0101
"""Reference identifier 127.127.1.1: chronyd serves its own undisciplined clock (`local`)."""

_REQUEST = struct.Struct(">BBHHHI8x")
_REPLY = struct.Struct(">BBHHHH6xI8x")
_TRACKING = struct.Struct(">I20xHH12x9I")
"""reference id, address, stratum, leap status, reference time, then nine of chrony's floats."""
REPLY_BYTES = _REPLY.size + _TRACKING.size


def tracking_request(sequence: int) -> bytes:
    """Ask for what ``chronyc tracking`` shows; `sequence` comes back in the reply."""
    head = _REQUEST.pack(VERSION, REQUEST_TYPE, 0, TRACKING_REQUEST, 0, sequence)
    return head.ljust(REPLY_BYTES, b"\0")


def read_tracking(reply: bytes, sequence: int) -> ClockStatement | None:
    """What chronyd says of the clock; None where this is no answer to our request. Never raises."""
    if len(reply) < REPLY_BYTES:
        return None
    version, kind, _, command, answer, status, number = _REPLY.unpack_from(reply)
    expected = (VERSION, REPLY_TYPE, TRACKING_REQUEST, TRACKING_REPLY, SUCCESS, sequence)
    if (version, kind, command, answer, status, number) != expected:
        return None
    reference, _, leap, *floats = _TRACKING.unpack_from(reply, _REPLY.size)
    if leap == LEAP_UNSYNCHRONISED or reference in (0, LOCAL_REFERENCE):
        return UNSYNCHRONISED
    system_offset, _, rms_offset, _, _, skew_ppm, delay, dispersion, _ = map(chrony_float, floats)
    return root_distance(
        offset=system_offset,
        delay=max(0.0, delay),  # by hardware stamps it may come out below nothing
        dispersion=dispersion,
        spread=rms_offset,
        skew_ppm=skew_ppm,
    )


def chrony_float(word: int) -> float:
    """chrony's own 32-bit float: 7 bits of exponent, 25 of coefficient, both signed."""
    exponent, coefficient = word >> 25, word & 0x1FFFFFF
    if exponent >= 1 << 6:
        exponent -= 1 << 7
    if coefficient >= 1 << 24:
        coefficient -= 1 << 25
    return float(coefficient) * 2.0 ** (exponent - 25)
