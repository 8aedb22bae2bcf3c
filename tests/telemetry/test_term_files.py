"""Terms of a user's own: samples, quantiles, named distributions, results of llmperf."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathbudget.analysis.whole_budget.llmperf import read_llmperf
from pathbudget.analysis.whole_budget.term_files import parse_terms, read_terms
from pathbudget.analysis.whole_budget.term_output import as_csv, as_toml
from pathbudget.analysis.whole_budget.terms import Scope, Term, TermName, TermSource
from pathbudget.probes.errors import ConfigError

MS = 1e6


def toml(text: str) -> tuple[Term, ...]:
    return parse_terms(text.encode(), "my.toml", ".toml")


def csv(text: str) -> tuple[Term, ...]:
    return parse_terms(text.encode(), "my.csv", ".csv")


def one(text: str) -> Term:
    (term,) = toml('[[term]]\nname = "ttft"\n' + text)
    return term


def quantile(term: Term, p: float) -> float:
    return term.distribution.estimate(p, 0.95).value / MS


def faults_of(text: str, suffix: str = ".toml") -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_terms(text.encode(), f"my{suffix}", suffix)
    return str(raised.value).splitlines()


def test_samples_with_failures_ids_and_times() -> None:
    term = one(
        "samples_ms = [30, inf, 10.5]\nrequests = ['b', 'c', 'a']\nregion = 'paris'\n"
        "times = [2026-12-01T10:00:02Z, '2026-12-01 10:00:03.123456789', 2026-12-01T10:00:01Z]\n"
    )
    assert term.source is TermSource.FILE
    assert term.scope == Scope(region="paris")
    assert list(term.values_ns) == [10.5 * MS, 30 * MS, math.inf]  # in order of time
    assert term.requests == ("a", "b", "c")
    assert term.sent_unix_ns[2] - term.sent_unix_ns[0] == 2_123_456_789
    assert term.n_effective <= 3


def test_quantiles_are_steps_that_are_never_too_quick() -> None:
    term = one("quantiles_ms = { p50 = 100, p95 = 200, 'p99.9' = 400 }\nn = 500\n")
    assert [quantile(term, p) for p in (0.3, 0.5, 0.51, 0.95, 0.951, 0.999)] == [
        100, 100, 200, 200, 400, 400,
    ]  # fmt: skip
    assert quantile(term, 0.9995) == math.inf
    assert term.n_effective == 500
    estimate = term.distribution.estimate(0.95, 0.95)
    assert (estimate.low, estimate.high) == (200 * MS, 400 * MS)


def test_quantiles_to_the_maximum_know_no_unknown() -> None:
    term = one("quantiles_ms = { p50 = 100, max = 300 }\nn = 50\nfailed = 0.02\n")
    assert quantile(term, 0.9) == 300
    assert quantile(term, 0.99) == math.inf
    assert term.distribution.losses / term.distribution.n == pytest.approx(0.02, abs=1e-4)


@pytest.mark.parametrize(
    ("shape", "quantiles"),
    [
        ("lognormal = { median_ms = 100, sigma = 0.5 }", {0.5: 100, 0.95: 227.6, 0.99: 320.0}),
        ("lognormal = { median_ms = 20, p95_ms = 60 }", {0.5: 20, 0.95: 60}),
        ("gamma = { mean_ms = 10, sd_ms = 10 }", {0.5: 6.931, 0.95: 29.96}),
        ("normal = { mean_ms = 50, sd_ms = 10 }", {0.5: 50, 0.95: 66.45}),
        ("exponential = { mean_ms = 12, least_ms = 2 }", {0.5: 8.931, 0.95: 31.96}),
        ("uniform = { least_ms = 10, most_ms = 30 }", {0.5: 20, 0.95: 29}),
        ("constant = { value_ms = 7 }", {0.5: 7, 0.99: 7}),
    ],
)
def test_named_distributions(shape: str, quantiles: dict[float, float]) -> None:
    """Against tables: 0.95 and 0.99 of the normal are 1.6449 and 2.3263; ln 2 = 0.6931."""
    term = one(shape)
    assert {p: quantile(term, p) for p in quantiles} == pytest.approx(quantiles, rel=1e-3)
    assert term.n_effective == math.inf
    assert one(f"{shape}\nn = 40").n_effective == 40


def test_a_share_that_fails_is_that_share_of_any_shape() -> None:
    for shape in ("constant = { value_ms = 7 }", "normal = { mean_ms = 50, sd_ms = 10 }"):
        spread = one(f"{shape}\nfailed = 0.03").distribution
        assert spread.losses / spread.n == pytest.approx(0.03, abs=1e-4)


def test_a_table_of_samples() -> None:
    terms = csv(
        "term,value_ms,request,time,site\n"
        "ttft,120.5,r1,2026-12-01T10:00:00Z,fra\n\n"
        "guardrail,failed,r1,,\n"
        "ttft,80,r2,2026-12-01T09:59:00+00:00,fra\n"
    )
    assert [(term.name, term.scope.site, term.requests) for term in terms] == [
        (TermName.GUARDRAIL, "", ("r1",)),
        (TermName.TTFT, "fra", ("r2", "r1")),
    ]
    assert terms[0].values_ns[0] == math.inf


def test_a_table_of_quantiles() -> None:
    first, second = csv("Term,P50,p95,max,n,failed\nttft,1,2,3,90,\nguardrail,4,,5,80,0.1\n")
    assert (first.name, quantile(first, 0.95), first.n_effective) == (TermName.TTFT, 2, 90)
    assert (second.name, quantile(second, 0.6)) == (TermName.GUARDRAIL, 5)


TTFT = "[[term]]\nname = 'ttft'\n"
BAD_TOML: dict[str, tuple[str, str]] = {
    "not toml": ("[[term]\n", "my.toml: line 1, column 7: not TOML"),
    "nothing": ("", "my.toml: has no terms"),
    "unknown key": ("terms = 1", 'my.toml: terms: unknown key "terms"'),
    "one bracket": ("[term]\nname = 'ttft'", "my.toml: term: a table is no list of tables"),
    "network": ("[[term]]\nname = 'network'\nsamples_ms = [1]",
                "name: \"network\" is no term of the budget; expected network_in and network_out"),
    "near": (
        "[[term]]\nname = 'prefill'\nsamples_ms = [1]", 'expected "ttft" (did you mean that?)'),
    "no values": (TTFT, 'samples_ms (of "ttft"): has no values'),
    "two shapes": (TTFT + "samples_ms = [1]\nconstant = { value_ms = 1 }",
                   "has samples_ms and constant"),
    "negative": (TTFT + "samples_ms = [1, -2]", 'samples_ms[1] (of "ttft"): -2 is'),
    "nan": (TTFT + "samples_ms = [nan]", "nan is no time of a request"),
    "truth": (TTFT + "samples_ms = [true]", "true is no time of a request"),
    "empty": (TTFT + "samples_ms = []", "a list is no list of numbers"),
    "ids": (TTFT + "samples_ms = [1]\nrequests = ['a', 'b']", "2 entries; expected 1"),
    "time": (TTFT + "samples_ms = [1]\ntimes = ['noon']", '"noon" is no time'),
    "twice": ((TTFT + "constant = { value_ms = 1 }\n") * 2,
              "a second ttft of every region, site and tier"),
    "falling": (TTFT + "n = 9\nquantiles_ms = { p50 = 9, p95 = 8 }",
                'quantiles_ms.p95 (of "ttft"): 8 is below 9; expected quantiles that rise'),
    "no n": (TTFT + "quantiles_ms = { p50 = 9 }", "n (of \"ttft\"): is missing"),
    "odd quantile": (TTFT + "n = 9\nquantiles_ms = { q5 = 9 }",
                     '"q5" is no quantile; expected p50, p95'),
    "two spreads": (TTFT + "lognormal = { median_ms = 9, sigma = 1, p95_ms = 99 }",
                    "needs exactly one of sigma and p95_ms"),
    "all fail": (TTFT + "failed = 1\nconstant = { value_ms = 1 }", "out of range"),
    "same id": (TTFT + "samples_ms = [1, 2]\nrequests = ['a', 'a']",
                'a second ttft of request "a"'),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TOML)
def test_bad_toml_says_where_and_what(case: str) -> None:
    text, expected = BAD_TOML[case]
    assert any(expected in fault for fault in faults_of(text)), faults_of(text)


BAD_CSV: dict[str, tuple[str, str]] = {
    "empty": ("", "my.csv: line 1: is empty"),
    "only names": ("term,value_ms\n", "my.csv: has no terms"),
    "column": ("term,value\nttft,1\n", 'line 1, column 2: unknown column "value"'),
    "no term": ("value_ms\n1\n", "line 1: has no column term"),
    "twice": ("term,value_ms,term\nttft,1,ttft\n", 'column 3: a second "term"'),
    "semicolons": ("term;value_ms\nttft;1\n", "semicolons between the columns; expected commas"),
    "value": ("term,value_ms\nttft,1\nttft,-1\n", 'line 3, column value_ms: "-1" is no time'),
    "word": ("term,value_ms\nttft,quick\n", 'line 2, column value_ms: "quick" is no time'),
    "term": ("term,value_ms\ntttft,1\n", 'line 2, column term: "tttft" is no term'),
    "cells": ("term,value_ms\nttft\n", "line 2: 1 cells under 2 columns"),
    "request": ("term,value_ms,request\nttft,1,a\nttft,2,a\n", "line 3: a second ttft of"),
    "quotes": ('term,value_ms\nttft,"1\n', "not CSV"),
    "time": ("term,value_ms,time\nttft,1,2026-13-01T00:00:00Z\n", "is no time"),
    "n": ("term,p50\nttft,1\n", "line 1: has no column n"),
    "falling": ("term,p50,p95,n\nttft,3,2,9\n", "line 2, column p95: 2 is below 3"),
    "no n": ("term,p50,n\nttft,3,\n", "line 2, column n: is missing"),
    "two": ("term,p50,n\nttft,3,9\nttft,3,9\n", "line 3: a second ttft of every region"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_CSV)
def test_a_bad_table_says_where_and_what(case: str) -> None:
    text, expected = BAD_CSV[case]
    assert any(expected in fault for fault in faults_of(text, ".csv")), faults_of(text, ".csv")


def test_bytes_that_are_no_text_and_names_without_an_ending() -> None:
    with pytest.raises(ConfigError, match="line 2: byte 0xff is not UTF-8"):
        parse_terms(b"term\n\xff", "my.csv", ".csv")
    with pytest.raises(ConfigError, match=r"a file that ends in \.toml, \.csv or \.json"):
        parse_terms(b"", "my.xlsx", ".xlsx")


@pytest.mark.parametrize(("write", "suffix"), [(as_csv, ".csv"), (as_toml, ".toml")])
def test_terms_come_back_from_what_is_written(write: Any, suffix: str) -> None:
    rng = np.random.default_rng(7)
    values = np.append(rng.lognormal(17, 1, 50), math.inf)
    ids = tuple(f'r,"{at}"' for at in range(51))
    times = tuple(1_790_000_000_123_456_789 + at for at in range(51))
    given = Term(
        TermName.RETRIEVAL, TermSource.TRACES, values, 51.0, ids, "x", Scope("a", "b", "c"), times
    )
    bare = Term(TermName.TTFT, TermSource.TRACES, values, 51.0)
    back = parse_terms(write([given, bare]).encode(), f"x{suffix}", suffix)
    plain, scoped = back
    assert scoped.values_ns == pytest.approx(values, rel=1e-14)
    assert (scoped.requests, scoped.sent_unix_ns, scoped.scope) == (ids, times, given.scope)
    assert plain.values_ns == pytest.approx(values, rel=1e-14)
    assert plain.requests == ()


@pytest.mark.parametrize(
    "stated",
    [
        'quantiles_ms = { p50 = 40, "p99.9" = 90.5, max = 240 }\nn = 2000\nfailed = 0.01',
        "lognormal = { median_ms = 12, p95_ms = 30 }\nn = 400",
        "exponential = { mean_ms = 12, least_ms = 2 }",
        "constant = { value_ms = 7 }\nfailed = 0.1",
    ],
)
def test_a_stated_distribution_is_written_as_it_was_stated(stated: str) -> None:
    given = one(stated + "\n")
    (back,) = parse_terms(as_toml([given]).encode(), "x.toml", ".toml")
    assert back.values_ns.tolist() == given.values_ns.tolist()
    assert back.n_effective == given.n_effective
    assert back.stated == given.stated
    with pytest.raises(ValueError, match="rows are samples"):
        as_csv([given])


SERVICES = ("anyscale_70b", "bedrock_13b", "bedrock_70b", "fireworks_7b", "lepton_7b",
            "replicate_70b", "replicate_7b", "together_70b")  # fmt: skip


@pytest.mark.needs("data")
@pytest.mark.parametrize("name", SERVICES)
def test_measured_services_give_their_own_medians(shared_data: Path, name: str) -> None:
    """Of the answers, computed anew; of those without, a loss each."""
    path = shared_data / "llm" / "llmperf" / f"{name}.json"
    raw = json.loads(path.read_text())
    answered = [r for r in raw if r["error_code"] in (None, -100)]
    ttft, further = read_terms(path)
    assert (ttft.name, further.name) == (TermName.TTFT, TermName.FIRST_TOKENS)
    assert ttft.distribution.losses == further.distribution.losses == len(raw) - len(answered)
    assert ttft.distribution.n == len(raw)
    assert ttft.requests == further.requests
    middle = statistics.median(r["ttft_s"] for r in answered)
    rate = statistics.median(
        (r["end_to_end_latency_s"] - r["ttft_s"]) / (r["number_output_tokens"] - 1)
        for r in answered
    )
    finite = [term.values_ns[np.isfinite(term.values_ns)] for term in (ttft, further)]
    assert statistics.median(finite[0]) / 1e9 == pytest.approx(middle)
    assert statistics.median(finite[1]) / 1e9 == pytest.approx(10 * rate)
    assert 0.2 < middle < 4
    assert 0.01 < rate < 0.1


@pytest.mark.needs("data")
def test_refused_requests_are_losses_and_short_answers_are_not(shared_data: Path) -> None:
    folder = shared_data / "llm" / "llmperf"
    refused = read_llmperf((folder / "lepton_7b.json").read_bytes(), "lepton")
    assert (refused.requests, refused.failed, refused.short) == (150, 130, 0)
    assert refused.terms[0].distribution.estimate(0.5, 0.95).value == math.inf  # not 0 ms
    short = read_llmperf((folder / "bedrock_13b.json").read_bytes(), "bedrock")
    assert (short.requests, short.failed, short.short) == (150, 0, 97)


def result(**fields: Any) -> dict[str, Any]:
    usual = {"error_code": None, "ttft_s": 0.5, "end_to_end_latency_s": 2.5}
    return {**usual, "number_output_tokens": 101, **fields}


def test_the_rate_counts_the_tokens_after_the_first() -> None:
    content = json.dumps([result(), result(number_output_tokens=1)]).encode()
    test = read_llmperf(content, "t.json", tokens=20)
    ttft, further = test.terms
    assert list(ttft.values_ns) == [5e8, 5e8]
    assert list(further.values_ns) == [20 * 2.0 / 100 * 1e9]
    assert (further.requests, test.without_rate) == (("t.json#0",), 1)


@pytest.mark.parametrize(
    ("fields", "failed", "short"),
    [
        ({"error_code": -100, "error_msg": "Output too few tokens 39"}, 0, 1),
        ({"error_code": -100}, 0, 1),
        ({"error_code": -100, "error_msg": "overloaded"}, 1, 0),
        ({"error_code": -100, "number_output_tokens": 0}, 1, 0),
        ({"error_code": -100, "ttft_s": 0}, 1, 0),
        ({"error_code": 429, "error_msg": "Output too few tokens 39"}, 1, 0),
        ({"error_code": 0}, 0, 0),
    ],
)
def test_a_short_answer_is_one_and_a_failure_is_a_loss(
    fields: dict[str, Any], failed: int, short: int
) -> None:
    test = read_llmperf(json.dumps([result(**fields), result()]).encode(), "t.json")
    assert (test.failed, test.short) == (failed, short)
    assert [term.distribution.losses for term in test.terms] == [failed, failed]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[", "truncated"),
        (b"[]", "is an empty list"),
        (b"{}", "Expected `array`, got `object`"),
        (b'[{"ttft_s": 1}]', r"result\[0\]: Object missing required field"),
        (json.dumps([result(), result(ttft_s="x")]).encode(), r"result\[1\].ttft_s: Expected `fl"),
        (json.dumps([result(ttft_s=9)]).encode(), "first token at 9 s, after the end at 2.5 s"),
    ],
)
def test_broken_results_of_a_load_test(content: bytes, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        read_llmperf(content, "t.json")
