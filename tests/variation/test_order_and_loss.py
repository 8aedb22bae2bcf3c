"""Reordering (RFC 4737), duplicates (RFC 5560), loss patterns (RFC 3357, 6534), outages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.loss_patterns import gilbert, loss_episodes, loss_pattern
from pathbudget.analysis.outage_rule import consecutive_losses
from pathbudget.analysis.outages import (
    OutageDetector,
    OutageEvent,
    OutageEventKind,
    find_outages,
    usual_loss_ratio,
)
from pathbudget.analysis.reordering import duplication, reordering

MS = 1_000_000


def lost(word: str) -> np.typing.NDArray[np.bool_]:
    """``.x..`` with x a loss."""
    return np.array([letter == "x" for letter in word])


def test_rfc_4737_example_with_one_late_packet() -> None:
    """Arrival 1 2 3 5 6 7 8 4 9 10: only packet 4 is reordered, and four packets passed it."""
    found = reordering([1, 2, 3, 5, 6, 7, 8, 4, 9, 10])
    assert (found.reordered, found.ratio) == (1, 0.1)
    assert found.extents == (4,)
    assert found.n_reordered == 1


def test_rfc_4737_example_with_two_interleaved_streams() -> None:
    """Arrival 1 2 3 7 8 9 10 4 5 6 11: three packets are reordered, all by extent 4 to 6."""
    found = reordering([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11])
    assert found.reordered == 3
    assert found.extents == (4, 5, 6)
    assert found.n_reordered == 1  # 5 and 6 have packet 4 right before them


def test_rfc_4737_a_lost_packet_reorders_nothing() -> None:
    assert reordering([1, 2, 4, 5, 9]).reordered == 0


def test_rfc_4737_neighbours_that_change_places() -> None:
    found = reordering([2, 1, 4, 3])
    assert (found.reordered, found.extents, found.n_reordered) == (2, (1, 1), 0)


def test_a_copy_is_a_duplicate_and_no_reordered_packet() -> None:
    with pytest.raises(ValueError, match="twice"):
        reordering([1, 2, 1])
    found = duplication([1, 2, 1, 3, 1])
    assert (found.arrived, found.replicated, found.copies) == (3, 1, 2)
    assert found.duplicate_fraction == pytest.approx(2 / 3)
    assert found.replicated_fraction == pytest.approx(1 / 3)


@given(st.permutations(range(12)))
def test_law_reordering_is_what_its_definition_says(arrived: list[int]) -> None:
    found = reordering(arrived)
    reordered = [i for i in range(12) if any(arrived[j] > arrived[i] for j in range(i))]
    extents = [i - min(j for j in range(i) if arrived[j] > arrived[i]) for i in reordered]
    assert found.reordered == len(reordered)
    assert list(found.extents) == extents
    assert found.n_reordered == sum(
        i >= 3 and all(arrived[j] > arrived[i] for j in range(i - 3, i)) for i in range(12)
    )


def test_rfc_3357_distance_and_period() -> None:
    """Losses 2, 3, 8 and 10 of ten packets: three distances, three periods, two gaps between."""
    found = loss_pattern(lost(".xx....x.x"), 2_000_000_000)
    assert found.distances == (1, 5, 2)
    assert found.period_lengths == (2, 1, 1)
    assert found.inter_loss_period_lengths == (5, 2)
    assert found.noticeable_rate(2) == 0.5
    assert found.tmax_ns == 2_000_000_000


def test_loss_pattern_of_no_loss_and_of_nothing_else() -> None:
    assert loss_pattern(lost("....")).distances == ()
    assert loss_pattern(lost("xxxx")).period_lengths == (4,)
    assert loss_pattern(lost("")).ratio == 0.0


def test_rfc_6534_episodes_by_probe_pairs() -> None:
    word = ("." * 96 + "x" * 4) * 50
    found = loss_episodes(lost(word))
    assert found.frequency == pytest.approx(0.04, abs=0.001)
    assert found.mean_duration_pairs == pytest.approx(4.0, abs=0.1)
    assert loss_episodes(lost("....")).mean_duration_pairs is None
    assert loss_episodes(lost(".")).pairs == 0


def test_gilbert_tells_bursts_from_random_loss() -> None:
    rng = np.random.default_rng(3)
    random = gilbert(rng.random(20_000) < 0.1)
    bursts = gilbert(lost(("." * 90 + "x" * 10) * 100))
    assert random is not None
    assert bursts is not None
    assert abs(random[0] - random[1]) < 0.03
    assert bursts[1] > 10 * bursts[0]


def events(word: str, consecutive: int) -> list[tuple[int, OutageEvent]]:
    detector = OutageDetector(consecutive)
    found = ((i, detector.feed(i * 10 * MS, letter == "x")) for i, letter in enumerate(word))
    return [(i, event) for i, event in found if event is not None]


def test_an_outage_is_reported_within_a_second_at_ten_milliseconds_and_so_is_its_end() -> None:
    rule = consecutive_losses(0.05)
    found = events("." * 100 + "x" * 80 + "." * 20, rule)
    assert [event.kind for _, event in found] == [OutageEventKind.BEGAN, OutageEventKind.ENDED]
    (noticed, began), (over, ended) = found
    assert (noticed - 100) * 10 * MS < 1_000 * MS
    assert began.outage.first_lost_ns == 1_000 * MS
    assert over == 180
    outage = ended.outage
    assert (outage.last_good_ns, outage.first_good_ns) == (990 * MS, 1_800 * MS)
    assert (outage.shortest_ns, outage.longest_ns, outage.lost) == (790 * MS, 810 * MS, 80)


@pytest.mark.parametrize(("ratio", "consecutive"), [(0.0, 3), (0.01, 5), (0.05, 7), (0.5, 30)])
def test_the_rule_keeps_chance_below_one_in_a_billion(ratio: float, consecutive: int) -> None:
    assert consecutive_losses(ratio) == consecutive
    assert ratio**consecutive <= 1e-9
    assert consecutive * 10 < 1_000  # ms, at a probe every 10 ms


def test_random_loss_raises_no_alarm() -> None:
    """200,000 packets at 10 % of random loss: the rule expects 0.0002 alarms."""
    rng = np.random.default_rng(11)
    losses = rng.random(200_000) < 0.1
    detector = OutageDetector(consecutive_losses(0.1))
    assert all(detector.feed(i, bool(one)) is None for i, one in enumerate(losses))


def test_a_loose_rule_raises_about_as_many_alarms_as_it_says() -> None:
    rng = np.random.default_rng(12)
    losses = rng.random(200_000) < 0.1
    found = len(find_outages(np.arange(200_000), losses, 3))
    assert 120 < found <= 200 * 1.3  # n p0^k (1 - p0) = 180


@given(st.text(alphabet=".x", max_size=80), st.integers(1, 4))
def test_law_batch_and_detector_find_the_same_outages(word: str, consecutive: int) -> None:
    batch = find_outages(np.arange(len(word)) * 10 * MS, lost(word), consecutive)
    ended = [e.outage for _, e in events(word, consecutive) if e.kind is OutageEventKind.ENDED]
    assert [outage for outage in batch if outage.first_good_ns is not None] == ended
    detector = OutageDetector(consecutive)
    for i, letter in enumerate(word):
        detector.feed(i * 10 * MS, letter == "x")
    assert [outage for outage in batch if outage.first_good_ns is None] == (
        [] if detector.ongoing is None else [detector.ongoing]
    )


def test_an_outage_does_not_excuse_itself() -> None:
    assert usual_loss_ratio(lost("." * 500 + "x" * 300 + "." * 200)) < 0.01
    rng = np.random.default_rng(5)
    usual = usual_loss_ratio(np.concatenate((rng.random(5000) < 0.05, np.ones(500, dtype=bool))))
    assert usual == pytest.approx(0.05, abs=0.01)


def test_bad_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="consecutive"):
        OutageDetector(0)
    with pytest.raises(ValueError, match="loss ratio"):
        consecutive_losses(1.0)
