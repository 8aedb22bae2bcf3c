"""What an import did, for a person (80 columns) and for a pipeline (JSON)."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from pathbudget.agents.importers.import_report import ImportReport

WIDTH = 80
_LABEL = 14


def as_json(counts: ImportReport, stored: Mapping[str, int]) -> str:
    """Every count, and the problems that were kept."""
    content = {**msgspec.to_builtins(counts), "stored": dict(stored)}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def as_text(counts: ImportReport, stored: Mapping[str, int], store: str) -> str:
    """The same for a person; a line for what is zero is left out."""
    return "\n".join(line[:WIDTH] for line in _lines(counts, stored, store))


def _lines(counts: ImportReport, stored: Mapping[str, int], store: str) -> Iterator[str]:
    files = f"{counts.files} file{'s' if counts.files != 1 else ''}"
    yield _line("results", counts.results, f"in {files}, {counts.bytes_read / 1e6:.1f} MB")
    yield _line("measurements", counts.measurements, _listed(counts.types))
    yield _line("samples", counts.samples, f"{counts.numbers:,} numbers")
    yield from _table("failures", counts.failures)
    yield from _table("not imported", counts.skipped, ": no probe of that kind yet")
    yield from _table("left out", counts.left_out)
    if counts.malformed:
        yield _line("malformed", counts.malformed, "counted, named on stderr, not imported")
    if counts.damaged_files:
        yield _line("damaged", counts.damaged_files, "files; what could be read of them was")
    yield from _asides(counts)
    if counts.measurements:
        there = stored["already_there"]
        yield _line("stored", stored["written"], f"new, {there:,} already there, in {store}")


def _asides(counts: ImportReport) -> Iterator[str]:
    if counts.late or counts.duplicates:
        late = f"late replies, and {counts.duplicates:,} duplicates: no samples"
        yield _line("not counted", counts.late, late)
    if counts.hop_samples:
        answered = f"samples of hops, {counts.hop_unanswered:,} of them without a number"
        yield _line("on the way", counts.hop_samples, answered)
    if counts.reconstructed:
        yield _line("worked out", counts.reconstructed, "samples, from minimum, mean, maximum")
    if counts.inconsistent:
        yield _line("inconsistent", counts.inconsistent, "pings whose totals differ from packets")
    if counts.without_place:
        yield _line("unplaced", counts.without_place, "probes, each a region of its own")


def _table(label: str, counts: Counter[str], remark: str = "") -> Iterator[str]:
    for number, (word, count) in enumerate(sorted(counts.items(), key=lambda item: -item[1])):
        yield _line("" if number else label, count, word + remark)


def _line(label: str, number: int, remark: str) -> str:
    return f"{label:<{_LABEL}}{number:>12,}  {remark}".rstrip()


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{word} {count:,}" for word, count in counts.most_common())
