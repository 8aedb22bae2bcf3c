"""What-ifs of the network: the stored requests made again under other conditions."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pathbudget.analysis.line_place import carriage_words, mixture_weights
from pathbudget.analysis.results import Carriage, Carrier, Mode
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.slow_start import extra_round_trips
from pathbudget.analysis.track import Track
from pathbudget.analysis.variants import BYTES_PER_TOKEN
from pathbudget.analysis.whole_budget.case import Case, Changed, Setting
from pathbudget.analysis.whole_budget.network import Near, NetworkSource
from pathbudget.analysis.whole_budget.results import WholeBudget
from pathbudget.analysis.whole_budget.terms import TermName
from pathbudget.analysis.whole_budget.whole import whole_budget
from pathbudget.sites.tiers import mixture_keys

REPLAYED = "Every request is one that was measured, made again; nothing is drawn at random."


def mix(case: Case, setting: Setting) -> Changed:
    """Other shares of connection modes."""
    _measured(case, setting)
    weights = _weights(case, setting)
    words = ", ".join(f"{share:.3g} {carriage_words(one)}" for one, share in weights.items())
    return Changed(
        case=replace(case, change=replace(case.change, weights=weights)),
        assumptions=(
            REPLAYED,
            (
                f"Shares of the requests: {words}. Which request is of which mode has nothing to "
                "do "
                "with when it is made."
            ),
        ),
        confirm=("the gateway's own count of new and kept connections (its access log).",),
    )


def _weights(case: Case, setting: Setting) -> Mapping[Carriage, float]:
    if setting.words:
        raise setting.wrong(f"{setting.words[0]!r} is not understood", "warm:0.9,cold:0.1")
    if not setting.numbers:
        return mixture_weights(case.tier)
    meaning = mixture_keys(case.tier.transport)
    found: dict[Carriage, float] = {}
    for name, share in setting.numbers.items():
        key = name.replace("early-data", "early_data")
        if key not in meaning:
            raise setting.wrong(f"unknown mode {name!r}", "cold, resumed, early_data, idle, warm")
        carrier, mode = meaning[key]
        if share < 0:
            raise setting.wrong(f"{name} is {share:g}", "a share from 0 to 1")
        if share > 0:
            found[Carrier(carrier), Mode(mode)] = share
    if abs(sum(found.values()) - 1) > 1e-6:
        raise setting.wrong(f"the shares sum to {sum(found.values()):g}", "shares that sum to 1")
    return found


def prompt(case: Case, setting: Setting) -> Changed:
    """Prompts of another size."""
    network = _measured(case, setting)
    setting = setting.only("bytes")
    size = round(setting.get("bytes", 0, 1, 1e12, "bytes of the prompt, like prompt=64000"))
    before, after = (extra_round_trips(one) for one in (case.tier.prompt_bytes, size))
    sent = any(one.key.bytes == size for one in network.uploads)
    return Changed(
        case=replace(case, change=replace(case.change, prompt_bytes=size)),
        assumptions=(
            REPLAYED,
            f"{size:,} bytes are about {size / BYTES_PER_TOKEN:,.0f} tokens.",
            (
                "Uploads of that size were sent and timed where there are enough of them; else "
                "slow "
                f"start (RFC 6928) takes {after} further round trips instead of {before}."
            ),
            (
                "Tokenization and time to first token stay as they are. They grow with the prompt: "
                "give them with --terms."
            ),
        ),
        confirm=(
            "the upload probe with that size (a campaign's upload probe, bytes)."
            if not sent
            else "uploads of that size are in the store already; more of them narrow it.",
        ),
    )


def site(case: Case, setting: Setting) -> Changed:
    """Another site, or the best of several for the region."""
    names = setting.words
    if not names or setting.numbers:
        raise setting.wrong("no site is named", "a site or several, like site=ashburn,dallas")
    region = case.pair[0]
    known = [name for there, name in case.networks if there == region]
    for name in names:
        if name not in known:
            wanted = ", ".join(known) or "none was measured"
            raise setting.wrong(f"{name!r} was not measured from {region or 'anywhere'}", wanted)
    cases = [replace(case, pair=(region, name)) for name in names]
    best = min(cases, key=lambda one: _rank(whole_budget(one.request())))
    chosen = f"{region} is served from {best.pair[1]}"
    several = " (of these the least upper interval end)" if len(names) > 1 else ""
    return Changed(
        case=best,
        assumptions=(REPLAYED, f"{chosen}{several}; all other terms are the same there."),
        confirm=("gateway, model and guardrail measured at that site (--traces of a trial).",),
    )


def _rank(budget: WholeBudget) -> tuple[float, float]:
    """Smallest upper end first; None is no limit."""
    high, value = budget.high_ms, budget.value_ms
    return float("inf") if high is None else high, float("inf") if value is None else value


def pop(case: Case, setting: Setting) -> Changed:
    """Connections end at a point of presence near the user."""
    network = _measured(case, setting)
    near, words = _near(case, setting, network)
    return Changed(
        case=replace(case, change=replace(case.change, near=near)),
        assumptions=(
            REPLAYED,
            f"Set-up and slow start are between user and point of presence: {words}.",
            (
                "It lies on the way: the rest of the round trip is as measured, crossed once, on a "
                "connection to the site that is warm and whose window is open."
            ),
            f"Passing a request on takes {near.added_ns / NS_PER_MS:g} ms (added).",
            "A warm request that fits into the first flight gains nothing: no kilometre is saved.",
        ),
        confirm=(
            (
                "a host at the point of presence as a vantage, with warm requests to the site; "
                "and one "
                "as a target of the users' region, with cold ones."
            ),
        ),
    )


def _near(case: Case, setting: Setting, network: NetworkSource) -> tuple[Near, str]:
    added = setting.get("added", 0.0, 0, 1e6, "milliseconds, 0 or more") * NS_PER_MS
    named = [word for word in setting.words if (case.pair[0], word) in case.networks]
    if named:
        trips = case.networks[case.pair[0], named[0]].path.round_trips
        if trips is None:
            raise setting.wrong(f"no round trip to {named[0]} was measured", "a measured site")
        _refuse_farther(setting, network, _median(trips), named[0])
        return Near(trips, added), f"the round trips to {named[0]}, as measured at that time"
    expected = "its round trip in ms, or a measured site, like pop=8 or pop=ashburn"
    setting = setting.only("ms", ("added",))
    short = setting.get("ms", -1.0, 0, 1e6, expected) * NS_PER_MS
    _refuse_farther(setting, network, short)
    return Near(short, added), f"{short / NS_PER_MS:g} ms a round trip, always"


def _refuse_farther(
    setting: Setting, network: NetworkSource, short_ns: float, name: str = ""
) -> None:
    """A point of presence lies on the way: half of the round trips to it are shorter."""
    site = _median(network.path.round_trips)
    if short_ns >= site:
        what = f"{name} ({short_ns / NS_PER_MS:.1f} ms)" if name else f"{short_ns / NS_PER_MS:g} ms"
        raise setting.wrong(
            f"{what} is not nearer than the site ({site / NS_PER_MS:.1f} ms)",
            "its round trip in ms, or a measured site, like pop=8 or pop=ashburn",
        )


def _median(trips: Track | None) -> float:
    """Of the round trips that were answered, in ns; ``inf`` where none was."""
    answered = trips.values_ns[np.isfinite(trips.values_ns)] if trips else np.zeros(0)
    return float(np.median(answered)) if len(answered) else float("inf")


def _measured(case: Case, setting: Setting) -> NetworkSource:
    """What was measured of the pair: there is nothing to replay without it."""
    if case.network is None or TermName.NETWORK_OUT not in case.terms():
        where = " to ".join(part for part in case.pair if part) or "this tier"
        raise setting.wrong(
            f"the network of {where} was not measured", "a store, and a pair that is in it"
        )
    return case.network
