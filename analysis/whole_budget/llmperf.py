"""Results of the load test llmperf as the terms TTFT and first tokens.

Each file is a list of requests. The time per token is (end to end - TTFT) / (output tokens - 1):
llmperf's own ``inter_token_latency_s`` counts the first token too, and of requests with an error
it is the sum and no mean.

A request with an error code is a loss of both terms. Code -100 alone is none, where its message is
"Output too few tokens" and there were some: the load test wanted a longer answer than the model
gave, so what was measured of it is true. Of 146 such requests in published results all had a first
token, and 8 to 119 tokens.
"""

import math
from dataclasses import dataclass

import msgspec
import numpy as np

from pathbudget.analysis.quantiles import independent_size
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource
from pathbudget.probes.errors import ConfigError, Fault

SECOND = 1e9
TOKENS = 10
TOO_SHORT = -100
TOO_FEW = "Output too few tokens"
FAILED = math.inf


class Request(msgspec.Struct):
    """What llmperf writes of one request, as far as it is needed."""

    ttft_s: float
    end_to_end_latency_s: float
    number_output_tokens: int
    error_code: int | str | None = None
    error_msg: str | None = None
    number_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LoadTest:
    """Terms, and what became of the requests."""

    terms: tuple[Term, ...]
    requests: int
    failed: int
    short: int
    """Answered with fewer tokens than the test wanted; their times count."""
    without_rate: int
    """Answered with fewer than two tokens: no time per token."""


def read_llmperf(content: bytes, file: str, *, tokens: int = TOKENS) -> LoadTest:
    """The terms of one file of results. Raises ConfigError."""
    requests = _requests(content, file)
    ids = [f"{file}#{at}" for at in range(len(requests))]
    first = [FAILED if is_failed(r) else r.ttft_s * SECOND for r in requests]
    further = [_further_ns(r, tokens) for r in requests]
    told = [at for at, value in enumerate(further) if value is not None]
    rates = np.array([value for value in further if value is not None])
    terms = [_term(TermName.TTFT, np.array(first), ids, file)]
    if told:
        terms.append(_term(TermName.FIRST_TOKENS, rates, [ids[at] for at in told], file))
    return LoadTest(
        tuple(terms),
        len(requests),
        sum(is_failed(r) for r in requests),
        sum(is_short(r) and not is_failed(r) for r in requests),
        len(requests) - len(told),
    )


def is_failed(request: Request) -> bool:
    """Whether there was no answer."""
    if request.ttft_s <= 0:
        return True
    return request.error_code not in (None, 0, "") and not is_short(request)


def is_short(request: Request) -> bool:
    """Whether it was answered, with fewer tokens than the test wanted."""
    told = (request.error_msg or TOO_FEW).startswith(TOO_FEW)
    return request.error_code == TOO_SHORT and told and request.number_output_tokens > 0


def _further_ns(request: Request, tokens: int) -> float | None:
    if is_failed(request):
        return FAILED
    if request.number_output_tokens < 2:
        return None
    streamed = request.end_to_end_latency_s - request.ttft_s
    return tokens * streamed / (request.number_output_tokens - 1) * SECOND


def _requests(content: bytes, file: str) -> list[Request]:
    expected = "a list of llmperf's results: ttft_s, end_to_end_latency_s, number_output_tokens"
    try:
        requests = msgspec.json.decode(content, type=list[Request])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem, _, path = str(error).partition(" - at `$")
        where = f"result{path.rstrip('`')}" if path else ""
        raise ConfigError([Fault(file, where, problem, expected)]) from error
    if not requests:
        raise ConfigError([Fault(file, "", "is an empty list", expected)])
    faults = [
        Fault(file, f"result[{at}]", problem, "times that can be")
        for at, request in enumerate(requests)
        if (problem := _problem(request))
    ]
    if faults:
        raise ConfigError(faults)
    return requests


def _problem(request: Request) -> str:
    if is_failed(request):
        return ""
    times = (request.ttft_s, request.end_to_end_latency_s)
    if not all(0 <= time < 1e6 for time in times):
        return f"times of {times[0]:g} and {times[1]:g} s"
    if request.ttft_s > request.end_to_end_latency_s:
        return f"the first token at {times[0]:g} s, after the end at {times[1]:g} s"
    return ""


def _term(
    name: TermName, values: "np.typing.NDArray[np.float64]", ids: list[str], file: str
) -> Term:
    return Term(
        name, TermSource.FILE, values, independent_size(values), tuple(ids), f"{file}: llmperf"
    )
