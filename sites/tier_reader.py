"""From one table of a file to a `Tier`."""

import math

from pathbudget.sites.catalogue import Tier
from pathbudget.sites.entry import Entry, Interval, plain_number, show
from pathbudget.sites.tiers import (
    HEADLINE_MODES,
    MODES,
    NETWORK,
    TRANSPORTS,
    fits,
    mixture_keys,
    total_ms,
)

TARGET = Interval(0, 1e9, "milliseconds above 0", open_low=True)
ALLOWANCE = Interval(0, 1e9, "milliseconds, 0 or more")
PERCENTILE = Interval(1, 100, "a percentile from 1 to below 100, like 95", open_high=True)
PROMPT = Interval(1, 1e12, "a whole number of bytes, 1 or more")
SHARE = Interval(0, 1, "a share from 0 to 1")

TIER_KEYS = (
    "name",
    "title",
    "target_ms",
    "components",
    "percentile",
    "mode",
    "transport",
    "prompt_bytes",
    "further_prompt_bytes",
    "mixture",
    "source",
    "date",
)

SUM_TOLERANCE = 1e-6
"""How far the shares of a mixture may be from 1: thirds written with seven digits still pass."""


def read_tier(entry: Entry) -> Tier | None:
    """The tier that `entry` describes; None when there are faults, which are noted."""
    entry.only(TIER_KEYS)
    name, title = entry.text("name", None), entry.text("title")
    target = entry.number("target_ms", TARGET, required=True)
    percentile = entry.number("percentile", PERCENTILE)
    prompt = entry.whole_number("prompt_bytes", PROMPT, required=True)
    further = _further_prompts(entry, prompt)
    mode = entry.word("mode", HEADLINE_MODES, "warm")
    transport = entry.word("transport", TRANSPORTS, "tls")
    components = _components(entry)
    mixture = _mixture(entry, mode, transport)
    source, date = entry.text("source"), entry.date("date")
    if target is None or prompt is None or not entry.sound:
        return None
    tier = Tier(
        name=name,
        title=title or name,
        target_ms=target,
        components=components,
        percentile=95.0 if percentile is None else percentile,
        mode=mode,
        prompt_bytes=prompt,
        mixture=mixture,
        source=source,
        date=date,
        transport=transport,
        further_prompt_bytes=further,
    )
    return _that_fits(entry, tier)


def _components(entry: Entry) -> dict[str, float]:
    components = entry.shares("components", ALLOWANCE)
    table = entry.values.get("components")
    if isinstance(table, dict) and NETWORK not in table:
        expected = f"an allowance for {NETWORK}, which is what is measured"
        entry.fault("components", f"has no {NETWORK}", expected)
    elif components.get(NETWORK) == 0:
        entry.fault(f"components.{NETWORK}", "0 allows nothing", TARGET.expected)
    return components


def _further_prompts(entry: Entry, prompt: int | None) -> tuple[int, ...]:
    """Sizes that get lines of their own; none twice, for their lines would be the same."""
    sizes = entry.whole_numbers("further_prompt_bytes", PROMPT)
    given = entry.values.get("further_prompt_bytes")
    known: set[float | None] = {prompt}
    for at, value in enumerate(given if isinstance(given, list) else []):
        size = plain_number(value)
        if size not in sizes:  # has its fault already
            continue
        if size in known:
            expected = "each size once, and none that is prompt_bytes"
            entry.fault(f"further_prompt_bytes[{at}]", f"{size:.0f} is there already", expected)
        known.add(size)
    return sizes


def _mixture(entry: Entry, mode: str, transport: str) -> dict[str, float]:
    """Shares per connection mode; without one all traffic is in the headline mode."""
    if "mixture" not in entry.values:
        if mode == "mixture":
            entry.fault("mixture", "is missing, and mode is mixture", "shares that sum to 1")
        return {mode: 1.0}
    before = len(entry.faults)
    mixture = entry.shares("mixture", SHARE)
    table = entry.values["mixture"]
    if isinstance(table, dict):
        _check_modes(entry, [str(name) for name in table], transport)
    total = math.fsum(mixture.values())
    if len(entry.faults) == before and abs(total - 1) > SUM_TOLERANCE:
        entry.fault("mixture", f"the shares sum to {total:g}", "shares that sum to 1")
    return mixture


def _check_modes(entry: Entry, names: list[str], transport: str) -> None:
    """Unknown words, and two words for one mode over one transport."""
    meaning = mixture_keys(transport)
    written: dict[tuple[str, str], str] = {}
    for name in names:
        if name not in meaning:
            expected = "one of " + ", ".join(MODES) + ", each also as quic-cold, tls-cold ..."
            entry.fault(f"mixture.{name}", f"unknown mode {show(name)}", expected)
        elif (twin := written.setdefault(meaning[name], name)) != name:
            problem = f"{show(name)} and {show(twin)} are the same over {transport}"
            entry.fault(f"mixture.{name}", problem, "one share for it")


def _that_fits(entry: Entry, tier: Tier) -> Tier | None:
    """A tier whose parts exceed its target can never hold, whatever is measured: a fault."""
    if fits(tier):
        return tier
    problem = f"the parts sum to {total_ms(tier):g} ms, the target is {tier.target_ms:g} ms"
    entry.fault("components", problem, "smaller allowances or a larger target_ms")
    return None
