"""Network terms are the requests of the budget lines, also when a what-if makes them again."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.whole_budget.conftest import MS, MakeNetwork

from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.request import distribution_of
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.analysis.track import Track
from pathbudget.analysis.whole_budget.evaluation import pair_request
from pathbudget.analysis.whole_budget.network import Near, NetworkChange
from pathbudget.analysis.whole_budget.whole import whole_budget
from pathbudget.sites.catalogue import Tier

PAIR = ("here", "near")
RANDOM = np.random.default_rng(1)
TRIPS = 20 + RANDOM.gamma(2, 2, 400)
COLD = 2 * (20 + RANDOM.gamma(2, 2, 400)) + 3


@pytest.mark.parametrize("prompt", [800, 64_000])
@pytest.mark.parametrize("mode", ["warm", "cold", "mixture"])
def test_in_and_out_are_the_headline_line(
    tiers: dict[str, Tier], make_network: MakeNetwork, mode: str, prompt: int
) -> None:
    tier = replace(
        tiers["chat"], mode=mode, prompt_bytes=prompt, mixture={"warm": 0.9, "cold": 0.1}
    )
    network = make_network(TRIPS, {Mode.COLD: list(COLD)})
    line = PathBudget(network.path).headline(tier)
    terms = network.terms(tier)
    assert terms is not None
    sums = np.sort(terms.incoming.values_ns + terms.outgoing.values_ns)
    value = sums[math.ceil(0.95 * len(sums)) - 1] / MS
    assert value == pytest.approx(line.value_ms, rel=1e-9 if mode != "mixture" else 1e-2)
    found = whole_budget(pair_request(PAIR, network, tier))
    if mode != "mixture":
        others = 513 - 45
        assert found.value_ms == pytest.approx((line.value_ms or 0) + others)
        assert found.low_ms == pytest.approx((line.low_ms or 0) + others)
        assert found.high_ms == pytest.approx((line.high_ms or 0) + others)


def test_a_lost_packet_is_a_request_that_failed_both_ways(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    terms = make_network([10.0, math.inf, 12.0]).terms(tiers["chat"])
    assert terms is not None
    assert list(np.isinf(terms.incoming.values_ns)) == [False, True, False]
    assert list(np.isinf(terms.outgoing.values_ns)) == [False, True, False]
    assert not np.isnan(terms.incoming.values_ns).any()


def test_a_mode_that_nobody_measured_leaves_the_whole_undecided(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    tier = replace(tiers["chat"], mode="mixture", mixture={"warm": 0.9, "resumed": 0.1})
    found = whole_budget(pair_request(PAIR, make_network(TRIPS), tier))
    assert found.verdict == "undecided"
    assert "no resumed connections were measured" in found.reason


def test_a_pair_that_nobody_measured_stands_at_its_allowance(tiers: dict[str, Tier]) -> None:
    found = whole_budget(pair_request(PAIR, None, tiers["chat"]))
    assert found.value_ms == 513
    assert "network" in found.assumed


def test_a_service_that_refuses_everybody_does_not_pass(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    network = make_network(TRIPS)
    refusing = replace(network, path=replace(network.path, refused=9, connects=9))
    found = whole_budget(pair_request(PAIR, refusing, tiers["chat"]))
    assert found.verdict == "undecided"
    assert "refused every one of 9" in found.reason


def test_a_mixture_is_worth_no_more_than_its_scarcest_mode(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    weights = {(Carrier.TLS, Mode.WARM): 0.5, (Carrier.TLS, Mode.COLD): 0.5}
    network = make_network(TRIPS, {Mode.COLD: list(COLD[:80])})
    terms = network.terms(tiers["chat"], change=NetworkChange(weights=weights))
    assert terms is not None
    assert terms.incoming.n_effective <= 160
    share = float(np.mean(terms.incoming.values_ns > 30 * MS))
    assert share == pytest.approx(0.5, abs=0.01)


def test_a_point_of_presence_shortens_set_up_and_slow_start_and_nothing_else(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    """Round trips of 40, cold set-ups of 2 x 40 + 5: over a leg of 10 they take 2 x 10 + 5."""
    network = make_network([40.0] * 100, {Mode.COLD: [85.0] * 100})
    near = NetworkChange(near=Near(10 * MS, 0.5 * MS))
    for mode, prompt, expected in (
        ("warm", 800, 40.5),
        ("warm", 20_000, 40.5 + 10),
        ("cold", 800, 2 * 10 + 5 + 40.5),
        ("cold", 20_000, 2 * 10 + 5 + 10 + 40.5),
    ):
        tier = replace(tiers["chat"], mode=mode, prompt_bytes=prompt)
        terms = network.terms(tier, change=near)
        assert terms is not None
        sums = (terms.incoming.values_ns + terms.outgoing.values_ns) / MS
        assert sums == pytest.approx(np.full(100, expected))


def test_a_measured_point_of_presence_is_taken_at_its_time(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    network = make_network([40.0, math.inf, 40.0])
    times = network.path.round_trips
    assert times is not None
    leg = Track(times.sent_unix_ns, np.array([5.0, 7.0, math.inf]) * MS, times.vantages)
    tier = replace(tiers["chat"], prompt_bytes=20_000)
    terms = network.terms(tier, change=NetworkChange(near=Near(leg)))
    assert terms is not None
    sums = (terms.incoming.values_ns + terms.outgoing.values_ns) / MS
    assert list(sums) == [45.0, math.inf, 47.0]


def test_its_interval_is_that_of_its_requests_in_their_order(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    swinging = 20 + 5 * np.sin(np.arange(400) / 2) + RANDOM.random(400)
    network = make_network(swinging)
    assert network.path.round_trips is not None
    line = distribution_of(network.path.round_trips).estimate(0.95, 0.95)
    found = whole_budget(pair_request(PAIR, network, tiers["chat"]))
    assert found.high_ms == pytest.approx(line.high / MS + 468)
