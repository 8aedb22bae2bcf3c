"""Words of a policy that would check nothing, and pass: names that the evaluation does not know,
and limits for what nobody asks for.
"""

from collections.abc import Iterable, Iterator

from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.gate.toml_lines import line_of
from pathbudget.analysis.results import Direction, Evaluation, TierInfo
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import did_you_mean, show


def refuse_unknown_words(evaluation: Evaluation, policy: Policy) -> None:
    """Raise ConfigError with every name, percentile and prompt that no line of the run has."""
    faults = list(_faults(evaluation, policy))
    if faults:
        raise ConfigError(faults)


def _faults(evaluation: Evaluation, policy: Policy) -> Iterator[Fault]:
    tiers = [tier.name for tier in evaluation.tiers]
    sites = [site.name for site in evaluation.sites]
    yield from _unknown(policy, "tiers", "tier", policy.tiers, tiers)
    yield from _unknown(policy, "tier", "tier", policy.tier, tiers)
    regions = [region.name for region in evaluation.regions]
    yield from _unknown(policy, "regions", "region", policy.regions, regions)
    yield from _unknown(policy, "sites", "site", policy.sites, sites)
    for name, rules in policy.tier.items():
        path = f"tier.{name}.expected_sites"
        yield from _unknown(policy, path, "site", rules.expected_sites, sites)
    lines = [one for one in evaluation.lines if one.direction is Direction.NETWORK]
    for tier in evaluation.tiers:
        if policy.takes_tier(tier.name):
            own = [one for one in lines if one.tier == tier.name]
            has = {f"{one.percentile:g}" for one in own} | {f"{tier.percentile:g}"}
            asked = [f"{one:g}" for one in policy.rules(tier).percentiles]
            yield from _unknown(policy, _path(policy, tier.name, "percentiles"), "", asked, has)
            sizes = {str(one) for one in (tier.prompt_bytes, *tier.further_prompt_bytes)}
            prompts = [str(one) for one in policy.rules(tier).prompts]
            yield from _unknown(policy, _path(policy, tier.name, "prompts"), "", prompts, sizes)
            yield from _without_effect(policy, tier)


def _without_effect(policy: Policy, tier: TierInfo) -> Iterator[Fault]:
    """What a policy allows and nobody asks for: it would be kept whatever was measured."""
    rules, own = policy.rules(tier), f"tier.{tier.name}"
    asked = [f"p{one:g}" for one in rules.percentiles]
    for word in rules.allowances_ms:
        if word not in asked:
            problem = f"no check is of {word}"
            expected = f"{' or '.join(asked)}, or {word[1:]} in percentiles"
            yield _fault(policy, f"{own}.allowances_ms", problem, expected)
    if rules.target_ms is not None and not policy.whole:
        yield _fault(policy, f"{own}.target_ms", "no whole request is checked", "whole = true")


def _fault(policy: Policy, key: str, problem: str, expected: str) -> Fault:
    line = line_of(policy.lines, key)
    where = f"line {line}, {key}" if line else key
    return Fault(policy.file or "the policy", where, problem, expected)


def _path(policy: Policy, tier: str, key: str) -> str:
    """Where the words of a tier stand: in its own table, or at the top."""
    rules = policy.tier.get(tier)
    return f"tier.{tier}.{key}" if rules is not None and getattr(rules, key) else key


def _unknown(
    policy: Policy, path: str, what: str, asked: Iterable[str], known: Iterable[str]
) -> Iterator[Fault]:
    known = list(known)
    for word in asked:
        if word in known:
            continue
        key = f"{path}.{word}" if path == "tier" else path
        problem = f"no {what} {show(word)} in this run" if what else f"no line of {word}"
        numbers = [] if what else sorted(known, key=float)
        expected = did_you_mean(word, known) if what else f"one of {', '.join(numbers)}"
        yield _fault(policy, key, problem, expected)
