"""The campaign file: what to measure from where, for how long. Every fault is found in one go.

docs/campaign.md describes it for users; `KEYS` below are its words.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pathbudget.agents.campaign.coalescing import crowded
from pathbudget.agents.campaign.entry_values import duration_ns
from pathbudget.agents.campaign.limits import broken_limits, planned_cost
from pathbudget.agents.campaign.plan import CampaignPlan, Limits, VantagePlan
from pathbudget.agents.campaign.probe_entry import ProbeEntry, read_probe
from pathbudget.agents.campaign.targets import plan_series
from pathbudget.agents.campaign.vantage_entry import read_vantage
from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.entry import Entry, Interval, did_you_mean, show
from pathbudget.sites.toml_reader import read_toml

T = TypeVar("T")

KEYS = ("name", "catalogue", "seed", "duration", "resolve_every", "limits", "vantage", "probe")
LARGEST_SEED = 2**53
"""As far as whole numbers survive every reader of JSON; `--seed` has the same bound."""
LARGEST_LIMIT = 10**15
LIMIT_KEYS = ("packets_per_second", "packets_per_second_per_target", "bytes")


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign file that holds no fault."""

    plan: CampaignPlan
    catalogue: Catalogue
    digest: str


def load_campaign(
    path: Path, table: Mapping[str, ProbeSpec], *, seed: int | None = None
) -> Campaign:
    """Read a campaign file and its catalogue into a plan.

    Raises ConfigError with every fault of the file; when its catalogue has faults too, both lists.
    """
    values = read_toml(path)
    faults: list[Fault] = []
    top = Entry(str(path), values, lambda key: key, faults)
    top.only(KEYS)
    name = top.text("name", None)
    duration = duration_ns(top, "duration", None)
    resolve_every = duration_ns(top, "resolve_every", "60s")
    drawn = top.whole_number(
        "seed", Interval(0, LARGEST_SEED, f"a whole number, 0 to {LARGEST_SEED}")
    )
    limits = _limits(top)
    paths, catalogue = _catalogue(top, path)
    probes = _tables(top, "probe", lambda entry: read_probe(entry, table, catalogue))
    vantages = _tables(top, "vantage", lambda entry: read_vantage(entry, catalogue))
    _unique(top, {place: entry.vantage.name for place, entry in vantages.items()})
    _unique(top, {place: entry.label for place, entry in probes.items()})
    _known_vantages(top, probes.values())
    if catalogue is None or duration is None or resolve_every is None:
        raise ConfigError(faults)
    seed = seed if seed is not None else drawn if drawn is not None else secrets.randbits(32)
    run_id = f"{_file_name(name)}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    run_id += f"-{secrets.token_hex(3)}"
    plans = tuple(
        VantagePlan(
            vantage=entry.vantage,
            series=plan_series(entry, list(probes.values()), catalogue, table, top),
            campaign=name,
            run_id=run_id,
            seed=seed,
            duration_ns=duration,
            namespace=entry.namespace,
            source=entry.source,
            packets_per_second=limits.packets_per_second,
            resolve_every_ns=resolve_every,
            file=str(path),
        )
        for entry in vantages.values()
    )
    if len(vantages) == len(_names(top, "vantage")):  # else one with a fault may be its only one
        _all_used(top, probes.values(), plans)
    plan = CampaignPlan(name, run_id, seed, duration, plans, limits)
    faults.extend(crowded(str(path), dict(zip(vantages, plans, strict=True))))
    for where, problem, expected in broken_limits(plan, planned_cost(plan, table), table):
        faults.append(Fault(str(path), where, problem, expected))
    if faults:
        raise ConfigError(faults)
    return Campaign(plan, catalogue, _digest((path, *paths)))


def _limits(top: Entry) -> Limits:
    values = top.values.get("limits", {})
    if not isinstance(values, dict):
        top.fault("limits", f"{show(values)} is no table", "a table [limits]")
        return Limits()
    entry = Entry(top.file, values, lambda key: f"limits.{key}" if key else "limits", top.faults)
    entry.only(LIMIT_KEYS)
    rule = Interval(1, LARGEST_LIMIT, f"a whole number, 1 to {LARGEST_LIMIT}")
    given = {key: entry.whole_number(key, rule) for key in LIMIT_KEYS}
    return Limits(**{key: value for key, value in given.items() if value is not None})


def _catalogue(top: Entry, path: Path) -> tuple[tuple[Path, ...], Catalogue | None]:
    given = top.values.get("catalogue")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        problem = "is missing" if given is None else f"{show(given)} is no list of files"
        top.fault("catalogue", problem, 'one file, or a list like ["regions.csv", "sites.toml"]')
        return (), None
    paths = tuple(path.parent / str(name) for name in names)
    try:
        return paths, load_catalogue(paths)
    except ConfigError as error:
        top.faults.extend(error.faults)
        return paths, None


def _tables(top: Entry, key: str, read: Callable[[Entry], T | None]) -> dict[str, T]:
    """All entries of an array of tables by their places; those with faults are left out."""
    values = top.values.get(key)
    if not isinstance(values, list) or not values:
        problem = "is missing" if values is None else f"{show(values)} is no list of tables"
        top.fault(key, problem, f"at least one [[{key}]]")
        return {}
    entries: dict[str, T] = {}
    for number, value in enumerate(values):
        place = f"{key}[{number}]"
        if not isinstance(value, dict):
            top.fault(place, f"{show(value)} is no table", f"a table [[{key}]]")
            continue
        read_entry = read(Entry(top.file, value, _under(place), top.faults))
        if read_entry is not None:
            entries[place] = read_entry
    return entries


def _names(top: Entry, key: str) -> list[object]:
    """What the entries of an array of tables call themselves, those with faults too."""
    values = top.values.get(key)
    tables = values if isinstance(values, list) else []
    return [value.get("name") if isinstance(value, dict) else None for value in tables]


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _unique(top: Entry, names: Mapping[str, str]) -> None:
    taken: set[str] = set()
    for place, name in names.items():
        if name in taken:
            top.fault(place, f"the name {show(name)} is taken", "a name of its own")
        taken.add(name)


def _known_vantages(top: Entry, probes: Iterable[ProbeEntry]) -> None:
    known = [name for name in _names(top, "vantage") if isinstance(name, str)]
    for probe in probes:
        for name in probe.vantages:
            if name not in known:
                place = f"{probe.place}.vantages"
                top.fault(place, f"{show(name)} is unknown", did_you_mean(name, known))


def _all_used(top: Entry, probes: Iterable[ProbeEntry], plans: Sequence[VantagePlan]) -> None:
    """A probe without a single target would look like a measurement that found nothing wrong."""
    used = {series.place for plan in plans for series in plan.series}
    known = {plan.vantage.name for plan in plans}
    for probe in probes:
        if probe.place in used or not known.issuperset(probe.vantages):
            continue
        place = probe.place
        if probe.families:
            problem = f"no target has an address of {' or '.join(probe.families)}"
            place += ".families"
        else:
            problem = "no site of it has a target"
            place += ".sites" if probe.sites else ""
        top.fault(place, problem, "a [[site.target]] in the catalogue that the probe fits")


def _file_name(name: str) -> str:
    """`name` with everything out that does not belong into a file name."""
    return "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name)[:40]


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
