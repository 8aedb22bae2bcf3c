"""One ``[[vantage]]`` of a campaign file."""

from dataclasses import dataclass

from pathbudget.agents.campaign.coalescing import read_coalesce_ns
from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.lab.session import Node, current
from pathbudget.probes.record import AddressFamily, Vantage
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.entry import Entry, Interval, did_you_mean, show

KEYS = (
    "name",
    "region",
    "namespace",
    "source_ipv4",
    "source_ipv6",
    "asn",
    "network",
    "country",
    "coalesce",
)
LAB = "lab:"
"""Prefix of a namespace that a lab provides: ``lab:dallas``."""


@dataclass(frozen=True, slots=True)
class VantageEntry:
    """Where to measure from. `namespace` is a path of a network namespace; empty: this one."""

    vantage: Vantage
    namespace: str
    source: dict[AddressFamily, str]
    coalesce_ns: int = 0
    """See `SeriesPlan.coalesce_ns`."""


def read_vantage(entry: Entry, catalogue: Catalogue | None) -> VantageEntry | None:
    """The entry, or None when it has a fault."""
    entry.only(KEYS)
    name = entry.text("name", None)
    region = entry.text("region", None)
    if region and catalogue is not None and region not in catalogue.regions:
        known = catalogue.regions
        expected = did_you_mean(region, known) if known else "a catalogue with a [[region]] of it"
        entry.fault("region", f"{show(region)} is in no catalogue", expected)
    asn = entry.whole_number("asn", Interval(1, 2**32 - 1, "an AS number"))
    source = {family: _source(entry, family) for family in AddressFamily}
    namespace = _namespace(entry)
    coalesce = read_coalesce_ns(entry)
    if not entry.sound:
        return None
    place = catalogue.regions.get(region) if catalogue else None
    vantage = Vantage(
        name=name,
        region=region,
        asn=asn,
        network=entry.text("network"),
        country=entry.text("country") or (place.country if place else ""),
        source_address=next((address for address in source.values() if address), ""),
        latitude=place.latitude if place else None,
        longitude=place.longitude if place else None,
    )
    sources = {key: text for key, text in source.items() if text}
    return VantageEntry(vantage, namespace, sources, coalesce)


def _source(entry: Entry, family: AddressFamily) -> str:
    key = f"source_{family}"
    address = entry.text(key)
    if address and literal_family(address) is not family:
        entry.fault(key, f"{show(address)} is no {family} address", "an address of this host")
    return address


def _namespace(entry: Entry) -> str:
    namespace = entry.text("namespace")
    if not namespace.startswith(LAB):
        return namespace
    node = lab_node(entry, "namespace", namespace.removeprefix(LAB))
    return node.namespace if node else ""


def lab_node(entry: Entry, key: str, name: str) -> Node | None:
    """The node of the lab around us; a fault when there is no lab or no such node."""
    lab = current()
    if lab is None:
        entry.fault(key, f"the lab node {show(name)} needs a lab", "`pathbudget lab run` around")
        return None
    if name not in lab.nodes:
        entry.fault(key, f"the lab has no node {show(name)}", did_you_mean(name, lab.nodes))
        return None
    return lab.nodes[name]
