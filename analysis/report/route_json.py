"""Routes as JSON: the `RouteReport` itself, every record an object, and its published schema.

Sets of paths become sorted lists, windows and estimates objects with their fields' names; evidence
says with ``type`` what it is.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from pathbudget.analysis.routes.model import Evidence, Incident
from pathbudget.analysis.routes.route_report import RouteReport

ROUTES_SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:pathbudget:routes:{ROUTES_SCHEMA_VERSION}"
EVIDENCE: tuple[type, ...] = typing.get_args(Evidence)
Json = Any
Definitions = dict[str, Json]


def render_routes_json(report: RouteReport) -> bytes:
    """The report, indented, with a newline at the end. Every number has all its digits."""
    return msgspec.json.format(msgspec.json.encode(as_objects(report)), indent=1) + b"\n"


def as_objects(report: RouteReport) -> Json:
    """The report in what JSON knows: objects, lists, texts, numbers, null (also for infinity)."""
    return {"schema": ROUTES_SCHEMA_VERSION, **_plain(report)}


def incident_object(incident: Incident) -> Json:
    """One incident in the words of the same schema."""
    return _plain(incident)


def routes_schema() -> Json:
    """JSON Schema (2020-12) of what `render_routes_json` writes; docs/routes-schema.json."""
    definitions: Definitions = {}
    _described(RouteReport, definitions)
    report = definitions["RouteReport"]
    report["properties"] = {"schema": {"const": ROUTES_SCHEMA_VERSION}, **report["properties"]}
    report["required"] = ["schema", *report["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"pathbudget routes, schema version {ROUTES_SCHEMA_VERSION}",
        "$ref": "#/$defs/RouteReport",
        "$defs": definitions,
    }


def _plain(value: object) -> Json:
    match value:
        case StrEnum():
            return str(value)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case frozenset():
            return sorted(_plain(one) for one in typing.cast("frozenset[object]", value))
        case dict():
            return {k: _plain(v) for k, v in typing.cast("dict[str, object]", value).items()}
        case tuple() | list():
            fields: Mapping[str, object] | None = _named(value)
            if fields is not None:
                return {name: _plain(one) for name, one in fields.items()}
            return [_plain(one) for one in typing.cast("tuple[object, ...]", value)]
        case _:
            return _of_record(value)


def _named(value: Any) -> Mapping[str, object] | None:
    """The fields of a named tuple; None of any other sequence."""
    return value._asdict() if hasattr(value, "_asdict") else None


def _of_record(value: object) -> Json:
    if not dataclasses.is_dataclass(value):
        raise TypeError(f"no JSON for {type(value).__name__}")
    fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    kind = {"type": _word(type(value))} if isinstance(value, EVIDENCE) else {}
    return kind | fields


def _word(kind: type) -> str:
    """``route_event`` of `RouteEvent`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")


def _described(kind: Any, definitions: Definitions) -> Json:
    """Schema of one type; records and words become definitions."""
    simple = {str: "string", int: "integer", bool: "boolean", types.NoneType: "null"}
    if kind in simple:
        return {"type": simple[kind]}
    if kind is float:
        return {"type": ["number", "null"], "description": "null: no limit"}
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_described(one, definitions) for one in parts]}
    if origin in (tuple, frozenset):
        return {"type": "array", "items": _described(parts[0], definitions)}
    if origin is dict:
        values = _described(parts[1], definitions)
        return {"type": "object", "additionalProperties": values}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # a record may hold itself
        definitions[kind.__name__] = _definition(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _definition(kind: Any, definitions: Definitions) -> Json:
    about = {"title": kind.__name__, "description": " ".join((kind.__doc__ or "").split())}
    if issubclass(kind, StrEnum):
        return about | {"enum": [str(one) for one in kind]}
    properties = {"type": {"const": _word(kind)}} if kind in EVIDENCE else {}
    hints = typing.get_type_hints(kind)
    properties |= {name: _described(hint, definitions) for name, hint in hints.items()}
    return about | {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


if __name__ == "__main__":
    import sys

    published = msgspec.json.format(msgspec.json.encode(routes_schema()), indent=1)
    sys.stdout.buffer.write(published + b"\n")
