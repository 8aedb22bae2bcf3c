"""Most measurements of a real matrix hidden: the recommendation stays almost as good."""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathbudget.analysis.siting.fill_scene import fill_scene
from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.scene import Scene, is_open

Build = Callable[..., Scene]
BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "siting_regret.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("siting_regret", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "siting_regret", module)
    spec.loader.exec_module(module)
    return module


MODELS = ("inflation by region pair", "Vivaldi 3-D + height", "light floor x inflation")


@pytest.mark.needs("data")
def test_regret_is_under_two_percent_and_both_baselines_are_beaten(
    benchmark: Any, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 % of the pairs and 99 % of the samples of a real matrix hidden; filled as --fill does."""
    truth, spots = benchmark.azure(shared_data / "rtt_matrix")
    world = benchmark.World("azure", truth, benchmark.tail_of(truth), spots)
    every = benchmark.applicable
    monkeypatch.setattr(benchmark, "fill_scene", partial(fill_scene, models=MODELS))

    def some(known: Known) -> Any:
        return {name: every(known)[name] for name in MODELS}

    monkeypatch.setattr(benchmark, "applicable", some)
    monkeypatch.setattr(benchmark, "SIZES", (1, 2))
    monkeypatch.setattr(benchmark, "MOST_SITES", 10)
    tally = benchmark.run(world, 2, 2)
    assert len(tally.regret) == 4
    assert np.median(tally.regret) < 0.02
    assert np.median(tally.regret) < np.median(tally.blind)
    assert np.mean(tally.inside) > 0.9
    ours, vivaldi, floor = (np.median(tally.errors[name]) for name in ("chosen", *MODELS[1:]))
    assert ours < 0.75 * vivaldi
    assert ours < 0.4 * floor


def test_a_pair_is_written_as_a_store_gives_it(benchmark: Any, scene_of_table: Build) -> None:
    """One sample has no upper limit, so its pair is filled; a hundred have a table of their own."""
    scene = scene_of_table({"r": {"a": 1.0, "b": 1.0}})
    benchmark.measured(scene, (0, 0), np.array([20.0]))
    benchmark.measured(scene, (0, 1), np.concatenate([np.full(60, 10.0), np.full(40, 90.0)]))
    assert is_open(scene).tolist() == [[True, False]]
    assert np.isinf(scene.tables[0, 0, -1])
    assert set(scene.tables[0, 1]) <= {10.0, 90.0}, "what lies between was never measured"


@pytest.mark.needs("data")
def test_every_matrix_that_is_given_is_read(benchmark: Any, shared_data: Path) -> None:
    folder = shared_data / "rtt_matrix"
    assert benchmark.azure(folder)[0].shape == (49, 49)
    assert benchmark.ibm(folder)[0].shape[1:] == (10, 10)
    assert benchmark.aptos(folder).shape == (6, 6)
    kept = benchmark.complete(benchmark.azure(folder)[0])
    assert len(kept) > 40


def test_nodes_with_gaps_go_first(benchmark: Any) -> None:
    truth = np.ones((4, 4))
    truth[1, :] = truth[0, 2] = np.nan
    assert benchmark.complete(truth).tolist() in ([0, 3], [2, 3])
