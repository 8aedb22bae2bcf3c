"""What answers at the sites beside the kernel: TLS 1.3 on port 8443, TCP on port 8080, STAMP on
UDP port 8620, HTTPS and HTTP/3 on port 8621.
"""

import os
import select
import sys
import time
from collections.abc import Sequence

import msgspec

from pathbudget.agents.lab.fabric import Fabric
from pathbudget.agents.lab.helper_process import HelperProcess
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.reflector.options import DEFAULT_PORT
from pathbudget.probes.errors import LabError
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.reflector_http import HTTPS_PORT

READY_SECONDS = 30.0
READY = b"ready\n"
TLS_PORT = 8443
TCP_PORT = 8080
STAMP_PORT = DEFAULT_PORT
COMMAND = (sys.executable, "-m", "pathbudget.agents.lab.answering")


class Services:
    """The responders of a lab. They boot while the lab is wired; `wait` returns when they listen.

    `folder` is for the certificates; `command` stands in for the responders in tests.
    """

    def __init__(self, fabric: Fabric, folder: str, command: Sequence[str] = ()) -> None:
        self.sites = [
            space
            for space in fabric.spaces.values()
            if space.node.kind is NodeKind.SITE and (space.node.responder or space.node.reflects)
        ]
        self.with_certificates = bool(self.sites)
        self._expected = sum(space.node.responder + space.node.reflects for space in self.sites)
        self._process: HelperProcess | None = None
        self._reader, writer = os.pipe()
        try:
            if self.sites:
                self._process = self._start(fabric, folder, writer, command or COMMAND)
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)

    def _start(
        self, fabric: Fabric, folder: str, writer: int, command: Sequence[str]
    ) -> HelperProcess:
        sites = [
            {
                "site": space.node.name,
                "namespace": space.descriptor,
                "addresses": [
                    fabric.world.address_of(space.node.name, family) for family in AddressFamily
                ],
                "responder": space.node.responder,
                "reflector": space.node.reflects,
                "clock": space.node.clock,
            }
            for space in self.sites
        ]
        order = {
            "folder": folder,
            "ready": writer,
            "tls_port": TLS_PORT,
            "tcp_port": TCP_PORT,
            "stamp_port": STAMP_PORT,
            "https_port": HTTPS_PORT,
            "sites": sites,
        }
        return HelperProcess(
            "the responder process",
            command,
            self.sites[0].descriptor,
            keep=[writer, *(space.descriptor for space in self.sites)],
            order=msgspec.json.encode(order),
        )

    def wait(self) -> None:
        """Return when all listen. Raises LabError with the words of the process if they do not."""
        deadline = time.monotonic() + READY_SECONDS
        said = b""
        while self._process and said.count(READY) < self._expected:
            left = max(0.0, deadline - time.monotonic())
            octets = b""
            if select.select([self._reader], [], [], left)[0]:
                octets = os.read(self._reader, 4096)
            if not octets:
                self._process.wait_briefly()
                raise LabError(f"no responder at the sites: {self._process.last_words()}")
            said += octets

    def check(self) -> None:
        """Raise LabError when a responder is dead."""
        if self._process:
            self._process.check()

    @property
    def pid(self) -> int | None:
        """The process that started the responders, if there are any."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End all of them."""
        os.close(self._reader)
        if self._process:
            self._process.stop()
