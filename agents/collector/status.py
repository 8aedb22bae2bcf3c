"""How a collector fares, as a file in its store's folder: for people and for Prometheus."""

import contextlib
from pathlib import Path

import msgspec

from pathbudget.probes.errors import StoreError

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
    """Measurements on the bus that no collector has vouched for; None: not known now."""
    oldest_unix_ns: int | None = None
    """When the oldest of a batch that is being written was published."""
    written_unix_ns: int | None = None
    """When the store last took something."""
    trouble: str = ""
    """Why nothing can be taken or written now."""


def write_status(path: Path, status: CollectorStatus) -> None:
    """Whole or not at all, without waiting for the disk. A disk that is full keeps the old one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with contextlib.suppress(OSError):
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(status), indent=1) + b"\n")
        temporary.replace(path)


def read_status(path: Path) -> CollectorStatus:
    """Raises StoreError where there is none, or it is none of this version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=CollectorStatus)
    except OSError as error:
        raise StoreError(f"{path}: no status of a collector: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise StoreError(f"{path}: no status of a collector of this version: {error}") from None
