"""Names of a plan: asked for side by side, once each, and in the order of the plan."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from pathbudget.agents.campaign.addresses import AT_ONCE, Names, addresses_of, with_families
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.probes.channels import Resolution
from pathbudget.probes.failures import no_address
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.record import AddressFamily, Failure, Target, Vantage


@dataclass
class SlowNetwork(FakeNetwork):
    """Every look-up is under way for a few turns of the loop, the earlier ones for longer."""

    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    at_once: int = 0
    most: int = 0

    async def resolve(self, host: str, family: AddressFamily) -> Resolution | Failure:
        self.asked[host, family] += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        number = int(host.split("-")[1])
        for _ in range(100 - number):
            await asyncio.sleep(0)
        self.at_once -= 1
        if family is AddressFamily.IPV6:
            return no_address(host, family)
        return Resolution((f"192.0.2.{number}",), 1)


def plan_of(names: int, *, probes: int) -> VantagePlan:
    one = SeriesPlan(
        target=Target(name="", host=""), probe="icmp", kind="icmp", interval_ns=1, timeout_ns=1
    )
    series = [
        msgspec.structs.replace(one, target=Target(name=f"host-{n}", host=f"host-{n}"), probe=label)
        for n in range(names)
        for label in [f"probe-{p}" for p in range(probes)]
    ]
    vantage = Vantage(name="here", region="here")
    return VantagePlan(
        vantage=vantage, series=tuple(series), campaign="test", run_id="run", seed=1, duration_ns=1
    )


async def test_names_are_looked_up_side_by_side_once_each_and_stay_in_order() -> None:
    network = SlowNetwork(FakeClock())
    names = Names(network)
    plan = await with_families(plan_of(50, probes=3), names)
    found = await asyncio.gather(*(addresses_of(one, names) for one in plan.series))
    assert [one.target.host for one in plan.series] == [f"host-{n // 3}" for n in range(150)]
    assert [list(addresses) for addresses, _, _ in found] == [
        [f"192.0.2.{n // 3}"] for n in range(150)
    ]
    assert {family for _, family, _ in found} == {AddressFamily.IPV4}
    assert set(network.asked.values()) == {1}
    assert len(network.asked) == 100
    assert 1 < network.most <= AT_ONCE
