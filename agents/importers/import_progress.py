"""A progress bar over the bytes of the files, on a terminal, when it takes long enough to see."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.probes.record import Measurement

SMALLEST = 4_000_000
"""Bytes of files below which there is nothing to watch."""
_EVERY = 1024


def shown(
    measurements: Iterator[Measurement], files: Sequence[Path], counts: ImportReport
) -> Iterator[Measurement]:
    """The same measurements, with a bar on stderr where a person looks at it."""
    size = sum(path.stat().st_size for path in files)
    if size < SMALLEST or not sys.stderr.isatty():
        yield from measurements
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=size)
        for number, measurement in enumerate(measurements):
            if number % _EVERY == 0:
                progress.update(task, completed=counts.bytes_read)
            yield measurement
