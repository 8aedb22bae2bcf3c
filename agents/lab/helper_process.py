"""A process that a lab needs. What it wrote on stderr is at hand when it dies."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pathbudget.agents.lab.namespaces import inside
from pathbudget.probes.errors import LabError

STOP_SECONDS = 2.0
LAST_WORDS = 2000


class HelperProcess:
    """Started in a namespace; `check` raises LabError when it is dead."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        namespace: int,
        *,
        keep: Sequence[int] = (),
        order: bytes = b"",
    ) -> None:
        """`namespace` and `keep` are descriptors; `keep` are handed on, `order` is its input.

        Raises OSError.
        """
        self.name = name
        self._errors = os.memfd_create(f"stderr of {name}", os.MFD_CLOEXEC)
        try:
            with inside(namespace), os.fdopen(_file_of(order), "rb") as given:
                self._process = subprocess.Popen(  # noqa: S603
                    command,
                    stdin=given,
                    stdout=self._errors,
                    stderr=self._errors,
                    pass_fds=keep,
                    # Ctrl-C is for the command. A session of its own is also a scheduling group of
                    # its own, where the kernel groups by session: a fairer share on a busy host.
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._errors)
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise LabError with its last words when it has ended by itself."""
        code = self._process.poll()
        if code is not None:
            raise LabError(f"{self.name} of the lab died ({_ending(code)}): {self.last_words()}")

    def wait_briefly(self) -> None:
        """Give a process that is ending the time to end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)

    def last_words(self) -> str:
        """The end of what it wrote."""
        text = Path(f"/proc/self/fd/{self._errors}").read_text(errors="replace").strip()
        return text[-LAST_WORDS:] or "it said nothing"

    def stop(self) -> None:
        """End it at once; there is nothing in it that could be lost."""
        self._process.kill()
        self._process.wait()
        os.close(self._errors)


def _file_of(octets: bytes) -> int:
    descriptor = os.memfd_create("order", os.MFD_CLOEXEC)
    os.write(descriptor, octets)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name
