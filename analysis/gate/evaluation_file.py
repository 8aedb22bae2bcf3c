"""An evaluation from the JSON of ``pathbudget report --format json``."""

from typing import TypeVar

import msgspec

from pathbudget.analysis.results import REPORT_SCHEMA_VERSION, Evaluation, Result
from pathbudget.probes.errors import ConfigError, Fault

EXPECTED = "what pathbudget report --format json writes"


Kind = TypeVar("Kind")


class _Head(Result, frozen=True):
    """Enough to tell the file from others."""

    schema: int
    provenance: dict[str, object]
    lines: tuple[msgspec.Raw, ...]


def parse_evaluation(content: bytes, file: str = "evaluation") -> Evaluation:
    """The evaluation in some bytes; what stands beside it (routes) is left aside. Raises
    ConfigError.
    """
    head = _decoded(content, _Head, file)
    if head.schema != REPORT_SCHEMA_VERSION:
        problem = f"has schema version {head.schema}"
        raise ConfigError([Fault(file, "schema", problem, f"version {REPORT_SCHEMA_VERSION}")])
    return _decoded(content, Evaluation, file)


def _decoded(content: bytes, kind: type[Kind], file: str) -> Kind:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError([Fault(file, "", f"is no report: {error}", EXPECTED)]) from None
