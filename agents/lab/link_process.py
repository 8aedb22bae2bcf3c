"""The lab's side of the emulator process: start it, ask it, change links, end it."""

import contextlib
import socket
import sys

from pathbudget.agents.lab.control import (
    Answer,
    Change,
    LineSocket,
    Mute,
    Question,
    Setup,
)
from pathbudget.agents.lab.fabric import Fabric
from pathbudget.agents.lab.helper_process import HelperProcess
from pathbudget.agents.lab.hop_setup import hop_setups
from pathbudget.agents.lab.hop_work import HopSetup
from pathbudget.agents.lab.report import LabReport
from pathbudget.probes.errors import LabError

ANSWER_SECONDS = 30.0


class LinkProcess:
    """The running emulator of one fabric. Every method raises LabError when it is dead."""

    def __init__(self, fabric: Fabric, *, real_time: bool = True) -> None:
        own, other = socket.socketpair()
        own.settimeout(ANSWER_SECONDS)
        self._control = LineSocket(own)
        with other:
            self.process = HelperProcess(
                "the link emulator",
                [sys.executable, "-m", "pathbudget.agents.lab.emulator", str(other.fileno())],
                fabric.emulator.descriptor,
                keep=[other.fileno()],
            )
        try:
            hops = hop_setups(fabric.world)
            self._say(Setup(tuple(fabric.directions), real_time, hops).encode())
        except BaseException:
            self.close()
            raise

    def report(self) -> LabReport:
        """What it says about itself now."""
        return self._say(Question().encode())

    def change(self, change: Change) -> None:
        """Give one direction another model; in force when this returns."""
        self._say(Question(change).encode())

    def treat(self, hop: HopSetup) -> None:
        """Have a router treat packets in another way from now on."""
        self._say(Question(hop=hop).encode())

    def mute(self, mute: Mute) -> None:
        """Lose the packets of one TCP session, or no longer."""
        self._say(Question(mute=mute).encode())

    def close(self) -> None:
        """End the process."""
        self._control.socket.close()
        self.process.stop()

    def _say(self, line: bytes) -> LabReport:
        try:
            self._control.send(line)
            return Answer.decode(self._control.line()).report
        except (OSError, LabError) as error:
            with contextlib.suppress(OSError):
                self._control.socket.shutdown(socket.SHUT_RDWR)
            self.process.wait_briefly()
            self.process.check()
            raise LabError(f"the link emulator does not answer: {error}") from None
