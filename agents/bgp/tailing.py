"""A file that grows: what is in it, then what is added, also after it was replaced."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from pathbudget.agents.bgp.hearing import Listener
from pathbudget.agents.store.disk import explain_os_error

CHUNK = 1 << 16
LOOK_S = 0.25


async def follow(path: Path, feed: str, listener: Listener) -> AsyncIterator[tuple[bytes, bool]]:
    """Chunks, each with whether it begins a new file (rotated or cut to nothing). Never ends.

    A file that is not there is waited for.
    """
    file: BinaryIO | None = None
    missing = fresh = False
    try:
        while True:
            if file is None:
                file = _open(path, feed, listener, told=missing)
                missing = file is None
                fresh = True
            chunk = file.read(CHUNK) if file is not None else b""
            if chunk:
                yield chunk, fresh
                fresh = False
                await asyncio.sleep(0)
                continue
            if file is not None and _replaced(path, file):
                file.close()
                file = None
                continue
            await asyncio.sleep(LOOK_S)
    finally:
        if file is not None:
            file.close()


def _open(path: Path, feed: str, listener: Listener, *, told: bool) -> BinaryIO | None:
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        if not told:
            listener.lost(feed, f"{path}: {explain_os_error(error)}")
        return None
    listener.connected(feed, f"reading {path}")
    return file


def _replaced(path: Path, file: BinaryIO) -> bool:
    """Whether another file has the name now, or this one was cut."""
    try:
        there = path.stat()
    except OSError:
        return False  # it may come back; until then the old one can still grow
    ours = os.fstat(file.fileno())
    return (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev) or ours.st_size < file.tell()
