"""Measurements as JSON lines: one JSON object a line, UTF-8, with the schema version first.

Rules (docs/record-schema.md): fields at their default are left out, except `schema`; fields that
this version does not know are ignored; a line of an older version is upgraded, one of a newer
version is refused. So nothing is ever read as something it is not.
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import SCHEMA_VERSION, Measurement, Sample
from pathbudget.probes.schema_upgrades import checked_version, upgrade

_CURRENT_PREFIX = b'{"schema":%d,' % SCHEMA_VERSION
_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<field>[^`]*)`)?$", re.DOTALL)


class _Head(msgspec.Struct):
    """The one field that must be known before the rest can be read."""

    schema: Any = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Measurement)
_head_decoder = msgspec.json.Decoder(_Head)
_raw_decoder = msgspec.json.Decoder(dict[str, Any])


def encode_line(measurement: Measurement) -> bytes:
    """One line with its newline. Raises RecordError for what JSON cannot hold."""
    if measurement.schema != SCHEMA_VERSION:
        raise RecordError(f"schema: {measurement.schema} is not the version that is written here")
    _refuse_not_finite(measurement)
    # At its default value the version would be left out, and a later version would misread it.
    return _CURRENT_PREFIX + _encode(measurement)[1:] + b"\n"


def encode_sample(sample: Sample) -> bytes:
    """JSON of one sample, without newline; for the journal."""
    return _encode(sample)


def decode_line(line: bytes) -> Measurement:
    """The measurement of one line, of any known version. Raises RecordError naming the field."""
    try:
        if line.startswith(_CURRENT_PREFIX):
            return _decoder.decode(line)
        if checked_version(_head_decoder.decode(line).schema) == SCHEMA_VERSION:
            return _decoder.decode(line)
        return from_raw(_raw_decoder.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(explain(error)) from None


def from_raw(raw: dict[str, Any]) -> Measurement:
    """The measurement of a decoded JSON object of any known version. Raises RecordError."""
    try:
        return msgspec.convert(upgrade(raw), Measurement)
    except msgspec.ValidationError as error:
        raise RecordError(explain(error)) from None


def read_lines(source: Path | str | BinaryIO) -> Iterator[Measurement]:
    """All measurements of a file, one at a time; empty lines are passed over.

    Raises RecordError with file, line number and field, also for a last line that is cut off.
    """
    if not isinstance(source, Path | str):
        yield from _decode_all(source, getattr(source, "name", "input"))
        return
    try:
        with Path(source).open("rb") as file:
            yield from _decode_all(file, source)
    except OSError as error:
        raise RecordError(f"{source}: cannot be read: {error.strerror}") from error


def _decode_all(lines: Iterable[bytes], name: object) -> Iterator[Measurement]:
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        try:
            measurement = decode_line(line)
        except RecordError as error:
            raise RecordError(f"{name}: line {number}: {error}") from None
        yield measurement


def explain(error: Exception) -> str:
    """What a decoder says, with the field first: ``samples[0].seq: Expected `int`, got `str```."""
    match = _AT.match(str(error))
    problem = match["problem"] if match else str(error)
    field = match["field"] if match else None
    if isinstance(error, msgspec.ValidationError):
        return f"{field or 'the record'}: {problem}"
    return f"no valid JSON: {problem}"


def _encode(record: Measurement | Sample) -> bytes:
    try:
        return _encoder.encode(record)
    except (UnicodeEncodeError, OverflowError) as error:
        raise RecordError(f"{type(record).__name__} cannot be written: {error}") from None


def _refuse_not_finite(measurement: Measurement) -> None:
    """JSON has no NaN and no infinity; as null they would come back as something else."""
    vantage, noise, clock = measurement.vantage, measurement.noise, measurement.clock
    numbers = {f"options.{name}": value for name, value in measurement.options.items()}
    numbers["vantage.latitude"] = vantage.latitude
    numbers["vantage.longitude"] = vantage.longitude
    numbers["noise.steal_ratio"] = noise.steal_ratio if noise else None
    numbers["clock.skew_ppm"] = clock.skew_ppm if clock else None
    for field, value in numbers.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise RecordError(f"{field}: {value} cannot be written")
