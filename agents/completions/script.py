"""The script of a scripted server: how long it takes to its tokens, and what goes wrong.

    model = "scripted"
    slots = 4                       # answers at once; others wait
    first_token = { median_ms = 120, sigma = 0.4 }
    token = { ms = 25 }

docs/completions.md has every field.
"""

import math
import random
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from pathbudget.agents.completions.script_faults import faults_in
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.toml_reader import parse_toml, read_text

MILLISECOND_NS = 1_000_000
LONGEST_DRAW_NS = 600_000 * MILLISECOND_NS

Positive = Annotated[float, msgspec.Meta(ge=0, le=600_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A distribution of times: exactly one of `ms` (fixed), `mean_ms` (exponential), `low_ms` with
    `high_ms` (uniform) or `median_ms` with `sigma` (log-normal).
    """

    ms: Positive | None = None
    mean_ms: Positive | None = None
    low_ms: Positive | None = None
    high_ms: Positive | None = None
    median_ms: Positive | None = None
    sigma: Annotated[float, msgspec.Meta(ge=0, le=5)] | None = None

    def __post_init__(self) -> None:
        given = {name for name in self.__struct_fields__ if getattr(self, name) is not None}
        if given not in _KINDS:
            has = f"has {' and '.join(sorted(given))}" if given else "is empty"
            raise ValueError(f"{has}; expected {_A_TIME}")
        if self.low_ms is not None and self.high_ms is not None and self.low_ms > self.high_ms:
            raise ValueError("low_ms is above high_ms; expected the other way round")

    def draw_ns(self, rng: random.Random) -> int:
        """One time."""
        return min(round(self._draw_ms(rng) * MILLISECOND_NS), LONGEST_DRAW_NS)

    def _draw_ms(self, rng: random.Random) -> float:
        if self.ms is not None:
            return self.ms
        if self.mean_ms is not None:
            return rng.expovariate(1 / self.mean_ms) if self.mean_ms else 0.0
        if self.low_ms is not None and self.high_ms is not None:
            return rng.uniform(self.low_ms, self.high_ms)
        median, sigma = self.median_ms or 0.0, self.sigma or 0.0
        return median * math.exp(rng.gauss(0, sigma))


_A_TIME = "ms, or mean_ms, or low_ms and high_ms, or median_ms and sigma"
_KINDS: tuple[set[str], ...] = (
    {"ms"},
    {"mean_ms"},
    {"low_ms", "high_ms"},
    {"median_ms", "sigma"},
)


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an answer looks like."""

    tokens: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 64
    """As many, or `max_tokens` of the request where that is less."""
    tokens_per_chunk: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    role_first: bool = True
    """A chunk with the role and no text, as soon as the request has a slot."""
    reasoning_tokens: Count = 0
    """Before the answer."""
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    usage: Literal["asked", "always", "never"] = "asked"
    end_mark: bool = True
    """``data: [DONE]``"""


class Stall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every `every` tokens a pause of `ms`; 0: never."""

    every: Count = 0
    ms: Positive = 0


class Trouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What goes wrong, with a request of `share`, after `after_tokens`: an error `event`, a `close`
    in good order, a `reset`, `silence` for ever; or instead of an answer a `status`.
    """

    kind: Literal["none", "event", "close", "reset", "silence", "status"] = "none"
    share: Share = 1.0
    after_tokens: Count = 0
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] = 503
    message: str = "scripted trouble"


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a scripted server does."""

    model: str = "scripted"
    seed: int = 1
    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    """Answers at once. A request without a slot waits: so load shows."""
    queue: Count = 1_000
    """Requests that may wait; one more is refused with status 429."""
    first_token: Spread = Spread(ms=100)
    """From a slot to the first token."""
    prompt_token_us: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0
    """Longer by this for every token (or word) of the prompt."""
    token: Spread = Spread(ms=25)
    """Between two tokens."""
    answer: Answer = Answer()
    stall: Stall = Stall()
    trouble: Trouble = Trouble()


def read_script(file: Path) -> Script:
    """Read a script in TOML, or in JSON where its name ends so.

    Raises:
        ConfigError: with every fault of it.
    """
    faults: list[Fault] = []
    text = read_text(file, faults)
    values = None if text is None else _values(text, file, faults)
    if values is not None:
        faults += faults_in(values, Script, str(file))
    if faults:
        raise ConfigError(faults)
    return msgspec.convert(values, Script)


def _values(text: str, file: Path, faults: list[Fault]) -> dict[str, object] | None:
    if file.suffix != ".json":
        return parse_toml(text, str(file), faults)
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        faults.append(Fault(str(file), "", f"not JSON: {error}", "a JSON object"))
    return None
