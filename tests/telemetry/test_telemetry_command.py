"""`pathbudget telemetry terms|map|receive`, as a user calls it."""

import gzip
import json
import signal
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.listening_process import ListeningProcess
from pathbudget.analysis.whole_budget.spans_map import default_map_text, parse_span_map
from pathbudget.analysis.whole_budget.term_files import read_terms
from pathbudget.analysis.whole_budget.terms import TermName
from pathbudget.probes.errors import ConfigError

Encode = Callable[[Sequence[ReadableSpan]], bytes]


@pytest.fixture
def call() -> Callable[..., tuple[int, str, str]]:
    def run(*words: str | Path) -> tuple[int, str, str]:
        result = CliRunner().invoke(application, ["telemetry", *map(str, words)])
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.fixture
def export(tmp_path: Path, service: Any, exported: InMemorySpanExporter, json_of: Encode) -> Path:
    service.requests(3)
    service.failing_request()
    path = tmp_path / "traces.json"
    path.write_bytes(json_of(exported.get_finished_spans()))
    return path


def test_terms_as_a_table(call: Any, export: Path) -> None:
    code, out, err = call("terms", export)
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line[:1].islower()}
    assert rows["ttft"] == ["4", "1", "124"]  # the middle of 120, 123, 126 and a failure: 124.5
    assert rows["gateway_and_auth"][:2] == ["4", "0"]
    assert "26 spans of 4 traces" in out
    assert max(map(len, out.splitlines())) <= 80


def test_terms_as_json_and_as_files_that_are_read_back(
    call: Any, export: Path, tmp_path: Path
) -> None:
    for suffix in (".csv", ".toml"):
        path = tmp_path / f"terms{suffix}"
        code, out, _ = call("terms", export, "--format", "json", "--output", path)
        assert code == 0
        told = json.loads(out)
        assert told["schema"] == "pathbudget-terms-1"
        assert sum(told["spans"]["used"].values()) + sum(told["spans"]["left_out"].values()) == 26
        ttft = next(term for term in told["terms"] if term["term"] == "ttft")
        assert (ttft["n"], ttft["failed_ratio"]) == (4, 0.25)
        assert ttft["quantiles_ms"]["p99"]["high"] is None
        back = {term.name: term for term in read_terms(path)}
        assert list(back) == [TermName(term["term"]) for term in told["terms"]]
        assert back[TermName.TTFT].distribution.losses == 1
        assert back[TermName.TTFT].requests == back[TermName.GATEWAY].requests


def test_a_table_of_ones_own_comes_before_the_shipped_one(
    call: Any, export: Path, tmp_path: Path
) -> None:
    own = tmp_path / "map.toml"
    own.write_text('[[rule]]\nterm = "tokenization"\nnames = ["retrieve*"]\n')
    _, out, _ = call("terms", export, "--map", own, "--format", "json")
    terms = {term["term"]: term for term in json.loads(out)["terms"]}
    assert "retrieval" not in terms
    assert terms["tokenization"]["quantiles_ms"]["p50"]["value"] == 44  # 41 + 3
    own.write_text('shipped = false\n[[rule]]\nterm = "guardrail"\nkinds = "server"\n')
    _, out, _ = call("terms", export, "--map", own, "--format", "json")
    assert [term["term"] for term in json.loads(out)["terms"]] == ["guardrail"]


def test_the_shipped_table_is_printed_and_means_the_same_when_given_back(call: Any) -> None:
    code, out, _ = call("map")
    assert (code, out) == (0, default_map_text())
    assert len(parse_span_map(out, "mine").rules) == out.count("[[rule]]")


BAD_MAPS: dict[str, tuple[str, str]] = {
    "term": ('[[rule]]\nterm = "prefil"\nnames = "x"', 'rule[0].term: "prefil" is no term'),
    "no condition": (
        '[[rule]]\nterm = "ttft"',
        "rule[0].names: is missing; expected one condition",
    ),
    "key": ('[[rule]]\nterm = "ttft"\nname = "x"', 'rule[0].name: unknown key "name"'),
    "kind": ('[[rule]]\nterm = "ttft"\nkinds = "serve"', 'rule[0].kinds: "serve" is no kind of'),
    "own model": (
        '[[rule]]\nterm = "model"\nnames = "x"\ntime = "own"',
        "not for calls of a model",
    ),
    "several": ('[[rule]]\nterm = "model"\nnames = "x"\nseveral = "sum"', '"sum" is unknown'),
    "names": ('[[rule]]\nterm = "ttft"\nnames = 3', "rule[0].names: 3 is neither text nor a list"),
    "unit": ('[model]\nfirst_token = { x = "min" }', 'model.first_token.x: "min" is no unit'),
    "nothing": ("shipped = false", "rule: is missing"),
    "shipped": ("shipped = 1", "shipped: 1 is not true or false"),
    "list": ("rule = 3", "rule: 3 is no list of tables"),
}


@pytest.mark.parametrize("case", BAD_MAPS)
def test_a_bad_table_says_where_and_what(case: str) -> None:
    text, expected = BAD_MAPS[case]
    with pytest.raises(ConfigError) as raised:
        parse_span_map(text, "map.toml")
    assert f"map.toml: {expected}" in str(raised.value) or expected in str(raised.value)


def test_broken_exports_are_told_and_the_rest_is_read(
    call: Any, export: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b'{"resourceSpans": [')
    code, out, err = call("terms", broken, export)
    assert code == 0
    assert "broken.jsonl: line 1, column 20: the JSON is cut off after 19" in " ".join(err.split())
    assert "1 pieces of files unreadable" in out
    code, out, err = call("terms", broken)
    assert (code, out) == (2, "")
    assert "the JSON is cut off" in " ".join(err.split())
    empty = tmp_path / "none.json"
    empty.write_text('{"resourceSpans": []}')
    code, _, err = call("terms", empty)
    assert code == 2
    assert "gives no term" in err


@pytest.mark.needs("data")
def test_load_tests_and_traces_side_by_side(call: Any, shared_data: Path) -> None:
    folder = shared_data / "llm"
    code, out, _ = call(
        "terms", folder / "llmperf" / "lepton_7b.json", folder / "otlp_trace_example.json"
    )
    assert code == 0
    assert "130 of 150 requests failed: losses" in " ".join(out.split())
    assert "incomplete: a parent is missing" in out


def test_wrong_words_are_refused(call: Any, export: Path, tmp_path: Path) -> None:
    code, _, err = call("terms", export, "--output", tmp_path / "terms.xlsx")
    assert (code, "expected a name ending in .csv or .toml" in " ".join(err.split())) == (2, True)
    for word in ("4318", "host:4318", "127.0.0.1:99999", "127.0.0.1:"):
        code, _, err = call("receive", "--listen", word, "--output", tmp_path / "x")
        assert code == 2
        assert "expected an address of this machine and a port" in " ".join(err.split())
    assert not (tmp_path / "x").exists()


def test_the_receiver_as_a_process_keeps_what_it_acknowledged(
    tmp_path: Path, service: Any, exported: InMemorySpanExporter, json_of: Encode, closed_port: int
) -> None:
    service.requests(1)
    kept = tmp_path / "kept"
    words = ["--listen", f"127.0.0.1:{closed_port}", "--output", str(kept), "--die-with-parent"]
    with ListeningProcess("receiver", "pathbudget.agents.telemetry", tmp_path, words) as receiver:
        request = urllib.request.Request(
            f"http://127.0.0.1:{closed_port}/v1/traces",
            json_of(exported.get_finished_spans()),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert (answer.status, answer.read()) == (200, b"{}")
        assert receiver.process is not None
        receiver.process.send_signal(signal.SIGTERM)
        assert receiver.process.wait(30) == 0
        assert "Stopped. 1 requests, 8 spans" in receiver.log
    (path,) = kept.iterdir()
    assert path.read_bytes().count(b"\n") == 1


def whole(*words: str | Path) -> tuple[int, Any, str]:
    """`budget whole` without a store, as JSON."""
    given = ["budget", "whole", "--allowances", "--format", "json", *map(str, words)]
    result = CliRunner().invoke(application, given)
    return result.exit_code, json.loads(result.stdout) if result.stdout else None, result.stderr


@pytest.mark.parametrize("packed", [False, True])
def test_a_whole_budget_of_what_the_sdk_exports(
    tmp_path: Path, service: Any, exported: InMemorySpanExporter, encode: Encode, packed: bool
) -> None:
    """Request by request: the sum of the script's own times and the network's allowance."""
    truth = service.requests(40)
    content = encode(exported.get_finished_spans())
    path = tmp_path / ("traces.json.gz" if packed else "traces.json")
    path.write_bytes(gzip.compress(content) if packed else content)
    code, told, _ = whole("--tier", "rag", "--traces", path)
    (found,) = told["whole_budgets"]
    assert {one["name"] for one in found["terms"] if one["source"] == "traces"} == set(
        truth[0].by_term
    )
    assert found["assumed"] == ["network"]
    assert found["combine"] == "joint"
    sums = sorted(sum(one.by_term.values()) for one in truth)
    network = next(one for one in found["terms"] if one["name"] == "network")
    assert found["value_ms"] == pytest.approx(sums[37] + network["value_ms"])
    assert found["n"] == 40
    assert code == (found["verdict"] == "fail")


def test_a_whole_budget_of_a_failed_request_of_the_sdk_has_its_loss(export: Path) -> None:
    code, told, _ = whole("--tier", "chat", "--traces", export)
    (found,) = told["whole_budgets"]
    assert (found["failing"], found["verdict"]) == (0.25, "undecided")
    assert code == 0


@pytest.mark.needs("data")
def test_a_whole_budget_of_the_example_of_the_specification(shared_data: Path) -> None:
    code, told, _ = whole("--tier", "chat", "--traces", shared_data / "llm/otlp_trace_example.json")
    (found,) = told["whole_budgets"]
    gateway = next(one for one in found["terms"] if one["name"] == "gateway_and_auth")
    assert (code, gateway["source"], gateway["value_ms"], found["verdict"]) == (
        0,
        "traces",
        1000.0,
        "undecided",
    )
    assert "gateway_and_auth has 1 sample, worth 1" in found["reason"]
    assert told["left_out"] == ["1 of 1 traces: incomplete: a parent is missing"]


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    ("name", "ttft", "tokens", "failing"),
    [
        ("together_70b", (600, 900), (100, 200), 0.0),
        ("fireworks_7b", (300, 500), (100, 150), 0.0),
        ("bedrock_13b", (500, 800), (200, 300), 0.0),
        ("lepton_7b", None, None, 130 / 150),
    ],
)
def test_a_whole_budget_of_measured_services(
    shared_data: Path, name: str, ttft: Any, tokens: Any, failing: float
) -> None:
    """p95 of TTFT and of ten tokens, as those services had them; refused requests are losses."""
    code, told, _ = whole("--tier", "rag", "--terms", shared_data / f"llm/llmperf/{name}.json")
    (found,) = told["whole_budgets"]
    terms = {one["name"]: one for one in found["terms"]}
    assert found["failing"] == pytest.approx(failing)
    for term, between in (("ttft", ttft), ("first_10_tokens", tokens)):
        value = terms[term]["value_ms"]
        assert value is None if between is None else between[0] < value < between[1]
    assert code == (1 if failing else int(found["verdict"] == "fail"))


@pytest.mark.needs("data")
@pytest.mark.parametrize("name", ["azure_llm_code_2023.csv", "mooncake_synthetic_first3000.jsonl"])
def test_traces_of_token_counts_are_refused_in_a_line(shared_data: Path, name: str) -> None:
    code, _, err = whole("--traces", shared_data / "llm" / name)
    assert code == 2
    assert "has counts of tokens and no times" in err
    assert "1 fault;" in err


def test_of_very_many_problems_the_number_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"a": 1}\n' * 100)
    code, _, err = whole("--traces", path)
    assert code == 2
    assert "80 more that cannot be read" in err
