"""Durations as a person reads them."""


def duration(ns: int | None) -> str:
    """Two significant digits, in the unit that suits: ``9.4 us``, ``630 us``, ``1.2 s``."""
    if ns is None:
        return "-"
    if abs(ns) < 1_000:
        return f"{ns} ns"
    for unit_ns, unit in ((1_000, "us"), (1_000_000, "ms")):
        if abs(ns) < 1_000 * unit_ns:
            return f"{_short(ns / unit_ns)} {unit}"
    return f"{_short(ns / 1e9)} s"


def _short(number: float) -> str:
    return f"{number:.1f}" if abs(number) < 9.95 else f"{number:.0f}"
