"""How a collector fares, as a file in its store's folder: for people and for Prometheus."""

from pathlib import Path

import msgspec

from pathbudget.agents import status_file

STATUS = "collector.json"


class CollectorStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """One look at a collector. Counts are since its start."""

    software: str
    at_unix_ns: int
    started_unix_ns: int
    measurements: int = 0
    """Stored."""
    samples: int = 0
    """Of all measurements that were taken, duplicates too."""
    duplicates: int = 0
    """Measurements that the store had already."""
    rejected: dict[str, int] = {}
    """Messages by the word for what is wrong with them (`checking.Fault`)."""
    waiting: int | None = None
    """Measurements on the bus that no collector has vouched for; None: the bus does not say now."""
    asked_unix_ns: int | None = None
    """When the bus was asked for that, whatever the collector was doing."""
    oldest_unix_ns: int | None = None
    """When the oldest of a batch that is being written was published."""
    written_unix_ns: int | None = None
    """When the store last took something."""
    trouble: str = ""
    """Why nothing can be taken or written now."""


def write_status(path: Path, status: CollectorStatus) -> None:
    """See `status_file.write`."""
    status_file.write(path, status)


def read_status(path: Path) -> CollectorStatus:
    """Raises StoreError."""
    return status_file.read(path, CollectorStatus, "a collector")
