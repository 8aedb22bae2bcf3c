"""What packets meet in a running lab is what its links define, as far as the lab vouches for it."""

import itertools
import math
from typing import Any

import pytest
from scipy.stats import binomtest

from pathbudget.agents.lab.geography import world_from_places
from pathbudget.agents.lab.link import BurstLoss, DirectionModel, Variation, VariationKind
from pathbudget.agents.lab.report import LabReport
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.truth import Truth, truth
from pathbudget.probes.record import AddressFamily

pytestmark = pytest.mark.needs("lab")
STARTS_LABS_HERE = True

MS = 1_000_000
PAIR = ("region", "site")


def bounds_ms(tools: Any, true: Truth, report: LabReport, share: float) -> tuple[float, float]:
    """Where a measured quantile may lie: 0.3 ms or 1 %, and what the lab says of itself."""
    base = max(0.3, 0.01 * true.quantile_ms(0.5))
    allowance = tools.allowance(report)
    high = true.quantile_ms(allowance.share(share)) + base + allowance.ms(share)
    return true.quantile_ms(share) - base, high


@pytest.mark.parametrize("family", list(AddressFamily))
def test_constant_delay_over_many_hops(tools: Any, family: AddressFamily) -> None:
    world = tools.line(DirectionModel(3 * MS), DirectionModel(9 * MS), routers=4)
    true = truth(world)[PAIR]
    assert true.minimum_ms == 4 * 4 + 12
    with Lab(world) as lab:
        address = lab.address_of("site", family)
        seen = tools.when_quiet(
            lambda: tools.ping(lab, ["region"], [address], count=300, interval_s=0.00317)
        )["region"]
    assert len(seen.answered(address)) >= 250
    for share in (0.01, 0.5):
        low, high = bounds_ms(tools, true, seen.report, share)
        assert low <= seen.quantile(address, share) <= high


VARIATIONS = [
    Variation(VariationKind.NORMAL, 2 * MS),
    Variation(VariationKind.PARETO, 2 * MS, 2.5),
    Variation(VariationKind.PARETO, 4 * MS, 3.0, share=0.3),
]


@pytest.mark.parametrize("variation", VARIATIONS, ids=["normal", "pareto", "share"])
def test_quantiles_of_variation(tools: Any, variation: Variation) -> None:
    world = tools.line(DirectionModel(12 * MS, variation), DirectionModel(5 * MS))
    true = truth(world)[PAIR]
    with Lab(world) as lab:
        address = lab.address_of("site")
        seen = tools.when_quiet(
            lambda: tools.ping(lab, ["region"], [address], count=1200, interval_s=0.0027)
        )["region"]
    n = len(seen.answered(address))
    allowance = tools.allowance(seen.report)
    for share in (0.05, 0.5, 0.95):
        low, _ = true.band_ms(share, n, deviations=4)
        _, high = true.band_ms(allowance.share(share), n, deviations=4)
        slack = 0.1 + allowance.ms(share)
        assert low - 0.1 <= seen.quantile(address, share) <= high + slack


def test_random_loss_is_binomial_and_counted(tools: Any) -> None:
    world = tools.line(DirectionModel(loss=0.05), DirectionModel(loss=0.03))
    true = truth(world)[PAIR]
    with Lab(world) as lab:
        address = lab.address_of("site")
        seen = tools.ping(lab, ["region"], [address], count=2000, interval_s=0.001, linger_s=0.5)
        report = lab.report()
    rtt = seen["region"].rtt_ms[address]
    lost = rtt.count(None)
    assert report.ring_drops == report.unsent == 0
    assert report.dropped_by_model == lost
    assert binomtest(lost, len(rtt), true.loss).pvalue > 0.01


def test_burst_loss_comes_in_bursts(tools: Any) -> None:
    bursts = BurstLoss(to_bad=0.01, to_good=0.2)
    world = tools.line(DirectionModel(bursts=bursts))
    with Lab(world) as lab:
        address = lab.address_of("site")
        seen = tools.ping(lab, ["region"], [address], count=3000, interval_s=0.0008, linger_s=0.5)
    rtt = seen["region"].rtt_ms[address]
    lost = rtt.count(None)
    starts = sum(here is None and before is not None for before, here in itertools.pairwise(rtt))
    # Seeded: the run repeats whatever the host does, but for packets that the pinger left out.
    assert lost / len(rtt) == pytest.approx(bursts.mean_loss, rel=0.5)
    assert 3 < lost / starts < 8


def test_rate_limits_what_gets_through(tools: Any) -> None:
    slow = DirectionModel(5 * MS, rate_bits=1_000_000, queue_ns=30 * MS)
    world = tools.line(slow, DirectionModel(5 * MS))
    true = truth(world, octets=1028)[PAIR]
    with Lab(world) as lab:
        address = lab.address_of("site")
        calm = tools.when_quiet(
            lambda: tools.ping(
                lab, ["region"], [address], count=100, interval_s=0.0213, octets=1000
            )
        )["region"]
        flood = tools.ping(
            lab, ["region"], [address], count=400, interval_s=0.004, octets=1000, linger_s=0.5
        )["region"]
    low, high = bounds_ms(tools, true, calm.report, 0.5)
    assert low <= calm.quantile(address, 0.5) <= high
    # 1046 octets at 1 Mbit/s take 8.4 ms, twice the interval: half of it must be dropped, and who
    # gets through has waited in a queue of 30 ms.
    answered = len(flood.answered(address))
    assert flood.report.dropped_by_queue == pytest.approx(400 - 400 * 4 / 8.368, rel=0.1)
    assert answered == pytest.approx(400 * 4 / 8.368, rel=0.1)
    queued = flood.quantile(address, 0.5) - true.quantile_ms(0.5)
    assert 20 <= queued <= 31 + tools.allowance(flood.report).ms(0.5)


def test_reordered_packets_arrive_late(tools: Any) -> None:
    world = tools.line(DirectionModel(reorder=0.2, reorder_by_ns=8 * MS), DirectionModel())
    with Lab(world) as lab:
        address = lab.address_of("site")
        seen = tools.when_quiet(
            lambda: tools.ping(lab, ["region"], [address], count=500, interval_s=0.003)
        )["region"]
    late = [value > 4 + 7.9 for value in seen.answered(address)]
    assert binomtest(sum(late), len(late), 0.2).pvalue > 0.01


def test_a_whole_geographic_world_at_the_rate_of_the_demo(tools: Any) -> None:
    regions = [
        ("dallas", 32.8, -96.8),
        ("chicago", 41.9, -87.6),
        ("new-york", 40.7, -74.0),
        ("los-angeles", 34.1, -118.2),
        ("miami", 25.8, -80.2),
    ]
    sites = [
        ("site-dallas", 32.8, -96.8),
        ("site-ashburn", 39.0, -77.5),
        ("site-chicago", 41.9, -87.6),
        ("site-santa-clara", 37.4, -122.0),
    ]
    world = world_from_places(regions, sites, seed=11)
    expected = truth(world)
    with Lab(world) as lab:
        addresses = [lab.address_of(site) for site in world.sites]
        seen = tools.when_quiet(
            lambda: tools.ping(lab, world.regions, addresses, count=250, interval_s=0.005)
        )
        report = lab.report()
    assert report.ring_drops == report.unsent == 0
    for (region, site), true in expected.items():
        echoes = seen[region]
        address = world.address_of(site)
        n = len(echoes.answered(address))
        assert n > 150
        low, high = bounds_ms(tools, true, echoes.report, 0.0)
        assert low <= min(echoes.answered(address)) <= high, (region, site)
        low, high = bounds_ms(tools, true, echoes.report, 0.5)
        assert low <= echoes.quantile(address, 0.5) <= high, (region, site)
        allowance = tools.allowance(echoes.report)
        low, _ = true.band_ms(0.95, n)
        _, high = true.band_ms(allowance.share(0.95), n)
        slack = max(0.3, 0.01 * true.quantile_ms(0.5)) + allowance.ms(0.95)
        assert low - slack <= echoes.quantile(address, 0.95) <= high + slack, (region, site)
        sent = len(echoes.rtt_ms[address])
        within = 2.58 * math.sqrt(sent * true.loss * (1 - true.loss)) + 2.5
        assert abs(sent - n - sent * true.loss) <= within, (region, site)
