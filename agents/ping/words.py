"""Numbers as a person reads them, in at most five characters. Pure."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from pathbudget.agents.ping.host_state import HostState
from pathbudget.analysis.outage_rule import Outage
from pathbudget.probes.record import ClockSource, Flag

DASH = "-"
LOST = "lost"
CLOCK_LETTERS: Mapping[str, str] = {
    ClockSource.KERNEL: "K",
    ClockSource.TCP_INFO: "T",
    ClockSource.KERNEL_RECEIVE: "R",
    ClockSource.USER: "U",
    ClockSource.FOREIGN: "F",
}
FLAG_LETTERS: Mapping[str, str] = {
    Flag.HOST_BUSY: "B",
    Flag.CLOCK_STEP: "S",
    Flag.DUPLICATED: "D",
    Flag.LATE: "L",
    Flag.REFUSED: "R",
}
COUNTED_AS: Mapping[str, str] = {"duplicate": Flag.DUPLICATED, "late": Flag.LATE}
"""Words that a probe counts, as the flag that says the same."""
LEGEND = (
    "PDV99: 99th percentile above the minimum (RFC 5481); IPDV: 95th (RFC 3393)",
    "clock: K kernel stamps, T TCP_INFO, R kernel receive, U user space",
    "marks: B host busy, S clock step, D duplicates, L late, R refused, ! not sent",
)


def duration(value_ns: float | None, *, micro: bool) -> str:
    """In milliseconds, or in microseconds: ``0.123``, ``12.34``, ``123.4``, ``1234``."""
    if value_ns is None:
        return DASH
    if math.isinf(value_ns):
        return LOST
    value = value_ns / (1_000 if micro else 1_000_000)
    size = abs(value)
    if micro:
        return f"{value:.1f}" if size < 99.95 else _whole(value)
    decimals = 3 if size < 9.9995 else 2 if size < 99.995 else 1 if size < 999.95 else 0
    return f"{value:.{decimals}f}" if decimals else _whole(value)


def _whole(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 99_999.5 else f"{value / 1000:.0f}k"


def share(ratio: float | None) -> str:
    """Per cent in four characters; what is not nothing does not look like it."""
    if ratio is None:
        return DASH
    percent = 100 * ratio
    if percent == 0:
        return "0%"
    if percent < 0.1:
        return "<.1%"
    if percent < 9.95:
        return f"{percent:.1f}%"
    return f"{min(percent, 99.0):.0f}%" if ratio < 1 else "100%"


def between(low: float, high: float) -> str:
    """A share within bounds, in at most ten characters: ``0%``, ``0.5%-1.2%``."""
    texts = share(low), share(high)
    return texts[0] if texts[0] == texts[1] else "-".join(texts)


def drift(ppm: float) -> str:
    """Of the far clock against ours; zero has no sign."""
    whole = round(ppm)
    return f"drift {whole:+d} ppm" if whole else "drift 0 ppm"


def amount(number: int) -> str:
    """A count in at most five characters."""
    if number < 100_000:
        return str(number)
    thousands, unit = number // 1000, "k"
    while thousands >= 10_000:
        thousands, unit = thousands // 1000, "M" if unit == "k" else "G"
    return f"{thousands}{unit}"


def clock_letter(state: HostState) -> str:
    """The clock of most of its numbers."""
    if not state.clocks:
        return DASH
    source, _ = state.clocks.most_common(1)[0]
    return CLOCK_LETTERS.get(source, "?")


def marks(state: HostState) -> str:
    """A letter for everything that makes a reader careful."""
    seen = set(state.flags)
    seen |= {COUNTED_AS[word] for word in state.counted if word in COUNTED_AS}
    letters = "".join(letter for word, letter in FLAG_LETTERS.items() if word in seen)
    return letters + ("!" if state.not_sent else "")


def clock_time(unix_ns: int) -> str:
    """The time of day, UTC, to the millisecond."""
    seconds, rest = divmod(unix_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{moment:%H:%M:%S}.{rest // 1_000_000:03}"


def outage_text(host: str, outage: Outage) -> str:
    """Begin and end are windows: between the packets that saw it, nobody looked."""
    begin = _window(outage.last_good_unix_ns, outage.first_lost_unix_ns)
    what = f"{host}: {outage.lost} lost"
    if outage.first_good_unix_ns is None:
        return f"OUTAGE {what} since {begin} UTC, no end yet"
    end = _window(outage.last_lost_unix_ns, outage.first_good_unix_ns)
    return f"Outage {what} {begin} to {end} UTC"


def _window(after_ns: int | None, until_ns: int) -> str:
    until = clock_time(until_ns)
    if after_ns is None:
        return f"before {until}"
    after = clock_time(after_ns)
    return f"{after}..{until[6:] if after[:6] == until[:6] else until}"
