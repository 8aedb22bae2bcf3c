"""What an import did: every result of every file is counted exactly once."""

from collections import Counter
from dataclasses import dataclass, field

from pathbudget.probes.record import Metric, Sample


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be read. The rest of the file was.

    `where` is ``line 7`` or ``result 7`` (counted from 1), empty for the file as a whole.
    `byte_offset` counts in the uncompressed text.
    """

    file: str
    where: str
    byte_offset: int | None
    reason: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.file, self.where) if part)
        byte = "" if self.byte_offset is None else f" (byte {self.byte_offset})"
        return f"{place}{byte}: {self.reason}"


@dataclass(slots=True)
class ImportReport:
    """Counts of one import; `read_results` fills it as it goes.

    ``results == measurements + skipped + left out + malformed`` holds at every moment between two
    measurements of different blocks, and at the end.
    """

    files: int = 0
    bytes_read: int = 0
    """Bytes of the files as they lie on disk, compressed or not."""
    results: int = 0
    measurements: int = 0
    samples: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    """``kind/stage`` to samples."""
    types: Counter[str] = field(default_factory=Counter[str])
    """Type of result (``ping`` ...) to results that became measurements."""
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Type of result for which there is no probe yet, to results."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Why a readable result has nothing to import, to results."""
    malformed: int = 0
    """Results that could not be read."""
    late: int = 0
    duplicates: int = 0
    hop_samples: int = 0
    """Samples of packets to the hops of traceroutes, which are among `samples`."""
    hop_unanswered: int = 0
    """How many of those have no number; they are in no count of `failures`."""
    reconstructed: int = 0
    """Samples worked out of minimum, mean and maximum (oldest firmware)."""
    inconsistent: int = 0
    """Pings whose own totals disagree with their packets; the packets were taken."""
    without_place: int = 0
    """Probes that no probes file places where the chosen regions need it."""
    damaged_files: int = 0
    """Files cut off or damaged; what came before was read."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """The first of them, in full."""
    problems_kept: int = 20

    @property
    def numbers(self) -> int:
        """Samples that have a value."""
        return self.samples - self.failures.total() - self.hop_unanswered

    def count(self, kind: str, samples: tuple[Sample, ...]) -> None:
        """Count one measurement made of a result of type `kind`."""
        self.measurements += 1
        self.types[kind] += 1
        self.samples += len(samples)
        for sample in samples:
            if sample.metric == Metric.HOP_RTT:
                self.hop_samples += 1
                self.hop_unanswered += sample.failure is not None
            elif sample.failure is not None:
                self.failures[f"{sample.failure.kind}/{sample.failure.stage}"] += 1

    def note(self, problem: Problem) -> None:
        """Keep `problem` if it is among the first ones."""
        if len(self.problems) < self.problems_kept:
            self.problems.append(problem)
