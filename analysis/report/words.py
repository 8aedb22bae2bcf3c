"""How numbers, times and verdicts are written for a person. No other module formats a number."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime

from pathbudget.analysis.report.document import Tone
from pathbudget.analysis.results import Carrier, Direction, Method, Mode, Objective, Verdict

DEFAULT_TITLE = "pathbudget report"
UNBOUNDED = "no limit"
NO_LIMIT_MEANS = "so many probes were lost, or so few sent, that the data sets no limit there"
TOO_FEW = "too few to tell"
"""In the place of an interval that has neither a lower end nor an upper one."""
NOT_KNOWN = "not known"
NOT_MEASURED = "not measured"

MODE_WORDS = {
    Mode.COLD: "cold",
    Mode.RESUMED: "resumed",
    Mode.EARLY_DATA: "early data",
    Mode.IDLE: "idle",
    Mode.WARM: "warm",
    Mode.MIXTURE: "traffic mixture",
}

CARRIER_WORDS = {"tls": "TLS over TCP", "quic": "QUIC", "tcp": "TCP without TLS"}

DIRECTION_WORDS = {
    Direction.INGRESS: "ingress",
    Direction.EGRESS: "egress",
    Direction.STREAM: "egress of a stream",
    Direction.NETWORK: "network (both ways)",
}

METHOD_WORDS = {
    Method.MEASURED: "measured",
    Method.SYMMETRIC_SPLIT: "measured, split evenly between the directions",
    Method.DERIVED_FROM_RTT: "derived from the round-trip time",
}

OBJECTIVE_WORDS = {
    Objective.P_MEDIAN: "smallest weighted mean (p-median)",
    Objective.COVERING: "most traffic within the allowance (covering)",
}

VERDICT_WORDS = {
    Verdict.PASS: "✓ pass",
    Verdict.FAIL: "✕ fail",
    Verdict.UNDECIDED: "? undecided",
    Verdict.NOT_MEASURED: NOT_MEASURED,
}

VERDICT_TONES = {
    Verdict.PASS: Tone.PASS,
    Verdict.FAIL: Tone.FAIL,
    Verdict.UNDECIDED: Tone.UNDECIDED,
    Verdict.NOT_MEASURED: Tone.PLAIN,
}


def connections(transport: str, mode: Mode) -> str:
    """``warm``, ``early data over QUIC``; TLS over TCP goes without saying."""
    over = {Carrier.QUIC: " over QUIC", Carrier.MIXED: " over TLS and QUIC"}
    return MODE_WORDS[mode] + over.get(Carrier(transport), "")


def bounded(value: float | None) -> bool:
    """Whether the data sets a limit: neither None nor an infinity that slipped through."""
    return value is not None and math.isfinite(value)


def figure(value: float) -> str:
    """Three significant figures or so, never scientific: 0.042, 4.21, 42.1, 421."""
    size = abs(value)
    digits = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f}"


def ms(value: float | None) -> str:
    """Milliseconds with their unit, or the words *no limit*."""
    if value is None or not math.isfinite(value):
        return UNBOUNDED
    return f"{figure(value)} ms"


def given(value: float) -> str:
    """A number that a person wrote into a file: as it was written, ``25``."""
    return f"{value:,.10g}"


def bare_ms(value: float | None) -> str:
    """Milliseconds under a column head that has the unit already."""
    return ms(value).removesuffix(" ms")


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval in ms, without unit. From nothing to no limit is no interval."""
    if low == 0 and not bounded(high):
        return TOO_FEW
    if not bounded(low) and not bounded(high):
        return UNBOUNDED
    return f"{bare_ms(low)} to {bare_ms(high)}"


def fine_ms(value: float | None) -> str:
    """Milliseconds, or whole microseconds below one, with their unit: ``412 us``, ``4.21 ms``."""
    if value is None or not math.isfinite(value):
        return UNBOUNDED
    if abs(value) >= 1:
        return ms(value)
    digits = 1 if 0 < abs(value) < 0.01 else 0
    return f"{1000 * value:,.{digits}f} us"


def fine_interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval, each with its unit."""
    if low == 0 and not bounded(high):
        return TOO_FEW
    if not bounded(low) and not bounded(high):
        return UNBOUNDED
    return f"{fine_ms(low)} to {fine_ms(high)}"


def signed_interval(value: float | None, low: float | None, high: float | None) -> str:
    """The same of a difference: below one that is known, no limit means that there are too few."""
    if bounded(value) and not (bounded(low) and bounded(high)):
        return TOO_FEW
    return fine_interval(low, high)


def known(value: float | None, unit: str = "") -> str:
    """A number that may be missing because nobody knows it (a place, a price)."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return f"{figure(value)} {unit}".rstrip()


def amount(value: float | None) -> str:
    """A price per month. The currency is that of the catalogue, which does not name one."""
    return "no price given" if value is None else f"{value:,.0f} per month"


def share(ratio: float) -> str:
    """A ratio from 0 to 1 as a percentage; a tiny one is not rounded to nothing."""
    percent = 100 * ratio
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{percent:.1f} %".replace(".0 %", " %")


def percentile(value: float) -> str:
    """``p95``, ``p99.9``."""
    return f"p{value:g}"


def utc(unix_ns: int) -> str:
    """Wall-clock time, to the second, with its zone named."""
    if unix_ns <= 0:
        return NOT_KNOWN
    return datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def effective(n: int, worth: float) -> str:
    """Sample count, and what it is worth when that is clearly less."""
    return f"{n:,}" if worth >= 0.95 * n else f"{n:,} (worth {worth:,.0f})"


def listed(names: Iterable[str], none: str = "none") -> str:
    """``a``, ``a and b``, ``a, b and c``; with semicolons where a name has a comma of its own."""
    items = list(names)
    if len(items) < 2:
        return items[0] if items else none
    if any("," in item for item in items):
        return "; ".join(items[:-1]) + "; and " + items[-1]
    return ", ".join(items[:-1]) + " and " + items[-1]


def counted(n: int, one: str, many: str = "") -> str:
    """``1 region``, ``6 regions``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def counts(numbers: dict[str, int]) -> str:
    """``timeout/wait 12, refused/connect 3``, most frequent first."""
    ordered = sorted(numbers.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{word} {n:,}" for word, n in ordered) or "none"
