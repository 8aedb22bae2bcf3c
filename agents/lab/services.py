"""What answers at the sites beside the kernel: one responder per site, TLS 1.3 and TCP."""

import os
import select
import sys
import time

from pathbudget.agents.lab.fabric import Fabric, NodeSpace
from pathbudget.agents.lab.helper_process import HelperProcess
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.probes.errors import LabError
from pathbudget.probes.record import AddressFamily

READY_SECONDS = 30.0
TLS_PORT = 8443
TCP_PORT = 8080


class Services:
    """All responders of a lab. They start together; `wait` returns when all of them listen."""

    def __init__(self, fabric: Fabric, folder: str, command: tuple[str, ...] = ()) -> None:
        """`folder` is for the certificates; `command` replaces the responder (tests)."""
        self.processes: list[HelperProcess] = []
        self._waiting: list[tuple[int, HelperProcess]] = []
        self._command = command or (sys.executable, "-m", "pathbudget.agents.responder")
        self._fabric = fabric
        try:
            for space in fabric.spaces.values():
                if space.node.kind is NodeKind.SITE and space.node.responder:
                    self._start(space, folder)
        except BaseException:
            self.close()
            raise

    def _start(self, space: NodeSpace, folder: str) -> None:
        reader, writer = os.pipe()
        name = space.node.name
        world = self._fabric.world
        options = [
            *(f"--bind={world.address_of(name, family)}" for family in AddressFamily),
            f"--tls-port={TLS_PORT}",
            f"--tcp-port={TCP_PORT}",
            f"--certificate-directory={folder}",
            f"--ready-fd={writer}",
            "--die-with-parent",
        ]
        try:
            process = HelperProcess(
                f"the responder of {name}",
                [*self._command, *options],
                space.descriptor,
                keep=[writer],
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.processes.append(process)
        self._waiting.append((reader, process))

    def wait(self) -> None:
        """Return when all listen. Raises LabError with the words of one that does not."""
        deadline = time.monotonic() + READY_SECONDS
        while self._waiting:
            reader, process = self._waiting[-1]
            left = max(0.0, deadline - time.monotonic())
            ready = select.select([reader], [], [], left)[0]
            if not ready or os.read(reader, 64) != b"ready\n":
                said = process.last_words()
                raise LabError(f"{process.name} does not listen: {said}")
            self._waiting.pop()
            os.close(reader)

    def check(self) -> None:
        """Raise LabError when one of them is dead."""
        for process in self.processes:
            process.check()

    def close(self) -> None:
        """End all of them."""
        for reader, _ in self._waiting:
            os.close(reader)
        self._waiting.clear()
        for process in self.processes:
            process.stop()
        self.processes.clear()
