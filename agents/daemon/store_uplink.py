"""Results into a store on this machine: the smallest fleet has one agent and no collector."""

import asyncio
from collections.abc import Sequence

from pathbudget.agents.spool.entry import Entry
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import RecordError


class StoreUplink:
    """An `Uplink`. What the store has already is not written twice: ids decide."""

    def __init__(self, store: Store) -> None:
        self.unreadable: list[str] = []
        """Ids of entries that are no measurements of this version, acknowledged all the same: they
        would stop everything behind them for ever."""
        self._store = store

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Into tables, on the disk. Raises StoreError."""
        return await asyncio.to_thread(self._write, entries)

    def _write(self, entries: Sequence[Entry]) -> Sequence[int]:
        found = []
        for entry in entries:
            try:
                found.append(decode_line(entry.payload))
            except RecordError:
                self.unreadable.append(entry.id)
        self._store.write(found)
        return [entry.number for entry in entries]
