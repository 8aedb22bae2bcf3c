"""Fuzz targets of what is read from files: records. See tests/fuzzing.py."""

from pathbudget.probes.codec import decode_line, encode_line
from pathbudget.probes.errors import RecordError


def fuzz_one_record(data: bytes) -> None:
    """A line is refused with a RecordError, or it is a record that comes back as it was."""
    try:
        measurement = decode_line(data)
    except RecordError:
        return
    assert decode_line(encode_line(measurement)) == measurement
