"""What one call of a model tells: time to the first token, time per token, counts of tokens."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathbudget.analysis.whole_budget.spans_map import ModelWords, found
from pathbudget.analysis.whole_budget.spans_model import Span, Value


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Times in ns; None where the span does not tell."""

    first_ns: float | None = None
    per_token_ns: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    streamed: bool | None = None


NOTHING = CallTimes()


def call_times(span: Span, words: ModelWords) -> CallTimes:
    """What the attributes and events of a span say, by the words of the table."""
    first = _timed(span, words.first_token)
    if first is None:
        first = _first_event(span, words.first_token_events)
    return CallTimes(
        first,
        _timed(span, words.per_token),
        _count(span, words.input_tokens),
        _count(span, words.output_tokens),
        _truth(span, words.stream),
    )


def per_token_ns(times: CallTimes, duration_ns: int) -> float | None:
    """Time of one token after the first; None where the span does not tell.

    As stated, or else (span - first token) / (output tokens - 1).
    """
    if times.per_token_ns is not None:
        return times.per_token_ns
    if times.first_ns is None or times.output_tokens is None or times.output_tokens < 2:
        return None
    return max(0.0, duration_ns - times.first_ns) / (times.output_tokens - 1)


def _timed(span: Span, units: Mapping[str, float]) -> float | None:
    for key, unit in units.items():
        number = _number(found(span, key))
        if number is not None and number >= 0:
            return number * unit
    return None


def _first_event(span: Span, names: frozenset[str]) -> float | None:
    moments = [event.unix_ns - span.start_unix_ns for event in span.events if event.name in names]
    return float(min(moments)) if moments and min(moments) >= 0 else None


def _count(span: Span, keys: Iterable[str]) -> int | None:
    for key in keys:
        number = _number(found(span, key))
        if number is not None and number >= 0 and number == int(number):
            return int(number)
    return None


def _truth(span: Span, keys: Iterable[str]) -> bool | None:
    for key in keys:
        value = found(span, key)
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
    return None


def _number(value: Value) -> float | None:
    """A finite number, also one that was written as text; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
