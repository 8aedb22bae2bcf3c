"""Lines of a lake are those of `evaluate`, whoever does the work and however it is cut."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathbudget.agents.lake.envelopes import FilePair, Wanted
from pathbudget.agents.lake.lines import lake_lines
from pathbudget.agents.lake.pairs import Question
from pathbudget.agents.lake.runners import OnDask
from pathbudget.agents.lake.store import store_lines
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.results import BudgetLine, Evaluation
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue, Tier

MIXTURE = {"warm": 0.90, "resumed": 0.08, "cold": 0.02}
TIERS = (
    Tier("chat", "Chat", 800.0, {"network": 45.0}, 95.0, "warm", 4000, MIXTURE),
    Tier("rag", "RAG", 1500.0, {"network": 70.0}, 95.0, "mixture", 32000, MIXTURE),
)
QUESTION = Question(TIERS, (50.0, 95.0))
OPTIONS = EvaluationOptions(choose=(1,), percentiles=(50.0, 95.0))

Key = tuple[object, ...]


def keyed(lines: Iterable[BudgetLine]) -> dict[Key, BudgetLine]:
    return {
        (one.region, one.site, one.target, one.family, one.tier, one.direction, one.transport,
         one.mode, one.percentile, one.prompt_bytes): one
        for one in lines
    }  # fmt: skip


def assert_equal(found: Iterable[BudgetLine], expected: Iterable[BudgetLine]) -> None:
    """In everything; the effective size, which is a sum of many, but for the last places."""
    ours, theirs = keyed(found), keyed(expected)
    assert set(ours) == set(theirs)
    for key, line in ours.items():
        assert line.n_effective == pytest.approx(theirs[key].n_effective, rel=1e-9)
        assert msgspec.structs.replace(line, n_effective=theirs[key].n_effective) == theirs[key]


@pytest.fixture(scope="module")
def expected(every: list[Measurement]) -> Evaluation:
    return evaluate(every, Catalogue(tiers={tier.name: tier for tier in TIERS}), OPTIONS)


def test_lines_are_those_of_the_records(
    files: list[FilePair], expected: Evaluation, tmp_path: Path
) -> None:
    found = lake_lines(files, QUESTION, scratch=tmp_path)
    assert len(expected.lines) > 150
    assert_equal(found.lines, expected.lines)
    assert_equal((line for pair in found.pairs for line in pair.alternatives),
                 expected.alternatives)  # fmt: skip
    assert found.samples == expected.provenance.samples
    assert list(tmp_path.iterdir()) == []


def test_dask_gives_the_same(store: Store, expected: Evaluation, tmp_path: Path) -> None:
    found = store_lines(store, QUESTION, runner=OnDask(2, "synchronous"), scratch=tmp_path)
    assert_equal(found.lines, expected.lines)


def test_only_what_is_wanted(
    files: list[FilePair], every: list[Measurement], tmp_path: Path
) -> None:
    catalogue = Catalogue(tiers={"chat": TIERS[0]})
    wanted = Wanted(campaign="two", until_unix_ns=every[-1].started_unix_ns - 1)
    chosen = [
        one
        for one in every
        if one.campaign == "two" and one.started_unix_ns < every[-1].started_unix_ns - 1
    ]
    found = lake_lines(files, Question(TIERS[:1], (50.0, 95.0)), wanted=wanted, scratch=tmp_path)
    assert_equal(found.lines, evaluate(chosen, catalogue, OPTIONS).lines)


def test_an_empty_store_and_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match="there is no store here"):
        store_lines(store, QUESTION, scratch=tmp_path)
    store.check_writable()
    assert list(store_lines(store, QUESTION, scratch=tmp_path).lines) == []


def copied(store: Store, folder: Path) -> FilePair:
    layout = store.layout
    source = layout.files("measurements", layout.dates()[0])[0]
    pair = FilePair(folder / "measurements.parquet", folder / "samples.parquet")
    pair.measurements.write_bytes(source.read_bytes())
    pair.samples.write_bytes(layout.sample_file(source).read_bytes())
    return pair


def test_damage_stops_with_the_name_of_the_file(store: Store, tmp_path: Path) -> None:
    pair = copied(store, tmp_path)
    pair.samples.write_bytes(pair.samples.read_bytes()[:-500])
    with pytest.raises(StoreError, match=r"samples\.parquet: cannot be read"):
        lake_lines([pair], QUESTION, scratch=tmp_path)
    pair.measurements.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(StoreError, match=r"measurements\.parquet: cannot be read"):
        lake_lines([pair], QUESTION, scratch=tmp_path)


@pytest.mark.parametrize("statistics", [True, False])
def test_samples_of_other_measurements_are_not_taken(
    store: Store, tmp_path: Path, statistics: bool
) -> None:
    pair = copied(store, tmp_path)
    table = pq.read_table(pair.samples)
    other = pa.array(["000-999999"] * len(table))
    table = table.set_column(0, table.schema.field(0), other)
    pq.write_table(table, pair.samples, write_statistics=statistics)
    with pytest.raises(StoreError, match=r"samples\.parquet: damaged: samples of other"):
        lake_lines([pair], QUESTION, scratch=tmp_path)


def test_footers_without_statistics_change_nothing(store: Store, tmp_path: Path) -> None:
    pair = copied(store, tmp_path)
    before = lake_lines([pair], QUESTION, scratch=tmp_path)
    pq.write_table(pq.read_table(pair.samples), pair.samples, write_statistics=False)
    assert lake_lines([pair], QUESTION, scratch=tmp_path).pairs == before.pairs


def test_a_file_that_is_no_table_of_measurements(store: Store, tmp_path: Path) -> None:
    pair = copied(store, tmp_path)
    wrong = FilePair(pair.samples, pair.measurements)
    with pytest.raises(StoreError, match="no table of this product: it has no column"):
        lake_lines([wrong], QUESTION, scratch=tmp_path)
