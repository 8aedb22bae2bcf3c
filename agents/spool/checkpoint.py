"""What a spool must know beyond its segments: two copies in one file, each with a checksum.

The file has its full size from the beginning and is changed in place, so a disk that is full takes
a checkpoint all the same. The copies are written one after the other: whichever write is torn, the
other copy is whole.
"""

import os
import zlib
from pathlib import Path

import msgspec

COPY_BYTES = 4096
_CHECKED_FROM = 8


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sums of samples are of segments that are gone, but for `written` and `refused`."""

    serial: int = 0
    first: int = 1
    """Segments of lower numbers are gone."""
    next: int = 1
    """The number of the next entry, at least."""
    written: int = 0
    """Samples of all frames there have been."""
    retired: int = 0
    """Those of them in segments that are gone."""
    acknowledged: int = 0
    dropped: dict[str, int] = {}
    refused: dict[str, int] = {}
    """Samples that never were in a frame, by reason."""
    found_again: int = 0
    """Samples that were torn, and came again from elsewhere."""
    base: int = 0
    """`written` when these sums began, where an older checkpoint was lost."""
    spool_ns: int = 0
    unix_ns: int = 0


class CheckpointFile:
    """The file, open. Methods raise OSError."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._serial = 0

    def read(self) -> Checkpoint | None:
        """The later copy that is whole; None where neither is (a new file, or both damaged)."""
        data = os.pread(self._descriptor, 2 * COPY_BYTES, 0)
        found = [
            copy
            for copy in (_decode(data[:COPY_BYTES]), _decode(data[COPY_BYTES:]))
            if copy is not None
        ]
        latest = max(found, key=lambda copy: copy.serial, default=None)
        self._serial = 0 if latest is None else latest.serial
        return latest

    def is_new(self) -> bool:
        """Whether nothing was ever written to it."""
        return os.fstat(self._descriptor).st_size == 0

    def write(self, checkpoint: Checkpoint, *, durable: bool = False) -> None:
        """Write both copies; `durable`: wait for the disk after each."""
        self._serial += 1
        data = _encode(msgspec.structs.replace(checkpoint, serial=self._serial))
        for offset in (0, COPY_BYTES):
            os.pwrite(self._descriptor, data, offset)
            if durable:
                os.fdatasync(self._descriptor)

    def duplicate(self) -> int:
        """Another descriptor of the file, for a thread that waits for the disk."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Let go of the file. Twice does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _encode(checkpoint: Checkpoint) -> bytes:
    text = msgspec.json.encode(checkpoint)
    body = len(text).to_bytes(4, "little") + text
    return (zlib.crc32(body).to_bytes(4, "little") + body).ljust(COPY_BYTES, b"\0")


def _decode(data: bytes) -> Checkpoint | None:
    length = int.from_bytes(data[4:_CHECKED_FROM], "little")
    body = data[4 : _CHECKED_FROM + length]
    if not length or len(body) != 4 + length:
        return None
    if zlib.crc32(body) != int.from_bytes(data[:4], "little"):
        return None
    try:
        return msgspec.json.decode(body[4:], type=Checkpoint)
    except msgspec.DecodeError:
        return None
