"""The spool file of a running campaign: every sample is with the kernel before `append` returns.

One JSON object a line (docs/store.md has the forms); `spool_file` says what a line survives.
"""

from pathlib import Path

import msgspec

from pathbudget.agents.store.journal_lines import JOURNAL_VERSION, End
from pathbudget.agents.store.journal_reader import JournalContents, read_journal
from pathbudget.agents.store.spool_file import UNREADY, SpoolFile
from pathbudget.probes.codec import encode_line, encode_sample
from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample

__all__ = ["UNREADY", "Journal", "JournalContents", "read_journal"]


class Journal(SpoolFile):
    """Appends to one spool file. Not for several threads; every method may raise SpoolError."""

    FIRST_LINE = b'{"journal":%d}\n' % JOURNAL_VERSION

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use `Journal.create`."""
        super().__init__(path, descriptor)
        self._counts: dict[tuple[int, str], int] = {}
        self._begun: set[int] = set()

    def begin(self, series: int, measurement: Measurement) -> None:
        """Open `series` with its envelope; the samples come through `append`."""
        if series in self._begun:
            raise ValueError(f"series {series} has begun already")
        envelope = encode_line(msgspec.structs.replace(measurement, samples=())).rstrip()
        self._write(b'{"begin":%d,"measurement":%b}\n' % (series, envelope))
        self._begun.add(series)

    def append(self, series: int, sample: Sample) -> None:
        """Write one sample of `series`. It survives the end of this process from here on."""
        self._write(b'{"in":%d,"sample":%b}\n' % (series, encode_sample(sample)))

    def count(self, series: int, word: str) -> None:
        """Count something that is no sample; written with the next `flush` or `end`."""
        key = (series, word)
        self._counts[key] = self._counts.get(key, 0) + 1

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """The measurement of `series` is over; samples that still come are kept all the same."""
        self.flush()
        end = msgspec.json.encode(End(clock=clock, noise=noise, duration_ns=duration_ns))
        self._write(b'{"end":%d,"with":%b}\n' % (series, end))

    def flush(self) -> None:
        """Hand the counts to the kernel too (samples are there already). Cheap: no disk wait."""
        counts, self._counts = self._counts, {}
        for (series, word), number in counts.items():
            line = {"count": series, "word": word, "number": number}
            self._write(msgspec.json.encode(line) + b"\n")
