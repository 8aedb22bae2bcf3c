"""What tells several series of one probe apart: versions of HTTP, sizes of uploads ..."""

from collections.abc import Mapping

from pathbudget.probes.record import Measurement

VARIANTS = {
    "dns": ("transport",),
    "http": ("version",),
    "upload": ("version",),
    "token_stream": ("form", "version"),
    "completion": ("model", "version"),
}
"""Options that make several series of one probe, by probe."""

BYTES_PER_TOKEN = 4


def asked_bytes(options: Mapping[str, object]) -> int | None:
    """How many bytes the options of a measurement ask for."""
    size, tokens = options.get("bytes"), options.get("tokens")
    if isinstance(size, int) and size > 0:
        return size
    if isinstance(tokens, int) and tokens > 0:
        each = options.get("bytes_per_token")
        return round(tokens * (each if isinstance(each, int | float) else BYTES_PER_TOKEN))
    return None


def variant_of(measurement: Measurement) -> str:
    """Options that tell the series of one probe apart, as words."""
    options, words = measurement.options, list[str]()
    if measurement.probe == "upload" and (size := asked_bytes(options)) is not None:
        words.append(f"{size} bytes")
    names = VARIANTS.get(measurement.probe, ())
    return " ".join([*words, *(str(options[name]) for name in names if options.get(name))])
