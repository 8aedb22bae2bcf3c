"""Split a stream of bytes into JSON values, a block of them at a time, in flat memory.

Three forms are told apart by the beginning of the text:

    lines    one value a line (JSON lines; blank lines are allowed)
    array    ``[value, value, ...]``, over any number of lines
    values   values one after the other, each over any number of lines (pretty-printed)

A value that is no JSON does not hide its neighbours: in `lines` the next line is the next value, in
the other forms brackets are counted outside strings, and after a value that never ends the search
goes on at the next object that begins with the same key as the first one of the file.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

BLOCK = 32 * 1024
"""Bytes of values that are handed on together."""
LONGEST = 1024 * 1024
"""A value longer than this is given up."""
_LONGEST_ANCHOR = 256
_MOST_KEYS = 16
_TRIES = 4
_MOST_BRACKETS = 1_000_000
"""Looked at beyond one for each byte; then the search behind a broken value goes on in leaps."""
_LONGEST_SEAM = 256

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_NO_BRACKETS = rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+'
_NEXT_BRACKET = re.compile(rb"(" + _NO_BRACKETS + rb")([{}\[\]])", re.DOTALL)
_SCALAR = re.compile(_STRING + rb"|[^\s,]+", re.DOTALL)
_FIRST_KEY = re.compile(rb'\s*\[?\s*\{\s*("[^"\\]{0,100}")')


_GAP = re.compile(rb"[\s,]*+")
_SEAM = re.compile(rb"\}\s*,\s*\{\s*\Z")

_decode_raw = msgspec.json.Decoder(msgspec.Raw).decode
_decode_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Piece(NamedTuple):
    """One value: where it stands (``line 7``, ``result 7``), its byte offset, its bytes."""

    where: str
    offset: int
    raw: bytes


class Block(Protocol):
    """Some values in a row. `text` holds all of them with a newline between each two."""

    @property
    def text(self) -> bytes:
        """All of them, in the form that `msgspec.json.Decoder.decode_lines` takes."""
        ...

    @property
    def count(self) -> int:
        """How many values `text` has if none of them is blank."""
        ...

    def pieces(self) -> Iterator[Piece]:
        """Each of them with its place."""
        ...


@dataclass(slots=True)
class LineBlock:
    """Whole lines, without the last newline; `count` of them, blank ones included."""

    text: bytes
    count: int
    first_line: int
    offset: int

    def pieces(self) -> Iterator[Piece]:
        """Each line that is not blank."""
        offset = self.offset
        for number, line in enumerate(self.text.split(b"\n"), self.first_line):
            if raw := line.strip():
                yield Piece(f"line {number}", offset, raw)
            offset += len(line) + 1


@dataclass(slots=True)
class ValueBlock:
    """Values with their offsets."""

    first: int
    values: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    size: int = 0

    @property
    def text(self) -> bytes:
        """The values, a newline between each two."""
        return b"\n".join([raw for _, raw in self.values])

    @property
    def count(self) -> int:
        """Values."""
        return len(self.values)

    def pieces(self) -> Iterator[Piece]:
        """Each value."""
        for number, (offset, raw) in enumerate(self.values, self.first):
            yield Piece(f"result {number}", offset, raw)


def split(chunks: Iterator[bytes], on_damage: Callable[[str], None]) -> Iterator[Block]:
    """Blocks of values of the text in `chunks`.

    `on_damage` is told in a sentence when an array is not closed. What `chunks` raises passes
    through after all complete values before it were handed on.
    """
    head = b""
    source = _Kept(chunks)
    while len(head) < BLOCK and (chunk := source.next()):
        head += chunk
    source.put_back(head)
    if _is_lines(head.lstrip()):
        yield from _line_blocks(source)
    else:
        yield from _Values(head).blocks(source, on_damage)
    if source.error is not None:
        raise source.error


class _Kept:
    """Chunks with one of them put back; an error at their end is kept for later."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._back = b""
        self.error: Exception | None = None

    def put_back(self, chunk: bytes) -> None:
        self._back = chunk

    def next(self) -> bytes:
        """The next chunk; empty at the end."""
        if self._back:
            chunk, self._back = self._back, b""
            return chunk
        if self.error is not None:
            return b""
        try:
            return next(self._chunks, b"")
        except Exception as error:  # noqa: BLE001 - raised again by `split` after the last value
            self.error = error
            return b""


def _is_lines(head: bytes) -> bool:
    """Whether a text that begins like this has one value a line."""
    if not head.startswith(b"{"):
        return not head.startswith(b"[")
    line, _, rest = head.partition(b"\n")
    return _is_json(line) or (line.strip() != b"{" and rest.lstrip().startswith(b"{"))


def _is_json(text: bytes) -> bool:
    try:
        _decode_raw(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _line_blocks(source: _Kept) -> Iterator[Block]:
    rest, offset, number, cut = b"", 0, 1, False
    while chunk := source.next():
        data = rest + chunk
        start = 0
        while (end := _end_of_lines(data, start)) >= 0:
            count = _newlines(data, start, end) + 1
            if not cut:
                yield LineBlock(data[start:end], count, number, offset + start)
            cut = False
            number += count
            start = end + 1
        rest, offset = data[start:], offset + start
        if len(rest) > LONGEST:
            if not cut:
                yield LineBlock(rest, 1, number, offset)
            rest, offset, cut = b"", offset + len(rest), True
    if rest.strip() and not cut:
        yield LineBlock(rest, _newlines(rest, 0, len(rest)) + 1, number, offset)


def _newlines(data: bytes, start: int, end: int) -> int:
    """How many there are between `start` and `end`; on long lines quicker than `bytes.count`."""
    find = data.find
    count = 0
    while (start := find(b"\n", start, end) + 1) > 0:
        count += 1
    return count


def _end_of_lines(data: bytes, start: int) -> int:
    """Index of the newline that ends the block which begins at `start`; -1 if it is not there."""
    end = data.rfind(b"\n", start, start + BLOCK)
    return end if end >= 0 else data.find(b"\n", start + BLOCK)


def _end_of_gap(data: bytes, start: int) -> int:
    """Where the next value begins."""
    gap = _GAP.match(data, start)
    return start if gap is None else gap.end()


class _Values:
    """Finds where values begin and end: by counting brackets outside strings, or by leaps."""

    def __init__(self, head: bytes) -> None:
        self._keys: set[bytes] = set()
        """First keys of the objects so far."""
        self._anchor = re.compile(rb"\{")
        self._learn(head)
        self._no_leap_before = 0
        self._data = b""
        self._base = 0
        """Offset of `_data` in the text."""
        self._start = -1
        """Where the value under way begins in `_data`; -1 between values."""
        self._at = 0
        """Up to where brackets are counted."""
        self._depth = 0
        self._in_array = False
        self._lost = False
        """After a broken value: only an object with the first key, and a probe in it, counts."""
        self._brackets = 0
        """How many have been looked at, every time anew."""
        self._leaps = 0
        self._block = ValueBlock(1)

    def blocks(self, source: _Kept, on_damage: Callable[[str], None]) -> Iterator[Block]:
        while chunk := source.next():
            self._data += chunk
            self._scan()
            while len(self._data) - (self._at if self._start < 0 else self._start) > LONGEST:
                self._give_up()
                self._scan()
            if self._block.size >= BLOCK:
                yield self._take()
            self._forget()
        while self._start >= 0:
            self._give_up()
            self._scan()
        self._scalars(self._data[self._at :], self._base + self._at)
        if self._block.values:
            yield self._take()
        if self._in_array and not self._lost:
            on_damage("the array is not closed: the file is cut off")

    def _scan(self) -> None:
        """Count brackets as far as the data goes."""
        data = self._data
        self._leap()
        while (match := self._next_bracket()) is not None:
            self._at = match.end()
            self._brackets += 1
            bracket = match.group(2)
            if self._start < 0:
                self._between(match.group(1), match.start(), bracket)
            elif bracket in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    self._add(data[self._start : self._at])
                    self._leap()

    def _learn(self, text: bytes) -> None:
        """Take note of how `text`, an object, begins: others will begin so."""
        match = _FIRST_KEY.match(text)
        if match is None or match.group(1) in self._keys or len(self._keys) >= _MOST_KEYS:
            return
        self._keys.add(match.group(1))
        keys = b"|".join(map(re.escape, sorted(self._keys)))
        self._anchor = re.compile(rb"\{\s*(?:" + keys + rb")")

    def _leap(self) -> None:
        """Take many values of an array at once.

        The text from the beginning of a value to a likely seam is decoded as an array. If that
        works, the seam is one: no beginning of a value is itself a whole value.
        """
        while self._in_array and not self._lost and self._start < 0:
            at = _end_of_gap(self._data, self._at)
            if self._base + at < self._no_leap_before:
                return
            end = self._likely_end(at)
            if end < 0 or not self._take_all(at, end):
                self._no_leap_before = self._base + at + BLOCK
                return
            self._at = _end_of_gap(self._data, end)

    def _likely_end(self, start: int) -> int:
        """Behind the last value of the block that begins at `start`; -1 if it does not show."""
        data, best = self._data, -1
        for key in self._keys:
            end = start + BLOCK
            for _ in range(_TRIES):
                end = data.rfind(key, max(start, best), end)
                if end < 0:
                    break
                if seam := _SEAM.search(data, max(start, end - _LONGEST_SEAM), end):
                    best = max(best, seam.start() + 1)
                    break
        return best

    def _take_all(self, start: int, end: int) -> bool:
        """Keep all values between `start` and `end`, if these are whole values."""
        text = self._data[start:end]
        try:
            raws = _decode_raws(b"[" + text + b"]")
        except (msgspec.DecodeError, RecursionError):
            return False
        at = 0
        for raw in map(bytes, raws):
            self._keep(self._base + start + at, raw)
            at = _end_of_gap(text, at + len(raw))
        return True

    def _next_bracket(self) -> re.Match[bytes] | None:
        if self._lost and self._start < 0:
            anchor = self._anchor.search(self._data, self._at)
            if anchor is None:
                self._at = max(self._at, len(self._data) - _LONGEST_ANCHOR)
                return None
            self._at = anchor.start()
        return _NEXT_BRACKET.match(self._data, self._at)

    def _between(self, text: bytes, start: int, bracket: bytes) -> None:
        """A bracket outside every value, with the text before it."""
        self._scalars(text, self._base + start)
        if bracket == b"]" and self._in_array:
            self._in_array = False
        elif bracket == b"[" and not self._in_array and not self._lost:
            self._in_array = True
        elif bracket in b"{[":
            self._start, self._depth = self._at - 1, 1
        else:
            self._keep(self._base + self._at - 1, bracket)

    def _scalars(self, text: bytes, offset: int) -> None:
        for match in _SCALAR.finditer(text):
            self._keep(offset + match.start(), match.group())

    def _add(self, raw: bytes) -> None:
        """The value under way ends here, if the brackets are to be believed."""
        if not _is_json(raw):
            self._give_up()
            return
        offset, self._start = self._base + self._start, -1
        if not self._lost or b'"prb_id"' in raw:
            self._lost = False
            self._learn(raw)
            self._keep(offset, raw)

    def _give_up(self) -> None:
        """The value under way is broken: name it once, go on at the next likely beginning."""
        start = self._at if self._start < 0 else self._start
        following = self._anchor.search(self._data, start + self._stride())
        end = len(self._data) if following is None else following.start()
        self._keep(self._base + start, self._data[start:end])
        self._start, self._at, self._lost = -1, end, True

    def _stride(self) -> int:
        """How far behind the beginning of a broken value the next beginning is looked for.

        The text inside has been looked at before. Where that happens too often, strides grow, so
        that brackets which are never closed cannot make the work grow faster than the text.
        """
        allowed = _MOST_BRACKETS + self._base + len(self._data)
        self._leaps = min(self._leaps + 1, 10) if self._brackets > allowed else 0
        return 1 << 2 * self._leaps

    def _keep(self, offset: int, raw: bytes) -> None:
        if not self._lost:
            self._block.values.append((offset, raw))
            self._block.size += len(raw)

    def _take(self) -> ValueBlock:
        block = self._block
        self._block = ValueBlock(block.first + len(block.values))
        return block

    def _forget(self) -> None:
        keep = self._start if self._start >= 0 else self._at
        self._data = self._data[keep:]
        self._base += keep
        self._at -= keep
        self._start = min(self._start, 0)
