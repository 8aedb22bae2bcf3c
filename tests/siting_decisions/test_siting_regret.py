"""Most measurements of a real matrix hidden: the recommendation stays almost as good."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathbudget.analysis.siting.filling_known import Known

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


@pytest.mark.needs("data")
def test_regret_is_under_two_percent(
    benchmark: Any, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 % of the pairs and 99 % of the samples hidden; one model stands for all of them."""
    truth, spots = benchmark.azure(shared_data / "rtt_matrix")
    world = benchmark.World("azure", truth, benchmark.tail_of(truth), spots)
    learn = benchmark.fill

    def by_one_model(known: Known, scarce: object = None) -> Any:
        return learn(known, ["inflation by region pair"], scarce=scarce)

    monkeypatch.setattr(benchmark, "fill", by_one_model)
    monkeypatch.setattr(benchmark, "WITH_COORDINATES", {})
    monkeypatch.setattr(benchmark, "WITHOUT", {})
    monkeypatch.setattr(benchmark, "SIZES", (2,))
    tally = benchmark.run(world, 2, 2)
    assert len(tally.regret) == 2
    assert np.median(tally.regret) < 0.02
    assert np.median(tally.regret) < np.median(tally.blind)
    assert np.mean(tally.inside) > 0.9


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
