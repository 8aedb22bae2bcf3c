"""The campaign file: what to measure from where, for how long. Every fault is found in one go.

docs/campaign.md describes it for users; `KEYS` below are its words.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

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
from pathbudget.sites.toml_reader import parse_toml, read_text

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
    values = _read(path)
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
    _unique(top, "vantage", [entry.vantage.name for entry in vantages])
    _unique(top, "probe", [entry.label for entry in probes])
    _known_vantages(top, probes, [entry.vantage.name for entry in vantages])
    if faults or catalogue is None or duration is None or resolve_every is None:
        raise ConfigError(faults)
    seed = seed if seed is not None else drawn if drawn is not None else secrets.randbits(32)
    run_id = f"{_file_name(name)}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    run_id += f"-{secrets.token_hex(3)}"
    plans = tuple(
        VantagePlan(
            vantage=entry.vantage,
            series=plan_series(entry, probes, catalogue, table, top),
            campaign=name,
            run_id=run_id,
            seed=seed,
            duration_ns=duration,
            namespace=entry.namespace,
            source=entry.source,
            packets_per_second=limits.packets_per_second,
            resolve_every_ns=resolve_every,
        )
        for entry in vantages
    )
    _all_used(top, probes, plans)
    plan = CampaignPlan(name, run_id, seed, duration, plans, limits)
    for where, problem, expected in broken_limits(plan, planned_cost(plan, table)):
        faults.append(Fault(str(path), where, problem, expected))
    if faults:
        raise ConfigError(faults)
    return Campaign(plan, catalogue, _digest((path, *paths)))


def _read(path: Path) -> dict[str, object]:
    faults: list[Fault] = []
    text = read_text(path, faults)
    values = None if text is None else parse_toml(text, str(path), faults)
    if values is None:
        raise ConfigError(faults)
    return values


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


def _tables(top: Entry, key: str, read: Callable[[Entry], T | None]) -> list[T]:
    """All entries of an array of tables, read one by one; those with faults are left out."""
    values = top.values.get(key)
    if not isinstance(values, list) or not values:
        problem = "is missing" if values is None else f"{show(values)} is no list of tables"
        top.fault(key, problem, f"at least one [[{key}]]")
        return []
    entries: list[T] = []
    for number, value in enumerate(values):
        place = f"{key}[{number}]"
        if not isinstance(value, dict):
            top.fault(place, f"{show(value)} is no table", f"a table [[{key}]]")
            continue
        entry = Entry(top.file, value, _under(place), top.faults)
        read_entry = read(entry)
        if read_entry is not None:
            entries.append(read_entry)
    return entries


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place


def _unique(top: Entry, key: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            top.fault(f"{key}[{number}]", f"the name {show(name)} is taken", "a name of its own")


def _known_vantages(top: Entry, probes: Sequence[ProbeEntry], known: Sequence[str]) -> None:
    for number, probe in enumerate(probes):
        for name in probe.vantages:
            if name not in known:
                place = f"probe[{number}].vantages"
                top.fault(place, f"{show(name)} is unknown", did_you_mean(name, known))


def _all_used(top: Entry, probes: Sequence[ProbeEntry], plans: Sequence[VantagePlan]) -> None:
    """A probe without a single target would look like a measurement that found nothing wrong."""
    used = {series.probe for plan in plans for series in plan.series}
    for number, probe in enumerate(probes):
        if probe.label not in used:
            place = f"probe[{number}]"
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
