"""Durations as people write them: ``250ms``, ``1.5s``, ``10m``, ``2h``."""

import re

_UNITS = {
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_NUMBER = re.compile(r"\s*\d+(?:\.\d+)?\s*")
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)\s*")


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of ``250ms``. Raises ValueError, naming the form, for anything else."""
    match = _PATTERN.fullmatch(text)
    if match is None and _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no duration: it has no unit; {text.strip()}s?")
    if match is None:
        raise ValueError(f"{text!r} is no duration such as 250ms, 1.5s, 10m or 2h")
    return round(float(match.group(1)) * _UNITS[match.group(2)])


def format_duration(ns: int) -> str:
    """A whole number of the largest unit that goes into it: ``250ms``, ``90s``, ``10m``."""
    for unit in ("d", "h", "m", "s", "ms"):
        if ns and ns % _UNITS[unit] == 0:
            return f"{ns // _UNITS[unit]}{unit}"
    return f"{ns / 1000:g}us"
