"""Write the tables of docs/record-schema.md from the code: python docs/generate_record_schema.py.

A test compares the page with `page()`, so it cannot lag behind.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from pathbudget.probes import agent_health, record
from pathbudget.probes.bgp import record as bgp
from pathbudget.probes.columns import (
    CONTEXT_COLUMNS,
    FAILURE_COUNT,
    MEASUREMENT_COLUMNS,
    MEASUREMENT_ID,
    POSITION,
    SAMPLE_COLUMNS,
    SAMPLE_COUNT,
    UPDATE_COLUMNS,
    Column,
)

PAGE = Path(__file__).parent / "record-schema.md"
WORDS: Sequence[type[StrEnum]] = (
    agent_health.HealthMetric,
    record.AddressFamily,
    record.ClockSource,
    record.ConnectionMode,
    record.FailureKind,
    record.Flag,
    record.Metric,
    record.Stage,
    record.SyncState,
    record.Transport,
    bgp.FeedKind,
    bgp.UpdateKind,
)


def page(text: str) -> str:
    """`text` with everything below each ``<!-- generated: X -->`` line, up to the next, renewed."""
    for name, content in generated().items():
        start, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{content}\n{end}{after}"
    return text


def generated() -> dict[str, str]:
    """The parts of the page that come from the code."""
    samples = [MEASUREMENT_ID, POSITION, *SAMPLE_COLUMNS]
    return {
        "version": f"The current version is **{record.SCHEMA_VERSION}**.",
        "measurement": table([*MEASUREMENT_COLUMNS, SAMPLE_COUNT, FAILURE_COUNT]),
        "sample": table(samples),
        "context": ", ".join(f"`{column.name}`" for column in CONTEXT_COLUMNS),
        "update": table(UPDATE_COLUMNS),
        "words": "\n".join(f"- {kind.__name__}: {words(kind)}" for kind in WORDS),
    }


def table(columns: Iterable[Column]) -> str:
    """One line per column."""
    lines = ["| field of the record | column | type | unit | meaning |", "|---|---|---|---|---|"]
    for column in columns:
        field = f"`{column.path}`" if column.path else ""
        cells = (field, f"`{column.name}`", column.kind, column.unit, column.meaning)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def words(kind: type[StrEnum]) -> str:
    """The words of an enumeration as they stand on disk."""
    return ", ".join(f"`{word.value}`" for word in kind)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
