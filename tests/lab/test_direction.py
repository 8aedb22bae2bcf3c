"""One direction of a link does what its definition says. No packets, no clock, fixed seeds."""

import itertools
import math
import statistics

import pytest
from scipy.stats import binomtest

from pathbudget.agents.lab.direction import Direction, flow_key
from pathbudget.agents.lab.link import BurstLoss, DirectionModel, Order, Variation, VariationKind

MS = 1_000_000
N = 20_000
NORMAL = Variation(VariationKind.NORMAL, 1 * MS)
PARETO = Variation(VariationKind.PARETO, 2 * MS, shape=2.5)


def pass_through(model: DirectionModel, *, gap: int = 1000 * MS, n: int = N) -> list[int | None]:
    direction = Direction(model, "seed")
    out: list[int | None] = []
    for number in range(n):
        due = direction.due(number * gap, 100, b"")
        out.append(None if due is None else due - number * gap)
    return out


def delays(model: DirectionModel) -> list[int]:
    return sorted(due for due in pass_through(model) if due is not None)


def test_without_variation_the_delay_is_exact() -> None:
    assert set(delays(DirectionModel(delay_ns=7 * MS))) == {7 * MS}


def test_normal_variation() -> None:
    found = delays(DirectionModel(10 * MS, NORMAL))
    assert statistics.fmean(found) == pytest.approx(10 * MS, abs=4 * MS / math.sqrt(N))
    assert statistics.stdev(found) == pytest.approx(1 * MS, rel=0.03)
    assert found[N // 100] == pytest.approx((10 - 2.326) * MS, abs=0.08 * MS)
    assert min(found) >= 6 * MS
    assert max(found) <= 14 * MS


def test_normal_variation_is_never_before_the_packet() -> None:
    assert min(delays(DirectionModel(1 * MS, NORMAL))) == 0


def test_pareto_variation_has_the_delay_as_its_minimum() -> None:
    found = delays(DirectionModel(10 * MS, PARETO))
    for share in (0.5, 0.9, 0.99):
        exact = 10 * MS + 2 * MS * ((1 - share) ** (-1 / 2.5) - 1)
        assert found[int(share * N)] == pytest.approx(exact, rel=0.05)
    assert 10 * MS <= found[0] < 10.01 * MS


def test_variation_of_a_share() -> None:
    model = DirectionModel(10 * MS, Variation(VariationKind.PARETO, 2 * MS, 2.5, share=0.25))
    varied = sum(delay > 10 * MS for delay in delays(model))
    assert binomtest(varied, N, 0.25).pvalue > 0.001


def test_random_loss() -> None:
    lost = pass_through(DirectionModel(loss=0.02)).count(None)
    assert binomtest(lost, N, 0.02).pvalue > 0.001


def test_burst_loss_has_its_share_and_its_length() -> None:
    bursts = BurstLoss(to_bad=0.01, to_good=0.2, loss_bad=0.7)
    out = pass_through(DirectionModel(bursts=bursts), n=200_000)
    lost = out.count(None)
    assert lost / len(out) == pytest.approx(bursts.mean_loss, rel=0.06)
    starts = sum(here is None and before is not None for before, here in itertools.pairwise(out))
    # A lost packet is followed by another with (1 - to_good) * loss_bad: a geometric length.
    assert lost / starts == pytest.approx(1 / (1 - 0.8 * 0.7), rel=0.05)


def test_loss_of_both_kinds() -> None:
    model = DirectionModel(loss=0.05, bursts=BurstLoss(0.02, 0.1))
    lost = pass_through(model, n=100_000).count(None)
    assert lost / 100_000 == pytest.approx(model.loss_probability, rel=0.06)


def test_rate_spaces_frames_and_a_full_queue_drops() -> None:
    # 125 octets (121 and the frame check sequence) at 1 Mbit/s take 1 ms each.
    direction = Direction(DirectionModel(rate_bits=1_000_000, queue_ns=10 * MS), "seed")
    out = [direction.due(0, 121, b"") for _ in range(20)]
    assert out[:11] == [(number + 1) * MS for number in range(11)]
    assert out[11:] == [None] * 9
    assert direction.overflowed == 9
    assert direction.dropped == 0
    assert direction.due(100 * MS, 121, b"") == 101 * MS


def test_reordered_packets_are_overtaken() -> None:
    model = DirectionModel(delay_ns=10 * MS, reorder=0.05, reorder_by_ns=5 * MS)
    out = pass_through(model, gap=1 * MS)
    held = out.count(15 * MS)
    assert held + out.count(10 * MS) == N
    assert binomtest(held, N, 0.05).pvalue > 0.001


@pytest.mark.parametrize(
    ("order", "same_flow", "other_flow"),
    [(Order.FREE, False, False), (Order.FLOW, True, False), (Order.LINK, True, True)],
)
def test_order(order: Order, same_flow: bool, other_flow: bool) -> None:
    model = DirectionModel(10 * MS, PARETO, order=order)
    direction = Direction(model, "seed")
    last = {b"a": 0, b"b": 0}
    latest = 0
    kept_flow = kept_link = True
    for number in range(5000):
        flow = b"ab"[number % 2 :][:1]
        due = direction.due(number * 100_000, 100, flow)
        assert due is not None
        kept_flow &= due >= last[flow]
        kept_link &= due >= latest
        last[flow], latest = due, max(due, latest)
    assert (kept_flow, kept_link) == (same_flow, other_flow)


def test_flows_that_ended_are_forgotten() -> None:
    direction = Direction(DirectionModel(10 * MS, PARETO), "seed")
    for number in range(50_000):
        direction.due(number * MS, 100, number.to_bytes(4, "big"))
    assert len(direction._last) <= 4096


def test_the_same_seed_gives_the_same_run() -> None:
    model = DirectionModel(10 * MS, PARETO, loss=0.1)
    assert pass_through(model, n=500) == pass_through(model, n=500)
    other = Direction(model, "another")
    assert [other.due(0, 100, b"") for _ in range(20)] != [
        Direction(model, "seed").due(0, 100, b"") for _ in range(20)
    ]


def test_a_change_is_in_force_at_once_and_keeps_the_counters() -> None:
    direction = Direction(DirectionModel(1 * MS), "seed")
    assert direction.due(0, 100, b"") == 1 * MS
    direction.change(DirectionModel(loss=1.0))
    assert direction.due(0, 100, b"") is None
    assert (direction.received, direction.dropped, direction.octets) == (2, 1, 200)


def test_flow_key_is_what_routers_hash() -> None:
    ethernet = bytes(12)
    four = ethernet + b"\x08\x00" + bytes([0x45]) + bytes(8) + b"\x06" + bytes(2)
    assert flow_key(four + b"ssssdddd" + b"PPppXXXX") == b"\x06ssssddddPPpp"
    six = ethernet + b"\x86\xdd" + bytes(6) + b"\x11" + b"\x40"
    addresses = b"s" * 16 + b"d" * 16
    assert flow_key(six + addresses + b"PPppXXXX") == b"\x11" + addresses + b"PPpp"
