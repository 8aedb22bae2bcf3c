"""Where the receiver keeps what it was sent: whole requests, as they came.

JSON requests are lines of ``traces-*.jsonl``, protobuf ones stand behind their length in 4 bytes in
``traces-*.otlp``: both as the collector's file exporter writes them. A request is on the disk
before it is acknowledged. Files are begun anew at a size, and at every start, so that what a crash
has cut off is the end of a file and of no acknowledged request.
"""

import contextlib
import os
import time
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import msgspec

from pathbudget.agents.telemetry.receive_answers import Encoding
from pathbudget.probes.errors import StoreError

ENDINGS = {Encoding.JSON: ".jsonl", Encoding.PROTOBUF: ".otlp"}


class FullError(Exception):
    """There is no room for the request; nothing of it is kept."""


@dataclass(slots=True)
class _File:
    file: FileIO
    path: Path
    size: int = 0


class TraceFiles:
    """Files in one folder, for one writer. Raises StoreError where it cannot be written to."""

    def __init__(self, folder: Path, most_bytes: int, file_bytes: int) -> None:
        self._folder = folder
        self._most = most_bytes
        self._file_bytes = file_bytes
        self._open: dict[Encoding, _File] = {}
        self._count = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.used = sum(path.stat().st_size for path in folder.glob("traces-*"))
        except OSError as error:
            raise StoreError(f"{folder}: cannot be written to: {error.strerror}") from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StoreError(f"{folder}: cannot be written to: no permission")

    def append(self, encoding: Encoding, body: bytes) -> None:
        """Keep one request; it is on the disk when this returns. Raises FullError."""
        record = _record(encoding, body)
        if self.used + len(record) > self._most:
            raise FullError(f"{self._folder} holds {self.used} bytes; at most {self._most}")
        try:
            self._append(encoding, record)
        except OSError as error:
            self._undo(encoding)
            raise FullError(f"{self._folder}: {error.strerror}") from error
        self.used += len(record)

    def close(self) -> None:
        """Nothing is left to be written."""
        for one in self._open.values():
            one.file.close()
        self._open.clear()

    def _append(self, encoding: Encoding, record: bytes) -> None:
        one = self._open.get(encoding)
        if one is None or one.size >= self._file_bytes:
            one = self._begin(encoding)
        left = memoryview(record)
        while left:
            left = left[one.file.write(left) or 0 :]
        os.fsync(one.file.fileno())
        one.size += len(record)

    def _begin(self, encoding: Encoding) -> _File:
        old = self._open.pop(encoding, None)
        if old is not None:
            old.file.close()
        self._count += 1
        began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        name = f"traces-{began}-{os.getpid()}-{self._count:04d}{ENDINGS[encoding]}"
        path = self._folder / name
        one = self._open[encoding] = _File(path.open("xb", buffering=0), path)
        _sync_folder(self._folder)
        return one

    def _undo(self, encoding: Encoding) -> None:
        """Take back what was written in part; where even that fails, a new file is begun."""
        one = self._open.get(encoding)
        if one is None:
            return
        try:
            one.file.truncate(one.size)
            one.file.seek(one.size)
        except OSError:
            self._open.pop(encoding)
            with contextlib.suppress(OSError):
                one.file.close()


def _record(encoding: Encoding, body: bytes) -> bytes:
    if encoding is Encoding.PROTOBUF:
        return len(body).to_bytes(4, "big") + body
    line = body.strip()
    return (msgspec.json.format(line, indent=-1) if b"\n" in line else line) + b"\n"


def _sync_folder(folder: Path) -> None:
    """The name of a new file survives a crash only with its folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
