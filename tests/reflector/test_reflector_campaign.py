"""How a campaign reaches a reflector: by its own port, beside what else a target answers on."""

from dataclasses import replace

import pytest

from pathbudget.agents.campaign.probe_entry import read_probe
from pathbudget.agents.campaign.targets import targets_for
from pathbudget.probes.errors import Fault
from pathbudget.probes.record import Target
from pathbudget.probes.table import probe_table
from pathbudget.sites.catalogue import Site
from pathbudget.sites.entry import Entry

TARGETS = (
    Target(name="web", host="192.0.2.1", site="s", port=8443),
    Target(name="alt", host="192.0.2.1", site="s", port=8080),
    Target(name="bare", host="192.0.2.2", site="s"),
)
SITE = Site("s", 0.0, 0.0, targets=TARGETS)


@pytest.mark.parametrize(
    ("kind", "port", "expected"),
    [
        ("stamp", None, [("web", 8620), ("bare", 8620)]),
        ("stamp", 862, [("web", 862), ("bare", 862)]),
        ("tcp", None, [("web", 8443), ("alt", 8080)]),
        ("tcp", 22, [("web", 22), ("bare", 22)]),
        ("icmp", None, [("web", None), ("bare", None)]),
    ],
)
def test_the_port_of_each_probe(
    kind: str, port: int | None, expected: list[tuple[str, int | None]]
) -> None:
    found = targets_for(SITE, probe_table()[kind], port)
    assert [(target.name, target.port) for target in found] == expected


def test_a_probe_whose_ports_are_the_targets_passes_over_hosts_without() -> None:
    spec = replace(probe_table()["stamp"], own_port=False)
    assert [target.port for target in targets_for(SITE, spec)] == [8443, 8080]


def read(**keys: object) -> tuple[int | None, list[Fault]]:
    faults: list[Fault] = []
    values = {"kind": "stamp", "interval": "1s", **keys}
    entry = read_probe(Entry("c.toml", values, lambda key: key, faults), probe_table(), None)
    return (entry.port if entry else None), faults


def test_the_port_of_a_campaign_entry() -> None:
    assert read() == (None, [])
    assert read(port=862) == (862, [])


@pytest.mark.parametrize("keys", [{"port": 0}, {"port": "862"}, {"kind": "icmp", "port": 5}])
def test_ports_that_make_no_sense(keys: dict[str, object]) -> None:
    _, faults = read(**keys)
    assert [fault.where for fault in faults] == ["port"]
