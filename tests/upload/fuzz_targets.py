"""Fuzz targets of what uploads read from outside. See tests/fuzzing.py."""

from pathbudget.probes.record import Failure, FailureKind, Stage
from pathbudget.probes.tcp_info import parse_tcp_info
from pathbudget.probes.upload.flights import Acknowledged, Departed, count_flights, flights_of
from pathbudget.probes.upload.receipt import parse_receipt, receipt_notes

SENT_BYTES = 4_000
VALID = b'{"bytes":4000,"first_unix_ns":1,"last_unix_ns":2,"residence_ns":3,"kernel":true}'


def fuzz_one_receipt(data: bytes) -> None:
    """Any bytes as a receipt, alone and spliced into a valid one: a receipt that can be counted
    with, or a failure that says why, short enough for a line.
    """
    cut = data[0] % len(VALID) if data else 0
    for answer in (data, VALID[:cut] + data[1:] + VALID[cut:], VALID[:cut] + data[1:]):
        found = parse_receipt(answer, SENT_BYTES)
        if isinstance(found, Failure):
            assert found.stage is Stage.PARSE
            assert found.kind in (FailureKind.PROTOCOL, FailureKind.CORRUPT)
            assert 0 < len(found.detail) <= 80
            continue
        assert found.bytes == SENT_BYTES
        assert found.residence_ns >= 0
        for value in receipt_notes(found).values():
            assert abs(int(value)) < 1 << 63


def fuzz_one_tcp_info(data: bytes) -> None:
    """Any bytes as struct tcp_info: nothing raises, and what is told is a number."""
    found = parse_tcp_info(data)
    assert (found is None) == (len(data) < 104)
    if found is not None:
        assert all(not isinstance(value, bytes) for value in found.notes().values())


def fuzz_one_stamps(data: bytes) -> None:
    """Any order of stamps: every packet has a flight, the first one the first."""
    departed = [Departed(1, place, octet * 1_000_000) for place, octet in enumerate(data[::2])]
    departed.sort(key=lambda one: (one.unix_ns, one.last_byte))
    acknowledged = [Acknowledged(octet, octet * 1_100_000) for octet in data[1::2]]
    acknowledged.sort(key=lambda one: one.unix_ns)
    numbers = flights_of(departed, acknowledged)
    assert len(numbers) == len(departed)
    assert all(1 <= number <= len(departed) for number in numbers)
    found = count_flights(departed, acknowledged, 40_000_000)
    assert (found is None) == (not departed)
