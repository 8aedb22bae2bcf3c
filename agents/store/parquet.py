"""The store: a folder of Parquet that is written step by step, all or nothing, and once.

`Store.write` is idempotent by measurement id, across processes and crashes; several writers may
work at once. docs/store.md says what is guaranteed to whom.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.store.compaction import CompactReceipt, compact
from pathbudget.agents.store.layout import BGP_UPDATES, MEASUREMENTS, SAMPLES, Layout, date_of
from pathbudget.agents.store.listing import (
    CampaignSummary,
    SeriesSummary,
    campaigns,
    summarise,
)
from pathbudget.agents.store.locks import exclusive, shared
from pathbudget.agents.store.reading import Selection, measurement_files, merged
from pathbudget.agents.store.table_files import PairWriter, batches, ids
from pathbudget.agents.store.transaction import (
    AtStep,
    Transaction,
    half_exchanged,
    no_step,
    settle,
    transaction,
    unsettled,
)
from pathbudget.agents.store.update_files import (
    EVERYTHING,
    UpdateSelection,
    UpdateWriter,
    filed_under,
    ids_within,
    merged_updates,
    update_batches,
)
from pathbudget.agents.store.update_listing import FeedSummary, summarise_updates
from pathbudget.agents.store.verification import Problem, find_problems
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import AddressFamily, Measurement

DEFAULT_STORE = Path("pathbudget-store")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did. `problems` names what could not be saved from a damaged journal.

    `updates`: of `recover`, BGP updates that were written, which `written` does not count then.
    """

    written: int = 0
    already_there: int = 0
    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    updates: int = 0

    def __add__(self, other: "Receipt") -> "Receipt":
        return Receipt(
            self.written + other.written,
            self.already_there + other.already_there,
            self.files + other.files,
            self.problems + other.problems,
            self.updates + other.updates,
        )


class Store:
    """A store at `path`. Making the object touches nothing on disk."""

    def __init__(self, path: Path | str, *, at_step: AtStep = no_step) -> None:
        self.path = Path(path)
        self.layout = Layout(self.path)
        self._at_step = at_step
        self._ids: dict[Path, set[str]] = {}

    @property
    def spool(self) -> Path:
        """Folder of the journals of this store."""
        return self.layout.spool

    def check_writable(self) -> None:
        """Make the store where there is none, and write a trial file. Raises StoreError.

        To be called before anything is measured.
        """
        self.layout.check_writable()

    def write(self, measurements: Iterable[Measurement]) -> Receipt:
        """Store what is not there yet. What has been written when an error comes stays written.

        Raises StoreError (disk) and RecordError (a value that no table can hold).
        """
        self.layout.create()
        receipt = Receipt()
        for batch in batches(measurements):
            receipt += self._write_batch(batch)
        return receipt

    def write_updates(self, updates: Iterable[RouteUpdate]) -> Receipt:
        """Store BGP updates that are not there yet. What has been written stays written.

        Raises StoreError and RecordError, as `write` does.
        """
        self.layout.create()
        self.layout.create_table(BGP_UPDATES)
        receipt = Receipt()
        for batch in update_batches(updates):
            receipt += self._write_updates(batch)
        return receipt

    def updates(self, selection: UpdateSelection = EVERYTHING) -> Iterator[RouteUpdate]:
        """BGP updates, each once, in the order of time; one row group per file in memory.

        Raises StoreError when there is no store or a file is damaged.
        """
        self.layout.require()
        self.settle_if_possible()
        return self._read_updates(selection)

    def _read_updates(self, selection: UpdateSelection) -> Iterator[RouteUpdate]:
        with shared(self.layout.reader_lock):
            yield from merged_updates(self.layout, selection)

    def list_feeds(self, selection: UpdateSelection = EVERYTHING) -> list[FeedSummary]:
        """What is there of BGP, one entry per feed."""
        self.layout.require()
        self.settle_if_possible()
        with shared(self.layout.reader_lock):
            return summarise_updates(self.layout, selection)

    def measurements(
        self,
        *,
        campaign: str | None = None,
        since_unix_ns: int | None = None,
        until_unix_ns: int | None = None,
        region: str | None = None,
        vantage: str | None = None,
        site: str | None = None,
        target: str | None = None,
        probe: str | None = None,
        family: AddressFamily | None = None,
    ) -> Iterator[Measurement]:
        """Measurements with their samples, in the order of their ids, one at a time in memory.

        Started in [since, until). Raises StoreError when there is no store or a file is damaged.
        """
        selection = Selection(
            campaign=campaign,
            since_unix_ns=since_unix_ns,
            until_unix_ns=until_unix_ns,
            region=region,
            vantage=vantage,
            site=site,
            target=target,
            probe=probe,
            family=family,
        )
        return self.select(selection)

    def select(self, selection: Selection) -> Iterator[Measurement]:
        """`measurements` with the wishes in one object."""
        self.layout.require()
        self.settle_if_possible()
        return self._read(selection)

    def _read(self, selection: Selection) -> Iterator[Measurement]:
        with shared(self.layout.reader_lock):
            files = measurement_files(self.layout, selection)
            yield from merged(self.layout, files, selection)

    def list_series(self, selection: Selection | None = None) -> list[SeriesSummary]:
        """What is there, one entry per campaign, vantage, target, probe and address family."""
        selection = selection or Selection()
        self.layout.require()
        self.settle_if_possible()
        with shared(self.layout.reader_lock):
            return summarise(measurement_files(self.layout, selection), selection)

    def list_campaigns(self) -> list[CampaignSummary]:
        """Every campaign with its extent, the one that began first in front."""
        return campaigns(self.list_series())

    def verify(self) -> list[Problem]:
        """Read everything and say what is wrong; nothing is changed."""
        self.layout.require()
        with shared(self.layout.reader_lock):
            return list(find_problems(self.layout))

    def compact(self) -> CompactReceipt:
        """Make the many files of a date one. A date with a damaged file is left as it is.

        Raises StoreError when the disk does not take it; the store is then as it was.
        """
        self.layout.require()
        return compact(self.layout, self._at_step)

    def settle_if_possible(self) -> None:
        """Finish what a killed writer left, unless one is at work or the store is read-only."""
        if not unsettled(self.layout):
            return
        try:
            with exclusive(self.layout.writer_lock, wait_s=0, busy="a writer is at work"):
                settle(self.layout, self._at_step)
        except (OSError, StoreError):
            if missing := half_exchanged(self.layout):
                raise StoreError(
                    f"{missing}: a compaction was interrupted here; run pathbudget store recover "
                    f"{self.path} as somebody who may write it"
                ) from None

    def _write_batch(self, batch: Sequence[Measurement]) -> Receipt:
        with transaction(self.layout, "append", self._at_step) as work:
            new = self._not_there_yet(batch)
            if not new:
                return Receipt(already_there=len(batch))
            for date in sorted({date_of(m.started_unix_ns) for m in new}):
                _stage(work, date, [m for m in new if date_of(m.started_unix_ns) == date])
            files = work.commit(self._at_step)
            return Receipt(len(new), len(batch) - len(new), tuple(files))

    def _write_updates(self, batch: Sequence[RouteUpdate]) -> Receipt:
        with transaction(self.layout, "append", self._at_step) as work:
            by_date: dict[str, dict[str, RouteUpdate]] = {}
            for update in batch:
                by_date.setdefault(filed_under(update), {}).setdefault(update.id, update)
            new = 0
            for date, once in sorted(by_date.items()):
                for path in self.layout.files(BGP_UPDATES, date):
                    for name in ids_within(path, min(once), max(once)) & once.keys():
                        del once[name]
                    if not once:
                        break
                new += len(once)
                if once:
                    with UpdateWriter(work.file(BGP_UPDATES, date)) as writer:
                        writer.write([once[name] for name in sorted(once)])
            files = work.commit(self._at_step) if new else []
            return Receipt(new, len(batch) - new, tuple(files))

    def _not_there_yet(self, batch: Sequence[Measurement]) -> list[Measurement]:
        """In the order of their ids, each once."""
        once = {measurement.id: measurement for measurement in reversed(batch)}
        for date in {date_of(measurement.started_unix_ns) for measurement in batch}:
            for path in self.layout.files(MEASUREMENTS, date):
                if path not in self._ids:
                    self._ids[path] = ids(path)
                for name in self._ids[path] & once.keys():
                    del once[name]
        return [once[name] for name in sorted(once)]


def _stage(work: Transaction, date: str, measurements: Sequence[Measurement]) -> None:
    with PairWriter(work.file(MEASUREMENTS, date), work.file(SAMPLES, date)) as writer:
        writer.write(measurements)
