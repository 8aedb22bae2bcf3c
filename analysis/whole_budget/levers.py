"""The levers of a what-if by name, and how they are written: ``NAME``, ``NAME=VALUE``.

``VALUE`` is a number, ``key:number`` pairs, or words, with commas: ``prefix-cache=0.6,hit-ms:12``.
Adding a lever: its function, one line here, one section in docs/whole-budget.md.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from pathbudget.analysis.whole_budget import lever_network, lever_serving
from pathbudget.analysis.whole_budget.case import Case, Changed, Setting
from pathbudget.probes.errors import ConfigError, Fault


@dataclass(frozen=True, slots=True)
class Lever:
    """One lever: what it is called, how it is written, and what it does to a case."""

    name: str
    title: str
    example: str
    apply: Callable[[Case, Setting], Changed]


LEVERS = {
    lever.name: lever
    for lever in (
        Lever("mix", "other connection modes", "mix=warm:0.9,cold:0.1", lever_network.mix),
        Lever("prompt", "prompts of another size", "prompt=64000", lever_network.prompt),
        Lever("site", "another site, or the best of some", "site=ashburn", lever_network.site),
        Lever("pop", "connections end near the user", "pop=8", lever_network.pop),
        Lever("token-rate", "tokens per second", "token-rate=60", lever_serving.token_rate),
        Lever(
            "speculative",
            "speculative decoding",
            "speculative=0.8,draft:4,cost:0.08",
            lever_serving.speculative,
        ),
        Lever(
            "chunked-prefill",
            "chunked prefill in a burst",
            "chunked-prefill=4,prefill:380,chunk:20",
            lever_serving.chunked_prefill,
        ),
        Lever(
            "prefix-cache",
            "prefixes kept at a hit rate",
            "prefix-cache=0.6,hit-ms:15",
            lever_serving.prefix_cache,
        ),
        Lever(
            "cached-keys",
            "keys kept in the gateway",
            "cached-keys=0.99,hit-ms:1",
            lever_serving.cached_keys,
        ),
        Lever(
            "async-guardrail",
            "guardrail beside the model",
            "async-guardrail=ttft",
            lever_serving.async_guardrail,
        ),
    )
}


def read_lever(text: str) -> tuple[Lever, Setting]:
    """A lever as it was written. Raises ConfigError that names those there are."""
    name, _, value = text.partition("=")
    name = name.strip()
    if name not in LEVERS:
        near = difflib.get_close_matches(name, LEVERS, n=1)
        hint = f"{near[0]}, perhaps" if near else "one of " + ", ".join(LEVERS)
        raise ConfigError([Fault("command line", "--lever", f"no lever {name!r}", hint)])
    return LEVERS[name], _setting(name, value)


def _setting(name: str, value: str) -> Setting:
    setting = Setting(name)
    words: list[str] = []
    numbers: dict[str, float] = {}
    for part in (part.strip() for part in value.split(",") if part.strip()):
        key, colon, number = part.rpartition(":")
        if not colon:
            words.append(part)
        elif key in numbers:
            raise setting.wrong(f"{key} is there twice", "each setting once")
        else:
            numbers[key] = setting.number_of(number)
    return Setting(name, tuple(words), numbers, value.strip())
