"""Path sets on real sockets and kernels: all links of the lab, no other, and through a NAT."""

from pathlib import Path

import pytest
from tests.lab.tracing import LinkSet, Traced, trace_all

from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.contract import Option, Options
from pathbudget.probes.record import AddressFamily, ClockSource
from pathbudget.probes.trace.contract import HopNote

STARTS_LABS_HERE = True
pytestmark = pytest.mark.needs("lab")

WORLD = load_world(Path(__file__).with_name("paths.toml"))
SITES = ("two", "four", "eight", "mesh", "chain", "labelled", "silent")
OPTIONS: dict[str, Option] = {"rate": 2_000, "confidence": 0.99, "max_packets": 4_000}


def truth(region: str, site: str, family: AddressFamily) -> LinkSet:
    links = WORLD.hop_links(region, site, family)
    return {link for link in links if link[1] and link[2]}


def trace(lab: Lab, region: str, protocol: str, family: AddressFamily) -> dict[str, Traced]:
    addresses = [WORLD.address_of(site, family) for site in SITES]
    options: Options = {**OPTIONS, "protocol": protocol}
    found = lab.call(region, lambda: trace_all(addresses, options))
    return dict(zip(SITES, found, strict=True))


def test_all_links_of_the_lab_are_found_and_no_other() -> None:
    with Lab(WORLD) as lab:
        office = trace(lab, "office", "icmp", AddressFamily.IPV6)
        home = trace(lab, "home", "udp", AddressFamily.IPV4)
    look_at("office", AddressFamily.IPV6, office)
    look_at("home", AddressFamily.IPV4, home)


def look_at(region: str, family: AddressFamily, found: dict[str, Traced]) -> None:
    for site, one in found.items():
        assert one.links == truth(region, site, family), site
        assert one.notes[HopNote.STOPPED] == "arrived"
        assert one.target.value_ns is not None
    answered = [one for one in found["two"].hops if one.value_ns is not None]
    kernel = [one for one in answered if one.clock_source is ClockSource.KERNEL]
    assert len(kernel) > 0.9 * len(answered)
    labels = {str((one.notes or {}).get(HopNote.MPLS)) for one in found["labelled"].hops}
    assert {"24015/0/0/1 16008/0/1/1", "24016/3/1/254"} <= labels
    translated = [one for one in answered if (one.notes or {}).get(HopNote.TRANSLATED)]
    assert bool(translated) is (region == "home")
