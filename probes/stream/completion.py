"""The `completion` probe: time to first token and gaps, of any OpenAI-compatible endpoint.

One shot is one streamed chat completion. Shots do not wait for each other: a Poisson schedule at a
stated rate keeps as many in flight as the service is slow, and each sample says how many.
"""

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.option_files import no_regular_file, noting
from pathbudget.probes.record import Metric
from pathbudget.probes.stream.answer import CompletionAttempt, Question
from pathbudget.probes.stream.connections import Connections
from pathbudget.probes.stream.dialing import (
    CONNECTION_OPTIONS,
    HTTP,
    HTTPS,
    bearer,
    bearer_faults,
    connection_faults,
    dialer_for,
    keeps,
    marks_of_options,
    transport_of,
)
from pathbudget.probes.stream.prompts import MOST_TOKENS, Draw, fixed, from_file, lognormal
from pathbudget.probes.stream.shots import Shared

NAME = "completion"
PORTS = {HTTPS: 443, HTTP: 80}
BYTES_OF_A_WORD = 6
"""Of our prompts, with the space."""
BYTES_OF_A_CHUNK = 350
"""An event of one token, with its record and headers."""

OPTIONS = {
    "model": OptionSpec(str, "", "name of the model"),
    "path": OptionSpec(str, "/v1/chat/completions", "path of the endpoint"),
    "api_key_file": OptionSpec(
        str, "", "file of the API key; what it holds is told nowhere", file=True
    ),
    "prompt_tokens": OptionSpec(
        int, 200, "length of the prompts, or their median", minimum=1, maximum=MOST_TOKENS
    ),
    "prompt_sigma": OptionSpec(
        float, 0.0, "spread of log-normal lengths; 0: all alike", minimum=0, maximum=5
    ),
    "prompt_file": OptionSpec(
        str, "", "draw lengths from this file (CSV, JSON lines, numbers)", file=True
    ),
    "prompt_column": OptionSpec(str, "", "column of the lengths in it; default: the usual names"),
    "prompt_most": OptionSpec(
        int, 131_072, "no prompt is longer than this", minimum=1, maximum=MOST_TOKENS
    ),
    "max_tokens": OptionSpec(int, 64, "tokens of an answer at most", minimum=1, maximum=100_000),
    "ttft_deadline_ms": OptionSpec(
        float, 500.0, "give up without a token by then; 0: never", minimum=0, maximum=600_000
    ),
    "count_reasoning": OptionSpec(bool, False, "reasoning counts as tokens of the answer"),
    "usage": OptionSpec(bool, True, "ask for counts of tokens at the end"),
    "stall_ms": OptionSpec(float, 250.0, "a longer gap is a stall", minimum=1, maximum=60_000),
    **CONNECTION_OPTIONS,
}


class CompletionProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        self._question = _question(options)
        self._rng = environment.rng
        port = PORTS[str(options.get("scheme"))]
        self._shared = Shared(
            environment,
            ClockWatcher(environment.clock),
            Connections(dialer_for(environment, options, port, NAME), keep=keeps(options)),
            port,
            marks=marks_of_options(options),
            early=options.get("mode") == "early_data",
        )

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._shared.begin(CompletionAttempt(self._shared, shot, self._question, self._rng))

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        await self._shared.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._shared.close()


def _question(options: Options) -> Question:
    faults = _own_faults(options)
    if faults:
        raise ConfigError(faults)
    return Question(
        path=str(options.get("path") or ""),
        model=str(options.get("model") or ""),
        lengths=_lengths(options),
        max_tokens=int(options.get("max_tokens") or 1),
        usage=bool(options.get("usage")),
        count_reasoning=bool(options.get("count_reasoning")),
        deadline_ns=round(float(options.get("ttft_deadline_ms") or 0) * 1e6),
        stall_ns=round(float(options.get("stall_ms") or 0) * 1e6),
        headers=bearer(options, "api_key_file", NAME),
    )


def _own_faults(options: Options) -> list[Fault]:
    """What cannot be had together, and words and files that are no good."""
    faults: list[Fault] = []
    path = str(options.get("path") or "")
    if not (path.startswith("/") and path.isascii() and path.isprintable() and " " not in path):
        faults.append(Fault(NAME, "path", repr(path), "a path, as in /v1/completions"))
    if options.get("prompt_column") and not options.get("prompt_file"):
        problem = "there is no file to have that column"
        faults.append(Fault(NAME, "prompt_column", problem, "a prompt_file beside it"))
    if options.get("prompt_sigma") and options.get("prompt_file"):
        problem = "lengths of prompt_file have their own spread"
        faults.append(Fault(NAME, "prompt_sigma", problem, "either of the two"))
    unreadable = no_regular_file(options, "prompt_file", "a readable file of lengths", NAME)
    if unreadable is not None:
        faults.append(unreadable)
    else:
        noting(faults, "prompt_file", lambda: _lengths(options), NAME)
    return [*faults, *bearer_faults(options, "api_key_file", NAME)]


def _check(options: Options) -> list[Fault]:
    return [*_own_faults(options), *connection_faults(options, NAME)]


def _lengths(options: Options) -> Draw:
    most = int(options.get("prompt_most") or 1)
    file = str(options.get("prompt_file") or "")
    if file:
        return from_file(file, str(options.get("prompt_column") or ""), most)
    tokens = int(options.get("prompt_tokens") or 1)
    sigma = float(options.get("prompt_sigma") or 0)
    if tokens > most:
        expected = f"at most prompt_most, {most}"
        raise ConfigError([Fault(NAME, "prompt_tokens", str(tokens), expected)])
    return lognormal(tokens, sigma, most) if sigma else fixed(tokens)


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return CompletionProbe(environment, options)


def _cost(options: Options) -> Cost:
    """Set-up, the prompt (of a file: the longest that may be drawn), one event for each token."""
    drawn = options.get("prompt_file") or options.get("prompt_sigma")
    tokens = int(options.get("prompt_most" if drawn else "prompt_tokens") or 1)
    answer = int(options.get("max_tokens") or 1)
    sent = tokens * BYTES_OF_A_WORD
    packets = 24 + 2 * (1 + sent // 1_400) + 2 * answer
    return Cost(packets=packets, bytes=10_000 + sent + answer * (BYTES_OF_A_CHUNK + 66))


COMPLETION = ProbeSpec(
    name=NAME,
    summary="time to first token and gaps of an OpenAI-compatible endpoint",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.TTFT,
    default_port=443,
    transport=transport_of,
    check=_check,
)
