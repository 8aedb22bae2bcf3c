"""Is there a buffering proxy on the way? Paths of known truth; the false-alarm rate is held."""

import random

import pytest
from tests.token_stream.links import MS, Path, gathering, pairs, plain, sends, smoothing

from pathbudget.probes.stream import buffering
from pathbudget.probes.stream.buffering import GapPair, Releases, Verdict

INTERVAL = 33 * MS


def judge(path: Path, seed: int, chunks: int = 100, late_ns: int = 200_000) -> Verdict:
    rng = random.Random(seed)
    sent = sends(rng, chunks, INTERVAL, late_ns)
    gaps = pairs(sent, path(rng, sent))
    return buffering.verdict_of(buffering.releases_in(gaps), buffering.smoothing_in(gaps))


@pytest.mark.parametrize("loss", [0.0, 0.005, 0.02], ids=["clean", "half-percent", "two-percent"])
def test_a_path_without_a_proxy_raises_no_alarm(loss: float) -> None:
    verdicts = [judge(plain(3 * MS, loss), seed) for seed in range(120)]
    assert verdicts.count(Verdict.BURSTS) + verdicts.count(Verdict.SMOOTHS) <= 1
    if loss <= 0.005:
        assert verdicts.count(Verdict.NO) > 116


@pytest.mark.parametrize("held", [4, 20, 100], ids=["four", "twenty", "all"])
@pytest.mark.parametrize("loss", [0.0, 0.01], ids=["clean", "lossy"])
def test_a_proxy_that_releases_in_bursts_is_found(held: int, loss: float) -> None:
    path = gathering(held, plain(MS, loss))
    assert {judge(path, seed) for seed in range(15)} == {Verdict.BURSTS}


def test_a_proxy_with_a_pace_of_its_own_is_found() -> None:
    path = smoothing(200 * MS, INTERVAL)
    verdicts = [judge(path, seed, late_ns=5 * MS) for seed in range(15)]
    assert verdicts.count(Verdict.SMOOTHS) == 15


def test_an_uneven_sender_is_no_proxy() -> None:
    verdicts = [judge(plain(MS), seed, late_ns=5 * MS) for seed in range(120)]
    assert Verdict.SMOOTHS not in verdicts
    assert verdicts.count(Verdict.NO) > 116


def test_smoothing_is_not_claimed_without_kernel_send_stamps() -> None:
    """Noise of user-space stamps falls out of the gaps that arrive, as a smoother takes it out."""
    rng = random.Random(4)
    even = [n * INTERVAL for n in range(200)]
    stamped = [at + round(rng.expovariate(1 / MS)) for at in even]
    gaps = pairs(stamped, [at + 20 * MS for at in even])
    assert buffering.smoothing_in(gaps).verdict is Verdict.SMOOTHS, "if these were kernel stamps"
    by_user = [gap._replace(kernel_sent=False) for gap in gaps]
    assert buffering.smoothing_in(by_user).verdict is Verdict.UNDECIDED


def test_an_even_sender_cannot_be_smoothed() -> None:
    gaps = [GapPair(INTERVAL + n % 3, INTERVAL) for n in range(100)]
    assert buffering.smoothing_in(gaps).verdict is Verdict.UNDECIDED


def test_what_this_host_read_late_counts_neither_way() -> None:
    rng = random.Random(6)
    sent = sends(rng, 100, INTERVAL)
    for late_ns in (10 * MS, None):
        gaps = pairs(sent, gathering(20)(rng, sent), late_ns=late_ns)
        assert buffering.releases_in(gaps) == Releases(0, 0)
        assert buffering.releases_in(gaps).verdict is Verdict.UNDECIDED
    gaps = pairs(sent, gathering(20)(rng, sent), late_ns=5 * MS)
    assert buffering.releases_in(gaps).verdict is Verdict.BURSTS


def test_a_host_that_sleeps_over_chunks_is_no_proxy() -> None:
    """Whatever came while it slept carries one stamp, the last; how late that is read, tells."""
    rng = random.Random(17)
    alarms = 0
    for _ in range(30):
        sent = sends(rng, 100, INTERVAL, late_ns=1_000)
        came = [at + 20 * MS for at in sent]
        sleeps = [rng.randrange(100 * INTERVAL) for _ in range(6)]
        late = [0] * 100
        for begin in sleeps:
            over = [n for n, at in enumerate(came) if begin <= at < begin + 120 * MS]
            for n in over:
                late[n] = begin + 120 * MS - came[over[-1]]
                came[n] = came[over[-1]]
        gaps = [gap._replace(late_ns=late[n + 1]) for n, gap in enumerate(pairs(sent, came))]
        alarms += buffering.releases_in(gaps).verdict is Verdict.BURSTS
    assert alarms == 0


def test_a_sender_that_bursts_is_not_held_against_the_path() -> None:
    gaps = [GapPair(20_000, 10_000) if n % 5 else GapPair(INTERVAL, INTERVAL) for n in range(100)]
    releases = buffering.releases_in(gaps)
    assert releases.held == 0
    assert releases.verdict is Verdict.NO


def test_three_chunks_decide_nothing() -> None:
    assert judge(plain(), 1, chunks=3) is Verdict.UNDECIDED
    assert judge(gathering(3), 1, chunks=3) is Verdict.UNDECIDED


def test_a_path_known_to_vary_more_than_the_gaps_is_no_proxy() -> None:
    """Variation as wide as the gaps joins chunks as a proxy does: its size has to be known."""
    rng = random.Random(9)
    sent = sends(rng, 400, 10 * MS)
    gaps = pairs(sent, plain(15 * MS)(rng, sent))
    assert buffering.releases_in(gaps).verdict is Verdict.BURSTS
    assert buffering.releases_in(gaps, least_hold_ns=100 * MS).verdict is Verdict.NO


def test_binomial_tails_are_exact() -> None:
    assert buffering.at_least(0, 0, 0.1) == 1
    assert buffering.at_least(1, 0, 0.1) == 0
    assert buffering.at_least(3, 3, 0.1) == pytest.approx(0.001)
    assert buffering.at_least(1, 3, 0.1) == pytest.approx(1 - 0.9**3)
    assert Releases(3, 3).verdict is Verdict.BURSTS, "three of three are just enough"
    assert buffering.at_least(50, 10_000, 0.1) == pytest.approx(1)


def test_the_alarm_is_as_rare_as_it_says() -> None:
    """Releases held with the granted share: bursts are cried at most once in a thousand."""
    rng = random.Random(12)
    alarms = 0
    for _ in range(1_500):
        held = sum(rng.random() < buffering.GRANTED for _ in range(90))
        alarms += Releases(90, held).verdict is Verdict.BURSTS
    assert alarms <= 7  # 1.5 expected at most; more than 7 has a chance below 1 in 2,000
