"""The catalogue that a user's files describe, whole or not at all.

The user's own files select: an evaluation counts the regions and sites that they list, and those
shipped ones that they name in ``use_regions`` and ``use_sites``. What ships is a library of places
(`shipped.py`). Tiers likewise; files that name no tier get the three reference tiers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier
from pathbudget.sites.csv_reader import read_csv
from pathbudget.sites.entry import Entry, did_you_mean, show
from pathbudget.sites.places import as_region, as_site, places_of
from pathbudget.sites.region_reader import Places, read_region
from pathbudget.sites.site_reader import read_site
from pathbudget.sites.tier_reader import read_tier
from pathbudget.sites.toml_reader import parse_toml, read_text

TABLES = ("region", "site", "tier")
TOP_LEVEL = (*TABLES, "use_regions", "use_sites", "use_tiers")


class Named(Protocol):
    """Anything that a catalogue holds by name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


T = TypeVar("T", bound=Named)
S = TypeVar("S")


@dataclass(slots=True)
class _Draft:
    """What the files said so far, and where each name was first said."""

    shipped: Catalogue
    places: Places
    faults: list[Fault] = field(default_factory=list[Fault])
    regions: dict[str, Region] = field(default_factory=dict[str, Region])
    sites: dict[str, Site] = field(default_factory=dict[str, Site])
    tiers: dict[str, Tier] = field(default_factory=dict[str, Tier])
    said: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    chose_tiers: bool = False


def load_catalogue(paths: Sequence[Path], *, with_shipped: bool = True) -> Catalogue:
    """Read TOML and CSV files into one catalogue.

    `with_shipped` lets the files use shipped places and tiers. Raises ConfigError with every fault
    of every file; nothing is half-loaded.
    """
    from pathbudget.sites.shipped import shipped_catalogue

    return read_files(paths, shipped_catalogue() if with_shipped else Catalogue())


def read_files(paths: Sequence[Path], shipped: Catalogue) -> Catalogue:
    """Like `load_catalogue`, with the library of places and tiers given."""
    draft = _Draft(shipped, places_of(shipped))
    for path in paths:
        _read_file(path, draft)
    _check_weights(paths, draft)
    if draft.faults:
        raise ConfigError(draft.faults)
    tiers = draft.tiers if draft.chose_tiers else dict(shipped.tiers)
    return Catalogue(draft.regions, draft.sites, tiers)


def _read_file(path: Path, draft: _Draft) -> None:
    kind = path.suffix.lower()
    if kind not in {".toml", ".csv"}:
        problem = f"cannot tell what {show(path.suffix)} holds" if kind else "has no ending"
        draft.faults.append(Fault(str(path), "", problem, "a file that ends in .toml or .csv"))
        return
    text = read_text(path, draft.faults)
    if text is None:
        return
    if kind == ".csv":
        table, entries = read_csv(text, str(path), draft.faults)
        _read_entries(table, entries, draft)
        return
    content = parse_toml(text, str(path), draft.faults)
    if content is not None:
        _read_toml(content, str(path), draft)


def _read_toml(content: Mapping[str, object], file: str, draft: _Draft) -> None:
    top = Entry(file, content, lambda key: key, draft.faults)
    top.only(TOP_LEVEL)
    for table in TABLES:
        _read_entries(table, list(_entries(table, top)), draft)
    _use(top, "use_regions", draft, draft.regions, draft.places, as_region)
    _use(top, "use_sites", draft, draft.sites, draft.places, as_site)
    _use(top, "use_tiers", draft, draft.tiers, draft.shipped.tiers, lambda tier: tier)
    draft.chose_tiers |= "tier" in content or "use_tiers" in content


def _entries(table: str, top: Entry) -> Iterator[Entry]:
    """The ``[[table]]`` tables of a file. In a key path they count from 0, as in JSON."""
    values = top.values.get(table, [])
    if isinstance(values, dict):
        top.fault(table, f"is one table, [{table}]", f"[[{table}]] with two brackets")
    elif not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        top.fault(table, f"{show(values)} is no list of tables", f"[[{table}]] tables")
    else:
        for index, value in enumerate(values):
            yield Entry(top.file, value, _place_in_toml(table, index, value), top.faults)


def _place_in_toml(table: str, index: int, value: Mapping[str, object]) -> Callable[[str], str]:
    """``site[2].latitude (of "dallas")``."""
    name = value.get("name")
    of = f" (of {show(name)})" if isinstance(name, str) and name else ""
    return lambda key: f"{table}[{index}].{key}{of if key != 'name' else ''}"


def _read_entries(table: str, entries: list[Entry], draft: _Draft) -> None:
    for entry in entries:
        if table == "region":
            _keep(draft, table, entry, draft.regions, read_region(entry, draft.places))
        elif table == "site":
            _keep(draft, table, entry, draft.sites, read_site(entry, draft.places))
        else:
            _keep(draft, table, entry, draft.tiers, read_tier(entry))


def _keep(draft: _Draft, table: str, entry: Entry, into: dict[str, T], made: T | None) -> None:
    """Put `made` under its name. A name that was said before is a fault, also of a bad entry."""
    name = entry.values.get("name")
    if not isinstance(name, str):
        return
    first = draft.said.get((table, name))
    if first is not None:
        entry.fault("name", f"{show(name)} is already the name of {first}", "each name once")
        return
    draft.said[table, name] = f"{entry.file}, {entry.where('name')}"
    if made is not None:
        into[name] = made


def _use(
    top: Entry,
    key: str,
    draft: _Draft,
    into: dict[str, T],
    library: Mapping[str, S],
    convert: Callable[[S], T],
) -> None:
    """Take the shipped entries that a list names. What the user describes himself stays his."""
    names = top.values.get(key, [])
    if not isinstance(names, list):
        top.fault(key, f"{show(names)} is no list", 'a list of names, like ["dallas"]')
        return
    for index, name in enumerate(names):
        where = f"{key}[{index}]"
        if not isinstance(name, str) or name not in library:
            expected = did_you_mean(name, library) if isinstance(name, str) else "a name"
            top.fault(where, f"{show(name)} is not shipped", expected)
        elif name in names[:index]:
            top.fault(where, f"{show(name)} stands there twice", "each name once")
        elif (key.removeprefix("use_").removesuffix("s"), name) not in draft.said:
            into.setdefault(name, convert(library[name]))


def _check_weights(paths: Sequence[Path], draft: _Draft) -> None:
    if draft.regions and not any(region.weight for region in draft.regions.values()):
        file = ", ".join(str(path) for path in paths)
        problem = "all weights are 0: nobody is served"
        draft.faults.append(Fault(file, "region.weight", problem, "one weight above 0"))
