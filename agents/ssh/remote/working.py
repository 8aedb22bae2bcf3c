"""The worker of a run: that of a local campaign, with a folder in place of a controller."""

import asyncio
import errno
import os
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import Message, encode
from pathbudget.agents.campaign.worker import be_left_alone, carry_out, standard_input
from pathbudget.agents.ssh.remote.run_folder import BALLAST, RunFolder
from pathbudget.probes.scheduling import processors

START_WITHIN_S = 600.0
"""Whoever wanted it is gone when it has not said `Begin` by then."""


class Speaker:
    """Says things into a file, where nobody may be reading. On a full disk the last words still
    have room: that of the ballast.
    """

    def __init__(self, ballast: Path, output: int = 1) -> None:
        self._ballast = ballast
        self._output = output

    def __call__(self, message: Message) -> None:
        """Never raises: what cannot be told is no reason to stop measuring."""
        line = encode(message)
        try:
            self._write(line)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._write_in_place_of_the_ballast(line)

    def _write(self, line: bytes) -> None:
        written = os.write(self._output, line)
        while written < len(line):
            written += os.write(self._output, line[written:])

    def _write_in_place_of_the_ballast(self, line: bytes) -> None:
        try:
            self._ballast.unlink(missing_ok=True)
            self._write(b"\n" + line)  # a part of the line may be there already
        except OSError:
            return


def work(folder: Path) -> None:
    """Measure what the order in `folder` says."""
    be_left_alone()
    asyncio.run(_work(RunFolder(folder)))


async def _work(run: RunFolder) -> None:
    reader = await standard_input()
    speaker = Speaker(run.path / BALLAST)
    order = msgspec.structs.replace(run.order(), alone=processors() > 1)
    await carry_out(order, reader, speaker, start_within_s=START_WITHIN_S)
