"""A run of one vantage on its host: a folder that outlives the connection, the worker, and a boot.

order.json      what to measure
orders          named pipe that the worker hears `Start` and `Stop` from; it never ends
said.jsonl      what the worker said
errors.txt      its standard error
journal.jsonl   the samples
lock            held by the kernel for as long as the worker lives
started         is there when `Start` has been said
attached        who tells of the run at present
ballast         room for the last words on a disk that is full
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import Message, Start, Stop, WorkOrder, encode
from pathbudget.agents.store.disk import explain_os_error
from pathbudget.agents.store.locks import is_held
from pathbudget.probes.errors import SpoolError

ORDER, ORDERS, SAID, ERRORS = "order.json", "orders", "said.jsonl", "errors.txt"
JOURNAL, LOCK, STARTED, ATTACHED, BALLAST = (
    "journal.jsonl",
    "lock",
    "started",
    "attached",
    "ballast",
)
BALLAST_BYTES = 64 << 10
LAST_LINES = 3


class RunFolder:
    """One run. Cheap to make; nothing is read or written by that."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        """Whether there is anything of it."""
        return self.path.is_dir()

    @property
    def alive(self) -> bool:
        """Whether its worker goes on."""
        try:
            return is_held(self.path / LOCK)
        except FileNotFoundError:
            return False

    def launch(self, order: WorkOrder, program: tuple[str, ...]) -> None:
        """Begin: a worker in a session of its own, which no end of a connection reaches.

        `program` is the command of the worker, the folder goes behind it. Raises SpoolError.
        """
        try:
            self.path.mkdir(parents=True, mode=0o700)
            self._launch(order, program)
        except OSError as error:
            shutil.rmtree(self.path, ignore_errors=True)
            why = explain_os_error(error)
            raise SpoolError(f"{self.path}: no run can be begun: {why}") from None

    def _launch(self, order: WorkOrder, program: tuple[str, ...]) -> None:
        folder = self.path
        (folder / BALLAST).write_bytes(b"\1" * BALLAST_BYTES)
        order = msgspec.structs.replace(order, journal=str(folder / JOURNAL))
        (folder / ORDER).write_bytes(msgspec.json.encode(order))
        os.mkfifo(folder / ORDERS, 0o600)
        with contextlib.ExitStack() as stack:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, lock)
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
            # Open for both directions, so that the worker never sees an end of it.
            orders = os.open(folder / ORDERS, os.O_RDWR)
            stack.callback(os.close, orders)
            said = stack.enter_context((folder / SAID).open("ab"))
            errors = stack.enter_context((folder / ERRORS).open("ab"))
            subprocess.Popen(  # noqa: S603
                [*program, str(folder)],
                stdin=orders,
                stdout=said,
                stderr=errors,
                pass_fds=[lock],  # held until the last who has it open is gone: the worker
                start_new_session=True,
                cwd="/",
            )

    def order(self) -> WorkOrder:
        """What was asked for."""
        return msgspec.json.decode((self.path / ORDER).read_bytes(), type=WorkOrder)

    def begin(self, start: Start) -> None:
        """Say `Start` to the worker, unless somebody has."""
        try:
            os.close(os.open(self.path / STARTED, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        self._tell(start)

    def stop(self) -> None:
        """Have the worker end."""
        self._tell(Stop())

    def _tell(self, message: Message) -> None:
        try:
            pipe = os.open(self.path / ORDERS, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody has it open: the worker is gone
            return
        try:
            os.write(pipe, encode(message))
        finally:
            os.close(pipe)

    def last_words(self) -> str:
        """What the worker left on its standard error."""
        try:
            text = (self.path / ERRORS).read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-LAST_LINES:])

    def remove(self) -> None:
        """Everything has been acknowledged."""
        shutil.rmtree(self.path, ignore_errors=True)


def runs_of(folder: Path, prefix: str) -> list[RunFolder]:
    """The runs whose names begin so, oldest first."""
    found = [one for one in folder.glob(f"{prefix}*") if one.is_dir()]
    return [RunFolder(one) for one in sorted(found, key=lambda one: one.stat().st_mtime_ns)]


def forget_unstarted(folder: Path) -> None:
    """Remove runs that ended before anything was sent: whoever wanted them never came back."""
    for one in runs_of(folder, ""):
        if not (one.path / STARTED).exists() and (one.path / LOCK).exists() and not one.alive:
            one.remove()


def this_bundle(*words: str) -> tuple[str, ...]:
    """The command that runs the bundle we run from, with other words behind it."""
    return (sys.executable, "-E", str(Path(sys.argv[0]).absolute()), *words)
