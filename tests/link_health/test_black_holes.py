"""Black holes of large packets, told from plain loss, from outages and from honest routers."""

import random

import pytest
from tests.link_health.paths import INTERVAL, SERIES, START, sample

from pathbudget.analysis.routes.black_holes import (
    SizedPacket,
    SizeVerdict,
    black_holes,
    judge_sizes,
    size_of,
)
from pathbudget.analysis.routes.model import Window
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)

SECOND = 10**9
SIZES = (128, 1_280, 1_400, 1_500)


def packets(
    rounds: int = 60,
    *,
    hole: int = 1_400,
    since: int = 0,
    loss: float = 0.0,
    large_loss: float = 0.0,
    seed: int = 1,
    outage: range = range(0),
) -> list[SizedPacket]:
    """A packet of each size every second; those of `hole` octets and more vanish since a round."""
    rng = random.Random(seed)
    found: list[SizedPacket] = []
    for number in range(rounds):
        for place, size in enumerate(SIZES):
            gone = size >= hole and number >= since
            gone |= rng.random() < (large_loss if size >= 1_400 else loss) or number in outage
            found.append(SizedPacket(START + number * SECOND + place, size, gone))
    return found


def test_a_black_hole_with_its_sizes_and_its_beginning() -> None:
    found = judge_sizes(SERIES, packets(since=30))
    assert found.verdict is SizeVerdict.BLACK_HOLE
    assert (found.largest_passed, found.smallest_stopped) == (1_280, 1_400)
    assert found.began == Window(START + 29 * SECOND + 3, START + 30 * SECOND + 2)
    assert found.confidence > 0.999


def test_a_black_hole_that_was_always_there() -> None:
    found = judge_sizes(SERIES, packets(hole=1_500, loss=0.05))
    assert found.verdict is SizeVerdict.BLACK_HOLE
    assert (found.largest_passed, found.smallest_stopped) == (1_400, 1_500)


def test_who_says_too_big_is_no_black_hole() -> None:
    said = [
        one._replace(lost=False, too_big=True, mtu=1_390, responder="192.0.2.9")
        if one.lost and number % 7 == 0
        else one
        for number, one in enumerate(packets())
    ]
    found = judge_sizes(SERIES, said)
    assert found.verdict is SizeVerdict.TOO_BIG
    assert (found.mtu, found.responder, found.largest_passed) == (1_390, "192.0.2.9", 1_280)


@pytest.mark.parametrize(("loss", "large_loss"), [(0.0, 0.0), (0.3, 0.3), (0.01, 0.6), (0.05, 0.9)])
def test_loss_is_no_black_hole(loss: float, large_loss: float) -> None:
    """Not even where large packets are lost far more often than small ones."""
    found = [
        judge_sizes(SERIES, packets(hole=9_999, loss=loss, large_loss=large_loss, seed=seed))
        for seed in range(60)
    ]
    holes = [one for one in found if one.verdict is SizeVerdict.BLACK_HOLE]
    assert len(holes) <= 1
    if not large_loss:
        assert {one.verdict for one in found} == {SizeVerdict.CLEAR}


def test_an_outage_of_the_whole_path_is_no_black_hole() -> None:
    found = judge_sizes(SERIES, packets(hole=9_999, outage=range(20, 60)))
    assert found.verdict is SizeVerdict.UNDECIDED


def test_too_few_packets_decide_nothing() -> None:
    found = judge_sizes(SERIES, packets(rounds=2))
    assert found.verdict is SizeVerdict.UNDECIDED
    assert "lost beside small ones that were not: 4" in found.reason
    assert judge_sizes(SERIES, []).verdict is SizeVerdict.UNDECIDED


def measurement(size: int, samples: tuple[Sample, ...], probe: str = "icmp") -> Measurement:
    return Measurement(
        id=f"m{size}",
        vantage=Vantage("here", "region"),
        target=Target("target", "192.0.2.1", site="site"),
        probe=probe,
        started_unix_ns=START,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        options={"payload_bytes": size},
    )


def test_stored_pings_of_several_sizes_are_put_together() -> None:
    small = measurement(56, tuple(sample(seq) for seq in range(40)))
    large = measurement(1_472, tuple(sample(seq, None) for seq in range(40)))
    (found,) = black_holes([small, large])
    assert (found.largest_passed, found.smallest_stopped) == (84, 1_500)
    assert found.series.target == "target"
    too_big = Failure(FailureKind.UNREACHABLE, Stage.WAIT, icmp_type=3, icmp_code=4)
    said = measurement(1_472, tuple(sample(seq, None, failure=too_big) for seq in range(40)))
    assert black_holes([small, said]) == []
    assert black_holes([small]) == []
    assert size_of(measurement(56, (), probe="dns")) is None
    assert INTERVAL * 40 < SECOND
