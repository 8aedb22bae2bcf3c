"""How a process fares, as a small file that others read while it is written anew."""

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from pathbudget.probes.errors import StoreError

Status = TypeVar("Status", bound=msgspec.Struct)


def write(path: Path, status: msgspec.Struct) -> None:
    """Whole or not at all, without waiting for the disk. A disk that is full keeps the old one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with contextlib.suppress(OSError):
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(status), indent=1) + b"\n")
        temporary.replace(path)


def read(path: Path, kind: type[Status], whose: str) -> Status:
    """Raises StoreError where there is none, or it is none of this version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise StoreError(f"{path}: no status of {whose}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise StoreError(f"{path}: no status of {whose} of this version: {error}") from None
