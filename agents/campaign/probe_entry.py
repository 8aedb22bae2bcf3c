"""One ``[[probe]]`` of a campaign file."""

from collections.abc import Mapping
from dataclasses import dataclass

from pathbudget.agents.campaign.entry_values import duration_ns, texts, words
from pathbudget.agents.campaign.option_values import read_options
from pathbudget.agents.campaign.schedule import ScheduleKind, Train
from pathbudget.agents.units import format_duration
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.record import AddressFamily
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.entry import Entry, Interval

KEYS = (
    "kind",
    "label",
    "interval",
    "schedule",
    "train",
    "train_gap",
    "timeout",
    "port",
    "families",
    "sites",
    "vantages",
)
"""Everything else in the table is an option of the probe."""

LONGEST_TRAIN = 1_000
"""Packets; more of them at once are a load test."""
PORT = Interval(1, 65_535, "a port, 1 to 65535")


@dataclass(frozen=True, slots=True)
class ProbeEntry:
    """How to probe, how often, and where. Empty `families`, `sites`, `vantages` mean all."""

    kind: str
    label: str
    interval_ns: int
    timeout_ns: int
    schedule: ScheduleKind
    train: Train
    families: tuple[AddressFamily, ...]
    sites: tuple[str, ...]
    vantages: tuple[str, ...]
    options: dict[str, Option]
    place: str
    """Where it stands in the file: ``probe[2]``."""
    port: int | None = None
    """Instead of the targets' own, or of the probe's default."""


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
    train = _train(entry, interval)
    families = words(entry, "families", list(AddressFamily))
    sites = words(entry, "sites", catalogue.sites) if catalogue else ()
    vantages = texts(entry, "vantages")  # whether they are known is checked when all are read
    label = entry.text("label", kind)
    spec = table.get(kind)
    port = _port(entry, spec)
    options = read_options(entry, spec, KEYS) if spec else {}
    if not entry.sound or interval is None or timeout is None:
        return None
    return ProbeEntry(
        kind=kind,
        label=label,
        interval_ns=interval,
        timeout_ns=timeout,
        schedule=ScheduleKind(schedule),
        train=train,
        families=tuple(AddressFamily(family) for family in families),
        sites=sites,
        vantages=vantages,
        options=options,
        place=entry.where(""),
        port=port,
    )


def _train(entry: Entry, interval_ns: int | None) -> Train:
    """Packets per instant. A train that does not fit between two instants is a fault."""
    rule = Interval(1, LONGEST_TRAIN, f"a whole number of packets, 1 to {LONGEST_TRAIN}")
    packets = entry.whole_number("train", rule) or 1
    gap_ns = duration_ns(entry, "train_gap", "0s", shortest_ns=0) or 0
    train = Train(packets, gap_ns)
    if packets == 1 and gap_ns:
        entry.fault("train_gap", "there is no train", "train = 2 or more packets")
    elif interval_ns is not None and train.length_ns >= interval_ns:
        problem = f"the train lasts {format_duration(train.length_ns)}, as long as the interval"
        entry.fault("train_gap", problem, "a shorter gap, fewer packets, or a longer interval")
    return train


def _port(entry: Entry, spec: ProbeSpec | None) -> int | None:
    port = entry.whole_number("port", PORT)
    if port is not None and spec is not None and not spec.needs_port:
        entry.fault("port", f"{spec.name} has no ports", "no such key")
    return port
