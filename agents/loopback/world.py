"""The loopback world: every region a source address, every site a responder, delays between them.

    with LoopbackWorld(regions, sites, seed=7) as world:
        world.source_address("tokyo")     # 127.1.0.1, probes leave from here
        world.target("dallas")            # Target on 127.2.0.1, port 8443
        world.truth("tokyo", "dallas")    # minimum, median, p95, loss of the model
        world.authority                   # ca.pem, what TLS probes trust

All of 127/8 is local on Linux, so this needs no privilege, no namespace and no set-up. What it
cannot do: delay a SYN-ACK or a ping (the kernel answers those), IPv6 (loopback has one address),
traces (there are no hops).
"""

import contextlib
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from pathbudget.agents.loopback.geography import (
    PathModel,
    Place,
    Truth,
    names_of,
    pair_delay,
    truth_of,
)
from pathbudget.agents.responder.delays import DelayFile, PairDelay
from pathbudget.agents.responder.launch import ResponderProcess
from pathbudget.probes.errors import LabError, ReflectorError
from pathbudget.probes.record import Target

LARGEST = 100
"""Most regions, and most sites: one responder process serves them all."""
BLOCKS = 256
CONNECTIONS = 700
"""Open at most: with the listening sockets they stay below what select() can watch."""
DEFAULT_MODEL = PathModel()


class LoopbackWorld:
    """A context manager: the responder runs while the block does.

    Several worlds can run at once, each in its own block of addresses (127.1.B.x, 127.2.B.x); the
    first free one is taken, so a world that runs alone has the same addresses every time.
    Raises ValueError for places that make no world, LabError when the responder cannot run.
    """

    def __init__(
        self,
        regions: Sequence[Place],
        sites: Sequence[Place],
        *,
        model: PathModel = DEFAULT_MODEL,
        seed: int = 1,
        tls_port: int = 8443,
        tcp_port: int = 8080,
    ) -> None:
        if not (0 < len(regions) <= LARGEST and 0 < len(sites) <= LARGEST):
            raise ValueError(f"a loopback world has 1 to {LARGEST} regions and sites")
        self.regions = names_of(regions)
        self.sites = names_of(sites)
        self.seed = seed
        self.tls_port = tls_port
        self.tcp_port = tcp_port
        self._places = (tuple(regions), tuple(sites))
        self._model = model
        self._block = 0
        self._process: ResponderProcess | None = None
        self._open = contextlib.ExitStack()
        self._folder = Path()

    @property
    def authority(self) -> Path:
        """File of the authority that TLS probes must trust; there while the world runs."""
        return self._folder / "ca.pem"

    @property
    def pid(self) -> int | None:
        """Process id of the responder while the world runs."""
        return None if self._process is None else self._process.pid

    def source_address(self, region: str) -> str:
        """The address that probes of `region` leave from."""
        return f"127.1.{self._block}.{self.regions.index(region) + 1}"

    def address(self, site: str) -> str:
        """The address of `site`."""
        return f"127.2.{self._block}.{self.sites.index(site) + 1}"

    def target(self, site: str) -> Target:
        """The TLS target of `site`, by address; its certificate covers that address."""
        return Target(name=site, host=self.address(site), site=site, port=self.tls_port)

    def pair(self, region: str, site: str) -> PairDelay:
        """The delay model of one pair, as the responder has it."""
        region_place = self._places[0][self.regions.index(region)]
        site_place = self._places[1][self.sites.index(site)]
        source, destination = self.source_address(region), self.address(site)
        return pair_delay(region_place, site_place, source, destination, self._model, self.seed)

    def truth(self, region: str, site: str) -> Truth:
        """What the model implies for one pair."""
        return truth_of(self.pair(region, site))

    def check(self) -> None:
        """Raise LabError when the world is not running (any more)."""
        if self._process is None:
            raise LabError("the loopback world is not running")
        try:
            self._process.check()
        except ReflectorError as error:
            raise LabError(f"the loopback world died: {error}") from error

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix="pathbudget-loopback-")
            self._folder = Path(stack.enter_context(folder))
            self._block = self._free_block()
            try:
                self._process = stack.enter_context(self._responder())
            except ReflectorError as error:
                raise LabError(f"the loopback world cannot start: {error}") from error
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process = None
        self._open.close()

    def _free_block(self) -> int:
        for block in range(BLOCKS):
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    trial.bind((f"127.2.{block}.1", self.tls_port))
                except OSError:
                    continue
                return block
        raise LabError(f"port {self.tls_port} is taken on every address of 127.2/16")

    def _responder(self) -> ResponderProcess:
        """The one process that answers for every site, not started."""
        pairs = [self.pair(region, site) for region in self.regions for site in self.sites]
        delays = self._folder / "delays.json"
        delays.write_bytes(msgspec.json.encode(DelayFile(tuple(pairs), self.seed)))
        options: dict[str, str | int | float | Path] = {
            "tls-port": self.tls_port,
            "tcp-port": self.tcp_port,
            "delays": delays,
            "max-connections": CONNECTIONS,
            "max-per-source": CONNECTIONS,
        }
        return ResponderProcess(self._folder, [self.address(site) for site in self.sites], options)
