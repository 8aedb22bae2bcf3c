"""The report as JSON: the `Evaluation` itself, and its published schema."""

from typing import Any

import msgspec

from pathbudget.analysis.results import REPORT_SCHEMA_VERSION, Evaluation

SCHEMA_ID = f"urn:pathbudget:report:{REPORT_SCHEMA_VERSION}"


def render_json(evaluation: Evaluation) -> bytes:
    """The evaluation, indented, with a newline at the end. Every number has all its digits."""
    return msgspec.json.format(msgspec.json.encode(evaluation), indent=1) + b"\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `render_json` writes; published as docs/report-schema.json."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"pathbudget report, schema version {REPORT_SCHEMA_VERSION}",
    }
    return head | msgspec.json.schema(Evaluation)


if __name__ == "__main__":
    import sys

    published = msgspec.json.format(msgspec.json.encode(json_schema()), indent=1)
    sys.stdout.buffer.write(published + b"\n")
