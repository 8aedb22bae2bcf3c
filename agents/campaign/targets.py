"""Which probe runs against which target: the series of one vantage."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pathbudget.agents.campaign.coalescing import is_sparse
from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.agents.campaign.probe_entry import ProbeEntry
from pathbudget.agents.campaign.vantage_entry import VantageEntry, lab_node
from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.record import AddressFamily, Target
from pathbudget.sites.catalogue import Catalogue, Site
from pathbudget.sites.entry import Entry

LAB_DOMAIN = ".lab"
"""Hosts under it are nodes of the lab that runs us; their addresses come from the lab."""


def plan_series(
    vantage: VantageEntry,
    probes: Sequence[ProbeEntry],
    catalogue: Catalogue,
    table: Mapping[str, ProbeSpec],
    top: Entry,
) -> tuple[SeriesPlan, ...]:
    """Every series of one vantage, in the order of probes, sites and targets.

    A probe that needs a port runs against the targets that have one (a site without any: against
    its hosts at the probe's default port). What runs once per host of a site: a probe that needs
    none, one to which the campaign gives a port, one that speaks to something of its own there.
    """
    series: list[SeriesPlan] = []
    for probe in probes:
        if probe.vantages and vantage.vantage.name not in probe.vantages:
            continue
        for site in catalogue.sites.values():
            if site.targets and (not probe.sites or site.name in probe.sites):
                for target in targets_for(site, table[probe.kind], probe.port):
                    series.extend(_of_target(probe, target, vantage, top))
    return tuple(series)


def targets_for(site: Site, spec: ProbeSpec, port: int | None = None) -> Iterator[Target]:
    """The targets of a site that a probe of this kind is for; on `port` where one is given."""
    if spec.needs_port and port is None and not spec.own_port:
        with_port = [target for target in site.targets if target.port is not None]
        if with_port:
            yield from with_port
            return
    seen: set[str] = set()
    for target in site.targets:
        if target.host not in seen:
            seen.add(target.host)
            chosen = (port or spec.default_port) if spec.needs_port else None
            yield msgspec.structs.replace(target, site=site.name, port=chosen)


def _of_target(
    probe: ProbeEntry, target: Target, vantage: VantageEntry, top: Entry
) -> Iterator[SeriesPlan]:
    coalesce_ns = vantage.coalesce_ns if is_sparse(probe.interval_ns, vantage.coalesce_ns) else 0
    for family in probe.families or (None,):
        address = _in_lab(target, family, top)
        found = msgspec.structs.replace(target, host=address) if address else target
        literal = literal_family(found.host)
        if literal is not None and family not in (None, literal):
            continue
        yield SeriesPlan(
            target=found,
            probe=probe.label,
            kind=probe.kind,
            interval_ns=probe.interval_ns,
            timeout_ns=probe.timeout_ns,
            schedule=probe.schedule,
            train=probe.train.packets,
            train_gap_ns=probe.train.gap_ns,
            coalesce_ns=coalesce_ns,
            family=literal or family,
            options=probe.options,
            place=probe.place,
        )


def _in_lab(target: Target, family: AddressFamily | None, top: Entry) -> str:
    """Address of a target ``NODE.lab``; empty for any other."""
    if not target.host.endswith(LAB_DOMAIN):
        return ""
    node = lab_node(top, f"site {target.site}", target.host.removesuffix(LAB_DOMAIN))
    if node is None:
        return ""
    return node.ipv6 if family is AddressFamily.IPV6 else node.ipv4
