"""NTP control messages (mode 6, RFC 9327): read system variables of ntpd or ntpsec.

    header    LI VN mode 1, R E M opcode 1, sequence 2, status 2, association 2, offset 2, count 2
    data      text: ``rootdelay=0.049, rootdisp=62.616, ...``, milliseconds and ppm

No sockets here: bytes in, values out.
"""

import re
import struct

from pathbudget.probes.clock_statement import UNSYNCHRONISED, ClockStatement, root_distance

CONTROL_MODE = 6
VERSION = 2
"""What ntpq itself says; every daemon understands it."""
READ_VARIABLES = 2
RESPONSE, ERROR, MORE = 0x80, 0x40, 0x20
LEAP_UNSYNCHRONISED = 3
LOCAL_CLOCKS = ("127.127.1.", "LOCAL", "LOCL", "INIT")
"""Reference identifiers of an undisciplined clock."""
VARIABLES = ("rootdelay", "rootdisp", "offset", "sys_jitter", "clk_wander", "refid")

_HEADER = struct.Struct(">BBHHHHH")
_VARIABLE = re.compile(r"(\w+)=\"?([^,\"\s]*)")


def read_variables_request(sequence: int) -> bytes:
    """Ask for `VARIABLES` of the system (association 0); `sequence`, 16 bits, comes back."""
    names = ",".join(VARIABLES).encode()
    head = _HEADER.pack(VERSION << 3 | CONTROL_MODE, READ_VARIABLES, sequence, 0, 0, 0, len(names))
    return head + names + b"\0" * (-len(names) % 4)


def read_variables(reply: bytes, sequence: int) -> ClockStatement | None:
    """What ntpd says of the clock; None where this is no answer to our request. Never raises.

    The leap indicator of the status word says whether there is any discipline at all.
    """
    if len(reply) < _HEADER.size:
        return None
    first, operation, number, status, _, offset, count = _HEADER.unpack_from(reply)
    text = reply[_HEADER.size : _HEADER.size + count]
    if first & 7 != CONTROL_MODE or operation != RESPONSE | READ_VARIABLES:
        return None  # a request, a refusal, or the first of several parts
    if number != sequence or offset or len(text) < count:
        return None
    values = dict(_VARIABLE.findall(text.decode("latin-1")))
    if status >> 14 == LEAP_UNSYNCHRONISED or _is_local(values.get("refid", "")):
        return UNSYNCHRONISED
    return _statement(values)


def _is_local(reference: str) -> bool:
    return reference.strip(".").startswith(LOCAL_CLOCKS)


def _statement(values: dict[str, str]) -> ClockStatement | None:
    try:
        delay, dispersion, offset, jitter, wander = (float(values[name]) for name in VARIABLES[:5])
    except (KeyError, ValueError):
        return None
    return root_distance(
        offset=offset / 1e3,
        delay=delay / 1e3,
        dispersion=dispersion / 1e3,
        spread=jitter / 1e3,
        skew_ppm=wander,
    )
