"""Fuzz targets of what time daemons say. See tests/fuzzing.py."""

import msgspec

from pathbudget.probes.chrony_wire import read_tracking
from pathbudget.probes.clock_statement import ClockStatement
from pathbudget.probes.ntp_control_wire import read_variables
from pathbudget.probes.ptp_management_wire import QUESTIONS, read_answer, read_state

SEQUENCE = 0xDEADBEEF


def is_sound(statement: ClockStatement | None) -> None:
    """Garbage is None, or a statement that can be kept: no negative error, none that overflows."""
    if statement is None:
        return
    for error in (statement.bound_ns, statement.estimated_ns):
        assert error is None or 0 <= error < 2**63
    assert statement.skew_ppm is None or 0 <= statement.skew_ppm < 1e9
    assert statement.synchronised or statement.bound_ns is None
    msgspec.json.encode(statement)


def fuzz_one_chrony(data: bytes) -> None:
    """Any bytes, then any bytes behind the header of a good reply."""
    is_sound(read_tracking(data, SEQUENCE))
    head = bytes.fromhex("06020000002100050000000000000000deadbeef0000000000000000")
    is_sound(read_tracking(head + data, SEQUENCE))


def fuzz_one_ntp_control(data: bytes) -> None:
    """Any bytes, then any text behind the header of a good reply."""
    is_sound(read_variables(data, 7))
    head = bytes.fromhex("168200070015000000000000")[:10] + len(data).to_bytes(4, "big")[2:]
    is_sound(read_variables(head + data, 7))


def fuzz_one_ptp(data: bytes) -> None:
    """Any bytes as a message, and as each of the data sets."""
    answer = read_answer(data, 0x5151)
    assert answer is None or len(answer.data) <= len(data)
    for bounded in (True, False):
        is_sound(read_state(dict.fromkeys(QUESTIONS, data), bounded=bounded))
