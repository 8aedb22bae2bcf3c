"""The outcome as JSON, and its published schema (docs/gate-schema.json)."""

from typing import Any

import msgspec

from pathbudget.analysis.gate.checks import GATE_SCHEMA_VERSION, Outcome

SCHEMA_ID = f"urn:pathbudget:gate:{GATE_SCHEMA_VERSION}"


def render_json(outcome: Outcome) -> bytes:
    """The outcome itself, indented, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(outcome), indent=1) + b"\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `render_json` writes."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"pathbudget gate, schema version {GATE_SCHEMA_VERSION}",
    }
    return head | msgspec.json.schema(Outcome)


if __name__ == "__main__":
    import sys

    published = msgspec.json.format(msgspec.json.encode(json_schema()), indent=1)
    sys.stdout.buffer.write(published + b"\n")
