"""Tells of a run: what its worker says, and its journal from some byte on, as both grow.

Whoever attaches last is the one who tells. Nothing is removed before it has been acknowledged, so
a connection may break at any byte: the next one goes on from what has arrived.
"""

import itertools
import os
import secrets
import select
import time
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import Message, Start, Stop, encode, from_worker
from pathbudget.agents.ssh.remote.run_folder import ATTACHED, JOURNAL, SAID, RunFolder
from pathbudget.agents.ssh.remote.speech import (
    Acknowledge,
    Begin,
    Ended,
    Gone,
    Piece,
    to_host,
)

LOOK_EVERY_S = 0.2
LARGEST_PIECE = 256 << 10
REPORT = b'{"type":"Report"'
DONE = b'{"type":"Done"'


class Attachment:
    """One connection's view of one run. Reads descriptor `source`, writes descriptor `output`."""

    def __init__(
        self, run: RunFolder, offset: int, *, heard: bytes = b"", source: int = 0, output: int = 1
    ) -> None:
        """`heard` is what the other end has said already, from the second line on."""
        self._run = run
        self._offset = offset
        self._source = source
        self._output = output
        self._heard = heard
        self._said_offset = 0
        self._was_done = False
        self._told_end = False
        self._token = secrets.token_hex(8)

    def run(self) -> None:
        """Until all is acknowledged, the other end is gone, or somebody else has attached."""
        mark = self._run.path / ATTACHED
        mark.write_text(self._token)
        self._obey_all()
        while self._run.exists and _text(mark) in (self._token, ""):
            # First whether it lives, then the files: what one that is gone wrote is all there.
            alive = self._run.alive
            sent = self._tell_new()
            if not alive and not sent and not self._told_end:
                self._told_end = True
                last_words = "" if self._was_done else self._run.last_words() or "was killed"
                self._say(Ended(self._offset, last_words))
            if not self._listen(0 if sent else LOOK_EVERY_S):
                return

    def _tell_new(self) -> bool:
        """Send what is new. Whether there was anything."""
        said = self._tell_said()
        return self._tell_journal() or said

    def _tell_said(self) -> bool:
        text = _bytes(self._run.path / SAID, self._said_offset)
        whole = text[: text.rfind(b"\n") + 1]
        self._said_offset += len(whole)
        lines = [line for line in whole.split(b"\n") if _is_message(line)]
        self._was_done = self._was_done or any(line.startswith(DONE) for line in lines)
        # Of several reports the last one says it all.
        for line, after in itertools.pairwise([*lines, b""]):
            if not (line.startswith(REPORT) and after.startswith(REPORT)):
                self._write(line + b"\n")
        return bool(lines)

    def _tell_journal(self) -> bool:
        # Zero bytes are room that is set aside: no line holds one.
        text = _bytes(self._run.path / JOURNAL, self._offset, LARGEST_PIECE)
        piece = text.partition(b"\0")[0]
        if not piece:
            return False
        self._write(encode(Piece(self._offset, len(piece))) + piece)
        self._offset += len(piece)
        return True

    def _listen(self, within_s: float) -> bool:
        """Do what the other end says, within that time. False when there is no more to do."""
        if not select.select([self._source], [], [], within_s)[0]:
            return True
        heard = os.read(self._source, 1 << 16)
        if not heard:
            return False
        self._heard += heard
        return self._obey_all()

    def _obey_all(self) -> bool:
        *lines, self._heard = self._heard.split(b"\n")
        return all(self._obey(line) for line in lines if line)

    def _obey(self, line: bytes) -> bool:
        match to_host.decode(line):
            case Begin(head_start_ns=head_start_ns):
                self._run.begin(Start(time.monotonic_ns() + head_start_ns))
            case Stop():
                self._run.stop()
            case Acknowledge(size=size) if self._told_end and size == self._offset:
                self._run.remove()
                self._say(Gone())
                return False
            case _:
                pass
        return True

    def _say(self, message: Message) -> None:
        self._write(encode(message))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._output, data) :]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _bytes(path: Path, offset: int, most: int = -1) -> bytes:
    """What stands in a file from `offset` on; nothing where the worker has not made it yet."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(most)
    except FileNotFoundError:
        return b""


def _is_message(line: bytes) -> bool:
    """Not so what a full disk has left of one."""
    try:
        from_worker(line)
    except msgspec.DecodeError:
        return False
    return True
