"""One ``[[probe]]`` of a campaign file."""

from collections.abc import Mapping
from dataclasses import dataclass

from pathbudget.agents.campaign.entry_values import duration_ns, texts, words
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.lab.session import current
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.table import check_options
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.entry import Entry

KEYS = ("kind", "label", "interval", "schedule", "timeout", "families", "sites", "vantages")
"""Everything else in the table is an option of the probe."""

LAB_CA = "lab:ca"
"""Value of a file option that means: the certificate authority of the lab that runs us."""


@dataclass(frozen=True, slots=True)
class ProbeEntry:
    """How to probe, how often, and where. Empty `families`, `sites`, `vantages` mean all."""

    kind: str
    label: str
    interval_ns: int
    timeout_ns: int
    schedule: ScheduleKind
    families: tuple[AddressFamily, ...]
    sites: tuple[str, ...]
    vantages: tuple[str, ...]
    options: dict[str, Option]


def read_probe(
    entry: Entry, table: Mapping[str, ProbeSpec], catalogue: Catalogue | None
) -> ProbeEntry | None:
    """The entry, or None when it has a fault."""
    kind = entry.word("kind", table, "")
    if not kind and entry.values.get("kind") is None:
        entry.fault("kind", "is missing", f"one of {', '.join(table)}")
    interval = duration_ns(entry, "interval", None)
    timeout = duration_ns(entry, "timeout", "2s")
    schedule = entry.word("schedule", list(ScheduleKind), ScheduleKind.POISSON)
    families = words(entry, "families", list(AddressFamily))
    sites = words(entry, "sites", catalogue.sites) if catalogue else ()
    vantages = texts(entry, "vantages")  # whether they are known is checked when all are read
    label = entry.text("label", kind)
    options = _options(entry, table.get(kind))
    if not entry.sound or interval is None or timeout is None:
        return None
    return ProbeEntry(
        kind=kind,
        label=label,
        interval_ns=interval,
        timeout_ns=timeout,
        schedule=ScheduleKind(schedule),
        families=tuple(AddressFamily(family) for family in families),
        sites=sites,
        vantages=vantages,
        options=options,
    )


def _options(entry: Entry, spec: ProbeSpec | None) -> dict[str, Option]:
    if spec is None:
        return {}
    raw = {key: _lab_value(value) for key, value in entry.values.items() if key not in KEYS}
    options, faults = check_options(spec, raw, entry.file, entry.where(""))
    entry.faults.extend(faults)
    return dict(options)


def _lab_value(value: object) -> object:
    lab = current()
    return lab.ca_file if value == LAB_CA and lab is not None else value
