"""Lines out to standard output, through a thread that never holds up the measuring or its end.

A reader who is slow is waited for at the end; one who stands still is not once somebody asked for
the end, and one who has gone ends the run.
"""

import asyncio
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

WAITING_LINES = 100_000
"""While so many wait for their reader no sample is added; the lines say how many are missing."""
STANDS_STILL_S = 2.0
"""A reader who has taken nothing for so long is not waited for any longer."""
PIECE_OCTETS = 4_096
"""A pipe that is ready takes so much without waiting (PIPE_BUF)."""
READY_MS = 100


class LineWriter:
    """`broken` is called, in the thread, once the reader of `output` has gone; `missing` makes the
    line that says how many are missing.
    """

    def __init__(
        self,
        output: BinaryIO,
        broken: Callable[[], None],
        missing: Callable[[int], bytes],
        *,
        most_waiting: int = WAITING_LINES,
    ) -> None:
        self.error: OSError | None = None
        """Why nothing more can be written."""
        self.dropped = 0
        """Samples in all that no reader took in time."""
        self._output = output
        self._descriptor = _descriptor(output)
        self._broken = broken
        self._missing_line = missing
        self._most_waiting = most_waiting
        self._lines: deque[bytes] = deque()
        self._missing = 0
        self._filled = threading.Event()
        self._closing = False
        self._given_up = False
        self._moved_s = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="lines out", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Hand one line over; it is kept."""
        if self.error is None:
            self._tell_missing()
            self._lines.append(line)
            self._filled.set()

    def write_sample(self, line: bytes) -> None:
        """Hand one line over, of which there are many: memory is bounded."""
        if len(self._lines) < self._most_waiting:
            self.write(line)
        else:
            self._missing += 1
            self.dropped += 1

    async def close(self, wanted: Callable[[], bool]) -> None:
        """Write what is left. Raises OSError where that was not possible: BrokenPipeError where the
        reader has gone, or stands still while somebody has `wanted` the end.
        """
        self._tell_missing()
        self._closing = True
        self._filled.set()
        while self._thread.is_alive():
            if wanted() and time.monotonic() - self._moved_s > STANDS_STILL_S:
                self._given_up = True
                raise BrokenPipeError("the reader stands still")
            await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error

    def _tell_missing(self) -> None:
        if self._missing:
            missing, self._missing = self._missing, 0
            self._lines.append(self._missing_line(missing))

    def _work(self) -> None:
        try:
            while self._wait():
                self._moved_s = time.monotonic()
                batch = [self._lines.popleft() for _ in range(min(1_000, len(self._lines)))]
                self._put_out(memoryview(b"".join(batch)))
        except OSError as error:
            self.error = error
            self._lines.clear()
            self._broken()

    def _wait(self) -> bool:
        """Until there is something; false when there will be nothing more."""
        while not self._lines and not self._given_up:
            if self._closing:
                return False
            self._filled.clear()
            if not self._lines and not self._closing:
                self._filled.wait()
        return not self._given_up

    def _put_out(self, data: memoryview) -> None:
        if self._descriptor is None:
            self._output.write(data)
            return
        ready = select.poll()
        ready.register(self._descriptor, select.POLLOUT)
        while data and not self._given_up:
            if ready.poll(READY_MS):
                data = data[os.write(self._descriptor, data[:PIECE_OCTETS]) :]
                self._moved_s = time.monotonic()


def _descriptor(output: BinaryIO) -> int | None:
    """None for what is no file of the operating system; that never waits."""
    try:
        return output.fileno()
    except OSError:
        return None
