"""Backups and room are asked of rivals, of draws and of what is told as of the choice itself."""

from collections.abc import Callable

import numpy as np
import pytest

from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Score
from pathbudget.analysis.siting.vocabulary import Aim
from pathbudget.analysis.siting.wishes import Wishes

Build = Callable[..., Scene]
BACKED = {
    "r0": {"a": 2.0, "b": 90.0, "c": 90.0},
    "r1": {"a": 90.0, "b": 2.0, "c": 90.0},
    "r2": {"a": 8.0, "b": 90.0, "c": 9.0},
}
"""Only r2 has two sites within 30 ms."""


def test_covering_with_backups_tells_what_is_covered_without_them(scene_of_table: Build) -> None:
    scene = scene_of_table(BACKED, allowance=30.0)
    decision = decide(scene, Wishes(k=2, objective=Aim.COVERING, backup=1))
    assert decision.sites == ("a", "c")
    assert decision.value == pytest.approx(1 / 3)
    assert decision.within_share == pytest.approx(2 / 3)
    assert "every region that counts" in " ".join(decision.asked)
    assert decision.robustness is not None
    assert decision.robustness.share_of_best == 1.0
    assert decision.robustness.regret_mean == 0.0


def test_a_draw_counts_a_region_with_its_backups_near_enough() -> None:
    drawn = np.array([[[2.0, 13.0], [2.0, 29.0]]])
    limits = np.array([30.0, 30.0])
    plain = Score(Aim.COVERING, np.array([0.5, 0.5]), limits)
    backed = Score(Aim.COVERING, np.array([0.5, 0.5]), limits, 1, np.array([20.0, 20.0]))
    assert plain.of(drawn, (0, 1)).tolist() == [0.0]
    assert backed.of(drawn, (0, 1)).tolist() == [0.5]


def test_a_rival_without_a_backup_near_enough_is_none(scene_of_table: Build) -> None:
    scene = scene_of_table(
        {
            "r0": {"a": (2.0, 1.0, 3.0), "b": (3.0, 1.0, 4.0), "c": (20.0, 19.0, 21.0)},
            "r1": {"a": (2.0, 1.0, 3.0), "b": (90.0, 80.0, 99.0), "c": (22.0, 20.0, 24.0)},
        }
    )
    decision = decide(scene, Wishes(k=2, backup=1, backup_within_ms=50.0))
    assert decision.sites == ("a", "c")
    assert decision.decided
    near = decide(scene, Wishes(k=2, backup=1, backup_within_ms=85.0))
    assert not near.decided  # b may be within 85 ms of r1


def test_draws_do_not_favour_sites_that_serve_less(scene_of_table: Build) -> None:
    scene = scene_of_table(
        {"r0": {"a": (5.0, 1.0, 8.0), "b": (4.0, 1.0, 12.0), "c": (20.0, 19.0, 21.0)}},
        sites={"a": {"capacity": 1.0}, "b": {"capacity": 0.4}, "c": {"capacity": 5.0}},
    )
    decision = decide(scene, Wishes(k=1, capacity=True))
    assert decision.sites == ("a",)
    assert decision.robustness is not None
    assert decision.robustness.share_of_best == 1.0
    assert "b" not in {name for one in decision.robustness.choices for name in one.sites}
