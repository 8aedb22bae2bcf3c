"""Starts a responder as a process of its own, waits until it listens, ends it for sure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathbudget.agents.listening_process import ListeningProcess, as_words
from pathbudget.probes.errors import ReflectorError


class ResponderProcess(ListeningProcess):
    """A context manager: one responder runs while the block does, and no longer than its parent.

    `options` are those of the command, without dashes in front: ``{"tls-port": 8443}``. What the
    process says goes to ``responder.log`` in `folder`, which also holds its certificate.
    Raises ReflectorError, with what the process said, when it does not listen.
    """

    def __init__(
        self, folder: Path, binds: Sequence[str], options: Mapping[str, str | int | float | Path]
    ) -> None:
        words = ["--die-with-parent", "--certificate-directory", str(folder)]
        words += [word for bind in binds for word in ("--bind", bind)]
        words += as_words(options)
        super().__init__("responder", "pathbudget.agents.responder", folder, words)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return None if self.process is None else self.process.pid

    def check(self) -> None:
        """Raise ReflectorError when the responder is not running (any more)."""
        if self.process is None or self.process.poll() is not None:
            raise ReflectorError(f"the responder is not running: {self.last_words}")
