"""The file of rules: what is watched, when it is bad, who is told. Every fault in one go.

docs/alerts.md describes it for users; the tuples of keys below are its words.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pathbudget.agents.alerts.receiver_file import read_receiver
from pathbudget.agents.alerts.receivers import EveryReceiver
from pathbudget.agents.alerts.rule_entry import read_rule
from pathbudget.agents.bgp.feeds_file import load_feeds
from pathbudget.agents.bgp.plans import BgpPlan
from pathbudget.agents.campaign.entry_values import as_list, duration_ns, texts
from pathbudget.analysis.alerts.burn import most_burn_rate
from pathbudget.analysis.alerts.rules import BLIND, BudgetRule, EveryRule
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.entry import Entry, did_you_mean, show
from pathbudget.sites.toml_reader import read_toml

TOP_KEYS = ("every", "catalogue", "feeds", "prefixes", "receiver", "rule")
SHORTEST_EVERY_NS = 1_000_000_000
Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class AlertPlan:
    """A file of rules, valid as it stands."""

    every_ns: int
    catalogue: Catalogue
    rules: tuple[EveryRule, ...]
    receivers: tuple[EveryReceiver, ...]
    feeds: BgpPlan | None = None
    prefixes: Path | None = None


def load_rules(path: Path) -> AlertPlan:
    """Read a file of rules, and the files that it names. Raises ConfigError with every fault."""
    faults: list[Fault] = []
    top = Entry(str(path), read_toml(path), lambda key: key, faults)
    top.only(TOP_KEYS)
    folder = path.parent
    every = duration_ns(top, "every", "30s", shortest_ns=SHORTEST_EVERY_NS)
    catalogue = _catalogue(top, folder)
    receivers: list[tuple[Entry, EveryReceiver]] = _tables(
        top, "receiver", lambda entry: read_receiver(entry, folder)
    )
    rules: list[tuple[Entry, EveryRule]] = _tables(top, "rule", read_rule)
    _check_rules(top, rules, catalogue)
    prefixes = top.text("prefixes")
    plan = AlertPlan(
        every_ns=every or 0,
        catalogue=catalogue,
        rules=tuple(one for _, one in rules),
        receivers=tuple(one for _, one in receivers),
        feeds=_feeds(top, folder),
        prefixes=folder / prefixes if prefixes else None,
    )
    if faults:
        raise ConfigError(faults)
    return plan


def _tables(
    top: Entry, key: str, read: Callable[[Entry], Named | None]
) -> list[tuple[Entry, Named]]:
    values = top.values.get(key)
    if not isinstance(values, list) or not values:
        problem = "is missing" if values is None else f"{show(values)} is no list of tables"
        top.fault(key, problem, f"at least one [[{key}]]")
        return []
    found: list[tuple[Entry, Named]] = []
    names: set[str] = {BLIND.name} if key == "rule" else set()
    for number, value in enumerate(values):
        place = f"{key}[{number}]"
        if not isinstance(value, dict):
            top.fault(place, f"{show(value)} is no table", f"a table [[{key}]]")
            continue
        entry = Entry(top.file, value, _under(place), top.faults)
        one = read(entry)
        name = value.get("name")
        if isinstance(name, str) and name in names:
            entry.fault("name", f"{show(name)} is taken", "a name of its own")
        elif isinstance(name, str):
            names.add(name)
        if one is not None:
            found.append((entry, one))
    return found


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _check_rules(top: Entry, rules: list[tuple[Entry, EveryRule]], catalogue: Catalogue) -> None:
    """What a rule names must be there, be it sound or not."""
    names = [
        str(one["name"])
        for one in as_list(top.values.get("receiver"))
        if isinstance(one, dict) and "name" in one
    ]
    for entry, rule in rules:
        for number, name in enumerate(rule.to):
            if name not in names:
                problem = f"{show(name)} is no receiver"
                entry.fault(f"to[{number}]", problem, did_you_mean(name, names))
        if isinstance(rule, BudgetRule) and catalogue.tiers:
            _check_budget(entry, rule, catalogue)


def _check_budget(entry: Entry, rule: BudgetRule, catalogue: Catalogue) -> None:
    for number, name in enumerate(rule.tiers):
        if name not in catalogue.tiers:
            problem, known = f"{show(name)} is unknown", catalogue.tiers
            entry.fault(f"tiers[{number}]", problem, did_you_mean(name, known))
    tiers = [one for name, one in catalogue.tiers.items() if not rule.tiers or name in rule.tiers]
    for number, window in enumerate(rule.windows):
        for tier in tiers:
            most = most_burn_rate(tier)
            if window.burn_rate >= most * (1 - 1e-9):
                problem = f"{window.burn_rate:g} is never exceeded at p{tier.percentile:g}"
                expected = f"less than {most:g}, when all requests are over (tier {tier.name})"
                entry.fault(f"window[{number}].burn_rate", problem, expected)


def _catalogue(top: Entry, folder: Path) -> Catalogue:
    names = texts(top, "catalogue")
    try:
        loaded = load_catalogue([folder / name for name in names])
    except ConfigError as error:
        top.faults.extend(error.faults)
        return Catalogue()
    return loaded if names else replace(Catalogue(), tiers=loaded.tiers)


def _feeds(top: Entry, folder: Path) -> BgpPlan | None:
    name = top.text("feeds")
    if not name:
        return None
    try:
        return load_feeds(folder / name)
    except ConfigError as error:
        top.faults.extend(error.faults)
        return None
