"""A store as a frame: read when it is asked, what is asked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pathbudget.agents.store.frames import stored_samples
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.frames import FrameError, measurements_of, samples_frame
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement, Sample, Target, Vantage

DAY = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
START = int(DAY.timestamp()) * 10**9


def measurement(number: int, site: str) -> Measurement:
    started = START + number * 3600 * 10**9
    return Measurement(
        id=f"m-{number}-{site}",
        vantage=Vantage("eu-1", "eu"),
        target=Target(f"{site}-edge", "edge.example", site),
        probe="icmp",
        started_unix_ns=started,
        samples=tuple(Sample(i, "rtt", started + i * 10**9, 10**7 + i) for i in range(100)),
        address="192.0.2.1",
    )


MEASUREMENTS = [measurement(number, site) for number in range(3) for site in ("ams", "fra")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "store"
    Store(path).write(MEASUREMENTS)
    return path


def test_all_of_it(store: Path) -> None:
    samples = stored_samples(store)
    assert samples.count() == 600
    frame = samples.frame()
    assert list(frame["value_ns"]) == list(samples_frame(MEASUREMENTS)["value_ns"])
    assert sum(len(batch) for batch in samples.batches(128)) == 600
    assert max(len(batch) for batch in samples.batches(128)) <= 128


def test_by_time_and_words(store: Path) -> None:
    since, until = DAY + timedelta(seconds=50), DAY + timedelta(hours=1, seconds=10)
    found = stored_samples(store, since=since, until=until, site="fra")
    assert found.count() == 50 + 10
    assert stored_samples(store, site=["ams", "fra"], metric="rtt").count() == 600
    assert stored_samples(store, site="none").frame().empty
    few = stored_samples(store, columns=["value_ns"], site="ams").frame()
    assert list(few.columns) == ["value_ns"]
    assert len(few) == 300


def test_what_was_read_can_be_evaluated(store: Path) -> None:
    found = list(measurements_of(stored_samples(store, site="fra").frame()))
    assert [one.id for one in found] == ["m-0-fra", "m-1-fra", "m-2-fra"]
    assert found[0].samples == MEASUREMENTS[1].samples
    assert found[0].target.site == "fra"


def test_what_is_not_there(tmp_path: Path, store: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        stored_samples(tmp_path)
    with pytest.raises(FrameError, match=r"^rtt: no column of a store"):
        stored_samples(store, columns=["rtt"])
    with pytest.raises(FrameError, match=r"^since: has no time zone"):
        stored_samples(store, since=datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(FrameError, match=r"^sight: no column"):
        stored_samples(store, sight="fra")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    Store(tmp_path / "store").write(MEASUREMENTS[:1])
    file = next((tmp_path / "store" / "samples").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StoreError, match="cannot be read"):
        stored_samples(tmp_path / "store").frame()
