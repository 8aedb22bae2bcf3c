"""A journal comes over whole and once, wherever the connection is cut."""

import os
import random
import threading
import time
from pathlib import Path

import pytest

from pathbudget.agents.campaign.messages import Done, Ready, Report, Start, encode
from pathbudget.agents.ssh.mirror import PARTIAL, Mirror
from pathbudget.agents.ssh.remote.attaching import Attachment
from pathbudget.agents.ssh.remote.run_folder import (
    ATTACHED,
    JOURNAL,
    ORDERS,
    SAID,
    STARTED,
    RunFolder,
)
from pathbudget.agents.ssh.remote.speech import Acknowledge, Ended, Gone, Piece, from_host
from pathbudget.probes.errors import SpoolError

LINES = b"".join(b'{"in":0,"sample":%d}\n' % number for number in range(400))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run that is over; what its journal had set aside was never given back."""
    folder = tmp_path / "run"
    folder.mkdir()
    said = encode(Ready()) + encode(Report(1, 1, {}, 1)) + encode(Report(2, 2, {}, 2))
    (folder / SAID).write_bytes(said + encode(Done(Report(3, 3, {}, 3))) + b'{"type":"Rep')
    (folder / JOURNAL).write_bytes(LINES + bytes(5000))
    return RunFolder(folder)


class Connection:
    """The two pipes of one `Attachment`, which runs in a thread."""

    def __init__(self, run: RunFolder, offset: int) -> None:
        source, self.commands = os.pipe()
        self.answers, output = os.pipe()
        attachment = Attachment(run, offset, source=source, output=output)

        def work() -> None:
            try:
                attachment.run()
            except BrokenPipeError:
                pass
            finally:
                os.close(source)
                os.close(output)

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def close(self) -> None:
        os.close(self.answers)
        os.close(self.commands)
        self._thread.join()


def fetch(run: RunFolder, mirror: Mirror, most: int) -> bool:
    """Over one connection that ends after so many bytes. Whether all was acknowledged."""
    connection = Connection(run, mirror.size)
    with os.fdopen(os.dup(connection.answers), "rb", buffering=0) as answers:
        read = bytearray()

        def line() -> bytes:
            while b"\n" not in read:
                read.extend(take(1))
            found = bytes(read)
            read.clear()
            return found

        left = most

        def take(count: int) -> bytes:
            nonlocal left
            if left <= 0:
                raise EOFError
            data = answers.read(min(count, left))
            left -= len(data)
            return data

        try:
            while True:
                match from_host.decode(line()):
                    case Piece(offset=offset, length=length):
                        while length:
                            data = take(length)
                            mirror.append(offset, data)
                            offset, length = offset + len(data), length - len(data)
                    case Ended(size=size):
                        assert size == mirror.size
                        os.write(connection.commands, encode(Acknowledge(size)))
                    case Gone():
                        return True
                    case _:
                        pass
        except EOFError:
            return False
        finally:
            connection.close()


@pytest.mark.parametrize("seed", range(20))
def test_wherever_it_is_cut_each_byte_comes_once(run: RunFolder, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    path = tmp_path / "journal.jsonl"
    rounds = 0
    while True:
        mirror = Mirror(path)
        most = 10**9 if rounds > 20 else drawn.randrange(1, 4000)
        whole = fetch(run, mirror, most)
        if whole:
            mirror.finish()
        mirror.close()
        rounds += 1
        if whole:
            break
        assert run.exists
        assert path.with_name(path.name + PARTIAL).exists()
    assert path.read_bytes() == LINES
    assert not run.exists


def test_a_mirror_takes_nothing_but_the_next_bytes(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "one.jsonl")
    mirror.append(0, b"abc")
    with pytest.raises(SpoolError, match="byte 5 came after byte 3"):
        mirror.append(5, b"x")
    with pytest.raises(SpoolError):
        mirror.append(0, b"abc")
    mirror.close()


def test_start_said_twice_counts_once(run: RunFolder) -> None:
    os.mkfifo(run.path / ORDERS)
    pipe = os.open(run.path / ORDERS, os.O_RDWR | os.O_NONBLOCK)
    run.begin(Start(5))
    run.begin(Start(9))
    assert os.read(pipe, 1000) == encode(Start(5))
    assert (run.path / STARTED).exists()
    with pytest.raises(BlockingIOError):
        os.read(pipe, 1000)
    os.close(pipe)


def test_who_attaches_last_is_told(run: RunFolder) -> None:
    first = Connection(run, 0)
    while not (run.path / ATTACHED).exists() or not (run.path / ATTACHED).read_text():
        time.sleep(0.01)
    second = Connection(run, len(LINES))
    try:
        with os.fdopen(os.dup(second.answers), "rb", buffering=0) as answers:
            text = b""
            while b"Ended" not in text:
                text += answers.read(4096)
        with os.fdopen(os.dup(first.answers), "rb") as answers:
            answers.read()  # comes to its end although its other end is open
    finally:
        first.close()
        second.close()
