"""The JSON is the evaluation, and the published schema describes it."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from pathbudget.analysis.report.json_report import json_schema, render_json
from pathbudget.analysis.results import REPORT_SCHEMA_VERSION, Evaluation

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "report-schema.json"


@pytest.mark.parametrize("name", ["evaluation", "hostile"])
def test_what_is_written_fits_the_published_schema(
    name: str, request: pytest.FixtureRequest
) -> None:
    schema = json.loads(PUBLISHED.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    content = json.loads(render_json(request.getfixturevalue(name)))
    jsonschema.Draft202012Validator(schema).validate(content)


def test_the_schema_refuses_something_else(evaluation: Evaluation) -> None:
    content = json.loads(render_json(evaluation))
    content["lines"][0]["verdict"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, json.loads(PUBLISHED.read_bytes()))


def test_the_published_schema_is_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_bytes()) == json.loads(msgspec.json.encode(json_schema())), (
        "run: python -m pathbudget.analysis.report.json_report > docs/report-schema.json"
    )


def test_the_schema_names_its_version() -> None:
    assert json_schema()["$id"].endswith(f":{REPORT_SCHEMA_VERSION}")


def test_it_reads_back_as_it_was(evaluation: Evaluation) -> None:
    assert msgspec.json.decode(render_json(evaluation), type=Evaluation) == evaluation


def test_no_field_can_hold_the_address_of_a_vantage() -> None:
    names = {
        field
        for definition in json_schema()["$defs"].values()
        for field in definition.get("properties", ())
    }
    assert not names & {"host", "source_address", "from", "src_addr"}
