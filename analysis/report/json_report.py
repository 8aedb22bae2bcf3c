"""The report as JSON: the `Evaluation` itself, and its published schema."""

from typing import Any

import msgspec

from pathbudget.analysis.report.route_json import as_objects, routes_schema
from pathbudget.analysis.results import REPORT_SCHEMA_VERSION, Evaluation
from pathbudget.analysis.routes.route_report import RouteReport

SCHEMA_ID = f"urn:pathbudget:report:{REPORT_SCHEMA_VERSION}"


def render_json(evaluation: Evaluation, routes: RouteReport | None = None) -> bytes:
    """The evaluation, indented, with a newline at the end. Every number has all its digits.

    What is known of routes stands beside it as ``routes``, where anybody traced.
    """
    encoded = msgspec.json.encode(evaluation)
    if routes is not None:
        beside = msgspec.json.encode(as_objects(routes))
        encoded = encoded[:-1] + b',"routes":' + beside + b"}"
    return msgspec.json.format(encoded, indent=1) + b"\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `render_json` writes; published as docs/report-schema.json."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"pathbudget report, schema version {REPORT_SCHEMA_VERSION}",
    }
    schema = msgspec.json.schema(Evaluation)
    routes = routes_schema()["$defs"]
    whole = schema["$defs"]["Evaluation"]
    whole["properties"]["routes"] = {"$ref": "#/$defs/RouteReport"}
    schema["$defs"] |= {name: one for name, one in routes.items() if name not in schema["$defs"]}
    return head | schema


if __name__ == "__main__":
    import sys

    published = msgspec.json.format(msgspec.json.encode(json_schema()), indent=1)
    sys.stdout.buffer.write(published + b"\n")
