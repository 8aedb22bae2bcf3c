"""The baseline file: what it keeps, and which ones are refused."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.agents.gate_files import read_baseline
from pathbudget.analysis.gate.baseline import (
    baseline_of,
    parse_baseline,
    render_baseline,
)
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Evaluation, TierInfo
from pathbudget.probes.errors import ConfigError

ALL = Policy(which=Sites.ALL)


def test_it_reads_back_as_it_was(evaluation: Evaluation) -> None:
    made = baseline_of(evaluation, [one.subject for one in check(evaluation, Policy()).checks])
    assert parse_baseline(render_baseline(made)) == made
    assert sum(one.checked for one in made.kept) == 18


def test_the_same_run_makes_the_same_file(evaluation: Evaluation) -> None:
    turned = msgspec.structs.replace(evaluation, lines=tuple(reversed(evaluation.lines)))
    assert render_baseline(baseline_of(turned)) == render_baseline(baseline_of(evaluation))


def test_no_limit_is_kept_as_none() -> None:
    made = baseline_of(make_of_lines([make_line(20.0, 19.0, None)]))
    (kept,) = parse_baseline(render_baseline(made)).kept
    assert kept.numbers.high_ms is None


def test_what_was_not_measured_is_not_kept() -> None:
    assert baseline_of(make_of_lines([make_line(n=0)])).kept == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no baseline"),
        (b"{}", "missing required field `pathbudget_baseline`"),
        (b"[1]", "is no baseline"),
        (b"\xff\xfe", "is no baseline"),
        (b'{"pathbudget_baseline": 2}', "has schema version 2; expected version 1"),
        (b'{"pathbudget_baseline": 1, "confidence": "x"}', "is damaged"),
        (b"[" * 100_000, "is no baseline"),
    ],
)
def test_other_files_are_refused(content: bytes, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_baseline(content, "base.json")
    assert told in str(error.value)
    assert str(error.value).startswith("base.json: ")


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--write-baseline"):
        read_baseline(tmp_path / "none.json")


def changed(**changes: Any) -> Evaluation:
    """The usual run with another definition of its tier."""
    evaluation = make_of_lines([make_line()])
    tiers = tuple(msgspec.structs.replace(one, **changes) for one in evaluation.tiers)
    return msgspec.structs.replace(evaluation, tiers=tiers)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"mixture": {"warm": 1.0}}, 'mixture: was {"warm":0.9,"resumed":0.08,"cold":0.02}, is'),
        ({"prompt_bytes": 8000}, "prompt_bytes: was 4000, is 8000"),
        ({"percentile": 99.0}, "percentile: was 95.0, is 99.0"),
        ({"network_allowance_ms": 30.0}, "network_allowance_ms: was 25.0, is 30.0"),
        ({"target_ms": 500.0}, "target_ms: was 400.0, is 500.0"),
    ],
)
def test_another_definition_of_a_tier_is_refused(changes: Any, told: str) -> None:
    before = baseline_of(make_of_lines([make_line()]))
    with pytest.raises(ConfigError) as error:
        check(changed(**changes), ALL, before, baseline_file="base.json")
    assert f"base.json: tier voice-ai, {told}" in str(error.value)


def test_a_new_title_is_no_new_definition() -> None:
    before = baseline_of(make_of_lines([make_line()]))
    assert check(changed(title="Voice"), ALL, before).exit_code == 0


def test_every_field_of_a_tier_but_its_title_counts() -> None:
    """Whatever a tier gets in future is compared without anybody thinking of it."""
    evaluation = make_of_lines([make_line()])
    before = baseline_of(evaluation)
    for name in set(TierInfo.__struct_fields__) - {"title", "name"}:
        other = changed(**{name: _other(getattr(evaluation.tiers[0], name))})
        with pytest.raises(ConfigError):
            check(other, ALL, before)


def _other(value: object) -> object:
    match value:
        case float() | int():
            return value + 1
        case dict():
            return {"other": 1.0}
        case tuple():
            return (1,)
        case _:
            return "other"


def test_another_confidence_is_refused() -> None:
    before = baseline_of(make_of_lines([make_line()], confidence=0.99))
    with pytest.raises(ConfigError, match=r"of 0\.99, those of this run of 0\.95"):
        check(make_of_lines([make_line()]), ALL, before)


def test_a_percentile_that_the_baseline_does_not_have_is_refused() -> None:
    before = baseline_of(make_of_lines([make_line()]))
    now = make_of_lines([make_line(), make_line(percentile=99.0)])
    policy = msgspec.structs.replace(ALL, percentiles=(95.0, 99.0))
    with pytest.raises(ConfigError, match="it has p95, and p99 is checked"):
        check(now, policy, before)


def test_a_tier_that_is_not_checked_may_have_changed() -> None:
    lines = [make_line(), make_line(tier="chat", allowance=45.0)]
    before = baseline_of(make_of_lines(lines))
    evaluation = make_of_lines(lines)
    voice, chat = evaluation.tiers
    changed_chat = msgspec.structs.replace(chat, target_ms=1.0)
    now = msgspec.structs.replace(evaluation, tiers=(voice, changed_chat))
    policy = msgspec.structs.replace(ALL, tiers=("voice-ai",))
    assert check(now, policy, before).exit_code == 0


def test_the_file_can_be_read_by_others(evaluation: Evaluation) -> None:
    content = json.loads(render_baseline(baseline_of(evaluation)))
    assert content["pathbudget_baseline"] == 1
    assert {one["tier"] for one in content["choices"]} == {"voice-ai", "chat", "rag"}


def test_entries_that_no_run_writes_are_refused_with_their_place() -> None:
    sound = msgspec.json.decode(render_baseline(baseline_of(make_of_lines([make_line()]), ())))
    (one,) = sound["kept"]
    twice = {**sound, "kept": [one, one]}
    outside = {**one, "numbers": {**one["numbers"], "low_ms": 1e6}}
    for content, told in (
        (twice, "stands there twice"),
        ({**sound, "kept": [outside]}, "the value is outside its interval"),
    ):
        with pytest.raises(ConfigError, match=told):
            parse_baseline(msgspec.json.encode(content))
    parse_baseline(msgspec.json.encode(sound))
