"""Lines to readers who are slow, stand still or go: the measuring and its end never wait."""

import asyncio
import os
import time
from typing import BinaryIO

import pytest

from pathbudget.agents.ping.line_writer import STANDS_STILL_S, LineWriter


class Pipe:
    """A reader's end, and a writer on the other."""

    def __init__(self, most_waiting: int = 100_000) -> None:
        self.reading, writing = os.pipe()
        self.file: BinaryIO = os.fdopen(writing, "wb", 0)
        self.broken = 0
        self.writer = LineWriter(
            self.file, self._broken, lambda n: b"missing %d\n" % n, most_waiting=most_waiting
        )

    def _broken(self) -> None:
        self.broken += 1

    def read_all(self) -> bytes:
        self.file.close()
        with os.fdopen(self.reading, "rb") as rest:
            return rest.read()


def test_every_line_arrives_in_order() -> None:
    pipe = Pipe()
    lines = [b"%d\n" % n for n in range(5_000)]
    for line in lines:
        pipe.writer.write_sample(line)
    asyncio.run(pipe.writer.close(lambda: True))
    assert pipe.read_all() == b"".join(lines)


def test_a_reader_who_stands_still_does_not_hold_up_the_end() -> None:
    pipe = Pipe()
    for _ in range(100):
        pipe.writer.write(b"x" * 10_000 + b"\n")
    began = time.monotonic()
    with pytest.raises(BrokenPipeError):
        asyncio.run(pipe.writer.close(lambda: True))
    assert time.monotonic() - began < STANDS_STILL_S + 20
    assert pipe.read_all().startswith(b"xxx")


def test_without_a_signal_a_slow_reader_gets_every_line() -> None:
    pipe = Pipe()
    for _ in range(100):
        pipe.writer.write(b"x" * 10_000 + b"\n")

    async def both() -> int:
        closing = asyncio.create_task(pipe.writer.close(lambda: False))
        await asyncio.sleep(0.2)
        assert not closing.done()
        got = 0
        while not closing.done():
            got += len(await asyncio.to_thread(os.read, pipe.reading, 65_536))
            await asyncio.sleep(0)
            if got >= 100 * 10_001:
                await closing
        return got

    got = asyncio.run(both())
    assert got + len(pipe.read_all()) == 100 * 10_001


def test_memory_is_bounded_and_what_is_missing_is_told() -> None:
    pipe = Pipe(most_waiting=10)
    blocking = b"x" * 1_000_000 + b"\n"
    pipe.writer.write(blocking)
    time.sleep(0.05)
    for _ in range(50):
        pipe.writer.write_sample(b"sample\n")
    pipe.writer.write(b"outage\n")
    assert pipe.writer.dropped >= 39

    async def both() -> bytes:
        closing = asyncio.create_task(pipe.writer.close(lambda: False))
        got = b""
        while not got.endswith(b"outage\n"):
            got += await asyncio.to_thread(os.read, pipe.reading, 65_536)
        await closing
        return got

    *samples, missing, outage = asyncio.run(both()).splitlines()[1:]
    assert set(samples) == {b"sample"}
    assert outage == b"outage"
    assert missing == b"missing %d" % pipe.writer.dropped
    assert len(samples) + pipe.writer.dropped == 50
    pipe.read_all()


def test_a_reader_who_has_gone_is_told_at_once() -> None:
    pipe = Pipe()
    os.close(pipe.reading)
    pipe.writer.write(b"line\n")
    with pytest.raises(BrokenPipeError):
        asyncio.run(pipe.writer.close(lambda: False))
    assert pipe.broken == 1
    pipe.file.close()
