"""Starts a reflector as a process of its own, waits until it listens, ends it for sure.

with ReflectorProcess(folder, ["127.0.0.1"], {"https-port": 8621}) as running:
    ...  # clients trust folder / "ca.pem"
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathbudget.agents.listening_process import ListeningProcess, as_words


class ReflectorProcess(ListeningProcess):
    """A context manager: one reflector runs while the block does.

    `options` are those of the command, without dashes in front; True is a word without a value.
    What the process says goes to ``reflector.log`` in `folder`, which also holds its certificate.
    Raises ReflectorError, with what the process said, when it does not listen.
    """

    def __init__(
        self,
        folder: Path,
        addresses: Sequence[str],
        options: Mapping[str, str | int | float | Path | bool] | None = None,
    ) -> None:
        options = options or {}
        words = [word for address in addresses for word in ("--listen", address)]
        if "certificate" not in options:
            words += ["--certificate-directory", str(folder)]
        words += as_words(options)
        super().__init__("reflector", "pathbudget.agents.reflector", folder, words)
        self._folder = folder

    @property
    def authority(self) -> Path:
        """The file that clients trust."""
        return self._folder / "ca.pem"
