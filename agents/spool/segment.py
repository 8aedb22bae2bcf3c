"""One file of a spool: frames in the order of their numbers, appended at the end, never moved.

Of each frame 13 bytes are kept in memory: where it stands, its number, its samples, its state.
"""

import contextlib
import os
import struct
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pathbudget.agents.spool.frames import (
    ACKNOWLEDGED,
    AGED,
    HEADER_BYTES,
    STATE_AT,
    WAITING,
    Frame,
    Gap,
    header_at,
    is_whole,
    walk,
)

ENDING = ".segment"
_HEAD = struct.Struct("<8sQQI")
"""Magic, number of its first frame, samples of all frames before it, checksum."""
HEAD_BYTES = _HEAD.size
_MAGIC = b"pbspool1"
AGE, TORN = "age", "torn"


class Torn(NamedTuple):
    """What was found damaged: where, its header if that was whole, its id if that is all there."""

    place: str
    frame: Frame | None = None
    name: str = ""


class Segment:
    """Use `create` or `load`. Methods that write raise OSError, and nothing has changed then."""

    def __init__(self, path: Path, descriptor: int, first: int, written_before: int) -> None:
        self.path = path
        self.first = first
        self.written_before = written_before
        self.written_after = written_before
        """Samples of all frames of the spool up to its end."""
        self.size = HEAD_BYTES
        self.last = first - 1
        self.waiting_entries = self.waiting_bytes = self.waiting_samples = 0
        self.acknowledged_samples = 0
        self.dropped_samples = Counter[str]()
        self.torn: list[Torn] = []
        self.head_is_damaged = False
        self.spool_ns = self.unix_ns = 0
        """Clock of the spool and wall clock at its last frame."""
        self._descriptor = descriptor
        self._numbers, self._offsets, self._samples = array("I"), array("I"), array("I")
        self._states = bytearray()

    @classmethod
    def create(cls, folder: Path, first: int, written_before: int) -> "Segment":
        """A new file with its head written."""
        path = folder / f"{first:020}{ENDING}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write_all(descriptor, _head_of(first, written_before), 0)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return cls(path, descriptor, first, written_before)

    @classmethod
    def load(cls, path: Path, above: int, written_before: int) -> "Segment":
        """What is whole of a file whose numbers are higher than `above`; nothing is changed.

        `written_before` counts where the head of the file is damaged.
        """
        data = path.read_bytes()
        head = _head(data)
        first, before = head or (int(path.name.partition(".")[0]), written_before)
        segment = cls(path, os.open(path, os.O_RDWR), first, before)
        if head is None:
            segment.head_is_damaged = True
            segment.torn.append(Torn(f"{path.name}: its head"))
        for found in walk(data, HEAD_BYTES if head else 0, max(above, first - 1)):
            if isinstance(found, Gap):
                place = f"{path.name}: bytes {found.begin} to {found.end}"
                segment.torn.append(Torn(place, found.torn, _name(data, found.torn)))
            else:
                segment._take(found)
        return segment

    def _take(self, frame: Frame) -> None:
        """Note a frame that is in the file."""
        lost = frame.written_before - self.written_after
        if lost > 0:
            self.dropped_samples[TORN] += lost
        self._numbers.append(frame.number - self.first)
        self._offsets.append(frame.offset)
        self._samples.append(frame.samples)
        self.last, self.size = frame.number, frame.offset + frame.length
        self.written_after = frame.written_before + frame.samples
        self.spool_ns, self.unix_ns = frame.spool_ns, frame.unix_ns
        state = frame.state if frame.state in (ACKNOWLEDGED, AGED) else WAITING
        self._states += state
        if state == WAITING:
            self._wait(len(self._states) - 1, 1)
        elif state == ACKNOWLEDGED:
            self.acknowledged_samples += frame.samples
        else:
            self.dropped_samples[AGE] += frame.samples

    def _wait(self, index: int, sign: int) -> None:
        self.waiting_entries += sign
        self.waiting_bytes += sign * self._span(index)
        self.waiting_samples += sign * self._samples[index]

    def _span(self, index: int) -> int:
        following = index + 1
        end = self._offsets[following] if following < len(self._offsets) else self.size
        return end - self._offsets[index]

    def lose(self, samples: int) -> None:
        """Samples that were written after its last whole frame are not there any more."""
        self.written_after += samples
        if samples:
            self.dropped_samples[TORN] += samples

    def cut(self) -> None:
        """Take away what follows the last whole frame, so that frames can follow."""
        os.ftruncate(self._descriptor, self.size)
        if self.head_is_damaged:
            _write_all(self._descriptor, _head_of(self.first, self.written_before), 0)
            self.head_is_damaged = False

    def append(self, data: bytes) -> None:
        """Add a frame at the end."""
        try:
            _write_all(self._descriptor, data, self.size)
        except OSError:
            with contextlib.suppress(OSError):
                self.cut()
            raise
        frame = header_at(data, 0)
        assert frame is not None
        self._take(frame._replace(offset=self.size))

    def waiting(self, after: int) -> Iterator[int]:
        """Places of the frames that wait and whose number is higher than `after`."""
        index = bisect_left(self._numbers, max(0, after + 1 - self.first))
        while (index := self._states.find(WAITING, index)) >= 0:
            yield index
            index += 1

    def read(self, index: int) -> tuple[Frame, str, bytes] | None:
        """Frame, id and payload; None where the disk does not give them back as they were."""
        data = self._bytes(self._offsets[index], self._span(index))
        frame = header_at(data, 0)
        if frame is None or not is_whole(data, frame):
            return None
        body = HEADER_BYTES + frame.id_length
        name = data[HEADER_BYTES:body].decode(errors="replace")
        return frame, name, data[body : frame.length]

    def header(self, index: int) -> Frame | None:
        """The header alone."""
        return header_at(self._bytes(self._offsets[index], HEADER_BYTES), 0)

    def name(self, index: int) -> str:
        """The id alone."""
        frame = self.header(index)
        if frame is None:
            return ""
        place = self._offsets[index] + HEADER_BYTES
        return self._bytes(place, frame.id_length).decode(errors="replace")

    def _bytes(self, offset: int, length: int) -> bytes:
        """What the disk gives; nothing where it reports an error."""
        with contextlib.suppress(OSError):
            return os.pread(self._descriptor, length, offset)
        return b""

    def names(self) -> Iterator[str]:
        """The ids of all its frames, whatever became of them."""
        return (self.name(index) for index in range(len(self._states)))

    def find(self, number: int) -> int | None:
        """The place of a frame that waits."""
        index = bisect_left(self._numbers, number - self.first)
        if index < len(self._numbers) and self._numbers[index] == number - self.first:
            return index if self._states[index] == WAITING[0] else None
        return None

    def settle(self, index: int, state: bytes, reason: str = "") -> None:
        """A frame waits no more: acknowledged, or dropped for `reason`."""
        self._wait(index, -1)
        self._states[index : index + 1] = state
        if state == ACKNOWLEDGED:
            self.acknowledged_samples += self._samples[index]
        else:
            self.dropped_samples[reason] += self._samples[index]
        with contextlib.suppress(OSError):  # then it is sent again after a restart
            os.pwrite(self._descriptor, state, self._offsets[index] + STATE_AT)

    def duplicate(self) -> int:
        """Another descriptor of the file, for a thread that waits for the disk."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Let go of the file. Twice does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _head_of(first: int, written_before: int) -> bytes:
    head = struct.pack("<8sQQ", _MAGIC, first, written_before)
    return head + zlib.crc32(head).to_bytes(4, "little")


def _head(data: bytes) -> tuple[int, int] | None:
    if len(data) < HEAD_BYTES:
        return None
    magic, first, written, checksum = _HEAD.unpack(data[:HEAD_BYTES])
    if magic != _MAGIC or checksum != zlib.crc32(data[: HEAD_BYTES - 4]):
        return None
    return first, written


def _name(data: bytes, frame: Frame | None) -> str:
    if frame is None:
        return ""
    name = data[frame.offset + HEADER_BYTES :][: frame.id_length]
    return name.decode(errors="replace") if len(name) == frame.id_length else ""


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    written = os.pwrite(descriptor, data, offset)
    while written < len(data):  # the disk took a part; the next call says why
        written += os.pwrite(descriptor, data[written:], offset + written)
