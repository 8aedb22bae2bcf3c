"""docs/record-schema.md says what the code says."""

import importlib.util
import json
import re
import typing
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from pathbudget.probes import record
from pathbudget.probes.codec import decode_line

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "record-schema.md"


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_record_schema", DOCS / "generate_record_schema.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_code(generator: ModuleType) -> None:
    text = PAGE.read_text()
    assert generator.page(text) == text


def test_every_field_of_every_record_is_on_the_page() -> None:
    text = PAGE.read_text()
    for kind, prefix in (
        (record.Measurement, ""),
        (record.Vantage, "vantage."),
        (record.Target, "target."),
        (record.ClockQuality, "clock."),
        (record.NoiseFloor, "noise."),
        (record.Sample, ""),
        (record.Failure, "failure."),
    ):
        for field in msgspec.structs.fields(kind):
            nested = [
                part
                for part in (field.type, *typing.get_args(field.type))
                if isinstance(part, type) and issubclass(part, msgspec.Struct)
            ]
            if not nested and field.name != "samples":
                assert f"| `{prefix}{field.name}` |" in text


def test_the_example_is_a_record() -> None:
    (example,) = re.findall(r"```json\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    measurement = decode_line(example.encode())
    assert len(measurement.samples) == 2
    assert json.loads(example)["schema"] == record.SCHEMA_VERSION


def test_every_version_has_a_row() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert rows == [str(version) for version in range(1, record.SCHEMA_VERSION + 1)]
