"""Writing: once, whatever happens; in portions; by several at a time; only into a store."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from pathbudget.agents.store.layout import MARKER
from pathbudget.agents.store.parquet import Receipt, Store
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import Measurement

Make = Callable[..., Measurement]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_is_written_is_read_back(store: Store, make: Make) -> None:
    records = [make(number, day=number % 3) for number in range(9)]
    receipt = store.write(records)
    assert (receipt.written, receipt.already_there, len(receipt.files)) == (9, 0, 6)
    assert all(path.exists() for path in receipt.files)
    assert list(store.measurements()) == sorted(records, key=lambda record: record.id)
    assert store.verify() == []


def test_writing_again_changes_nothing(store: Store, make: Make) -> None:
    store.write([make(1), make(2)])
    before = sorted(store.path.rglob("*"))
    assert store.write([make(1)]) == Receipt(already_there=1)
    assert Store(store.path).write([make(1), make(2)]) == Receipt(already_there=2)
    assert sorted(store.path.rglob("*")) == before


def test_of_a_mixed_lot_only_the_new_ones_are_written(store: Store, make: Make) -> None:
    store.write([make(1), make(3)])
    receipt = Store(store.path).write([make(3), make(2), make(2), make(1)])
    assert (receipt.written, receipt.already_there) == (1, 3)
    assert list(store.measurements()) == [make(1), make(2), make(3)]


def test_a_measurement_without_samples_is_kept(store: Store, make: Make) -> None:
    store.write([make(1, samples=0), make(2)])
    store.write([make(3, samples=0)])
    records = list(store.measurements())
    assert [len(record.samples) for record in records] == [0, 4, 0]
    assert store.verify() == []


def test_nothing_to_write_makes_no_file(store: Store) -> None:
    assert store.write([]) == Receipt()
    assert list(store.measurements()) == []


def test_portions_reach_the_disk_while_the_rest_is_still_to_come(
    store: Store, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathbudget.agents.store.table_files._BATCH_SAMPLES", 10)
    seen: list[int] = []

    def source() -> Iterator[Measurement]:
        for number in range(9):
            seen.append(len(list(store.path.glob("samples/*/*.parquet"))))
            yield make(number)

    receipt = store.write(source())
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (receipt.written, len(receipt.files)) == (9, 6)


def test_what_came_before_an_error_of_the_source_is_stored(store: Store, make: Make) -> None:
    def source() -> Iterator[Measurement]:
        yield make(1)
        yield make(2)
        raise RecordError("line 3: bad")

    with pytest.raises(RecordError, match="line 3"):
        store.write(source())
    assert list(store.measurements()) == [make(1), make(2)]


def test_a_value_that_no_table_holds_is_named_and_leaves_no_trace(store: Store, make: Make) -> None:
    store.write([make(1)])
    bad = msgspec.structs.replace(make(2), duration_ns=2**63)
    with pytest.raises(RecordError, match="does not fit"):
        store.write([bad])
    assert list(store.measurements()) == [make(1)]
    assert store.verify() == []


def test_reading_streams_in_the_order_of_ids_across_files(store: Store, make: Make) -> None:
    for first in range(5):
        store.write([make(number, day=number % 2) for number in range(first, 40, 5)])
    ids = [record.id for record in store.measurements()]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids) == 40


def test_filters(store: Store, make: Make) -> None:
    records = [make(number, day=number) for number in range(6)]
    store.write([*records, make(7, campaign="other", probe="tls")])
    pick = store.measurements
    other = make(7, campaign="other", probe="tls")  # on the first day
    assert list(pick(site="site-1")) == [other, records[1], records[3], records[5]]
    assert list(pick(region="region-2", site="site-1")) == [records[5]]
    assert [record.id for record in pick(campaign="other", probe="tls")] == [other.id]
    since, until = records[2].started_unix_ns, records[4].started_unix_ns
    assert list(pick(since_unix_ns=since, until_unix_ns=until)) == records[2:4]
    assert list(pick(since_unix_ns=since + 1, until_unix_ns=until + 1)) == records[3:5]
    assert list(pick(vantage="region-0-a", target="site-1-t")) == [records[3]]
    assert list(pick(campaign="no such")) == []


def test_several_processes_write_the_same_at_once(
    store: Store, make: Make, run_script: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from conftest import measurement\n"
        "from pathbudget.agents.store.parquet import Store\n"
        "first = int(sys.argv[2])\n"
        "for turn in range(6):\n"
        "    Store(sys.argv[1]).write(measurement(n) for n in range(first + turn, 30, 3))\n"
    )
    command = [sys.executable, "-c", program, str(store.path)]
    writers = [subprocess.Popen([*command, str(first)]) for first in (0, 1, 2)]
    assert [writer.wait(100) for writer in writers] == [0, 0, 0]
    assert list(store.measurements()) == [make(number) for number in range(30)]
    assert store.verify() == []


def test_check_writable_makes_a_store_that_is_empty(store: Store) -> None:
    store.check_writable()
    store.check_writable()
    assert json.loads((store.path / MARKER).read_text()) == {"pathbudget_store_layout": 1}
    assert list(store.measurements()) == []
    assert store.verify() == []


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path, make: Make) -> None:
    (tmp_path / "holiday.jpg").touch()
    store = Store(tmp_path)
    for action in (store.check_writable, lambda: store.write([make(1)])):
        with pytest.raises(StoreError, match=r"no store and not empty \(holiday\.jpg \.\.\.\)"):
            action()
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.touch()
    for action in (Store(path).check_writable, Store(path).measurements, Store(path).verify):
        with pytest.raises(StoreError, match="this is a file; a store is a folder"):
            action()


def test_a_store_that_is_not_there_is_named_at_once(store: Store) -> None:
    for action in (store.measurements, store.list_campaigns, store.verify, store.compact):
        with pytest.raises(StoreError, match="there is no store here; a campaign creates one"):
            action()


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="a part of the path is a file, not a folder"):
        Store(tmp_path / "file" / "store").check_writable()


def test_a_newer_layout_is_refused(store: Store) -> None:
    store.check_writable()
    (store.path / MARKER).write_text('{"pathbudget_store_layout": 2}')
    for action in (store.check_writable, store.measurements):
        with pytest.raises(StoreError, match="written by a newer pathbudget; layout 2"):
            action()


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_damaged_marker_is_named(store: Store, text: str) -> None:
    store.check_writable()
    (store.path / MARKER).write_text(text)
    with pytest.raises(StoreError, match="damaged; it should name the layout version"):
        store.measurements()


def test_a_store_whose_making_was_interrupted_is_completed(store: Store, make: Make) -> None:
    (store.path / ".staging").mkdir(parents=True)
    (store.path / f"{MARKER}.new").touch()
    store.write([make(1)])
    assert list(store.measurements()) == [make(1)]


def test_copied_files_do_not_double_what_is_read(store: Store, make: Make) -> None:
    store.write([make(1), make(2)])
    for path in store.path.glob("*/*/*.parquet"):
        (path.parent / f"copy-{path.name}").write_bytes(path.read_bytes())
    assert list(store.measurements()) == [make(1), make(2)]
    assert [problem.what for problem in store.verify()] == [
        f"measurement {make(1).id} is there twice",
        f"measurement {make(2).id} is there twice",
    ]
    store.compact()
    assert list(store.measurements()) == [make(1), make(2)]
    assert store.verify() == []
