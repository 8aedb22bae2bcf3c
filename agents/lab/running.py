"""A running lab:

    with Lab(world) as lab:
        lab.run("tokyo", ["ping", "-c", "3", lab.address_of("dallas")])

Needs root, or to be inside a user namespace of one's own (`rootless.py`). Start it from the main
thread: the kernel ends the lab's processes when the *thread* that started them ends.

Nothing of a lab has a name in the file system: namespaces, certificates and the session file are
open descriptors of this process, its helpers ask the kernel to be killed with it. Kill it in any
way, and all of it is gone.
"""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pathbudget.agents.lab import session
from pathbudget.agents.lab.becoming import Becoming
from pathbudget.agents.lab.bgp import Listener
from pathbudget.agents.lab.birds import Birds
from pathbudget.agents.lab.control import Change
from pathbudget.agents.lab.fabric import Fabric
from pathbudget.agents.lab.kernel_state import KernelRoutes
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.link_process import LinkProcess
from pathbudget.agents.lab.namespaces import inside
from pathbudget.agents.lab.private_folder import path_of, private_folder
from pathbudget.agents.lab.report import LabReport
from pathbudget.agents.lab.services import Services
from pathbudget.agents.lab.world import World
from pathbudget.probes.errors import LabError
from pathbudget.probes.record import AddressFamily

if TYPE_CHECKING:
    from pathbudget.agents.lab.ledger import Ledger

Result = TypeVar("Result")
CONVERGENCE_SECONDS = 30.0
LOOK_SECONDS = 0.05


class Lab:
    """A context manager: the world is up within the block.

    Raises LabError when it cannot start, and at the end of the block (or at `check`) when one of
    its processes died. `responder_command` stands in for the responder in tests.
    """

    def __init__(
        self,
        world: World,
        *,
        real_time: bool = True,
        responder_command: Sequence[str] = (),
    ) -> None:
        self.world = world
        self._real_time = real_time
        self._responder_command = tuple(responder_command)
        self._open = contextlib.ExitStack()
        self._final: LabReport | None = None
        self._spawned: list[subprocess.Popen[Any]] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise LabError("a lab must be started from the main thread of its process")
        try:
            self._start()
        except OSError as error:
            self._open.close()
            raise LabError(_cannot_start(error)) from error
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.check()
                self._final = self._links.report()
        finally:
            self._open.close()

    def _start(self) -> None:
        self._folder = private_folder()
        self._open.callback(os.close, self._folder)
        self._fabric = Fabric(self.world)
        self._open.callback(self._fabric.close)
        self._services = Services(self._fabric, path_of(self._folder), self._responder_command)
        self._open.callback(self._services.close)
        self._fabric.connect()
        self._birds: Birds | None = None
        if self.world.bgp:
            self._birds = Birds(self._fabric, path_of(self._folder))
            self._open.callback(self._birds.close)
        self._links = LinkProcess(self._fabric, real_time=self._real_time)
        self._open.callback(self._links.close)
        self._becoming = Becoming(self._fabric, self._links, self._birds)
        self._session = os.memfd_create("pathbudget-lab")
        self._open.callback(os.close, self._session)
        os.write(self._session, self.session().encode())
        self._services.wait()
        self._routes = KernelRoutes(self._fabric)
        self._open.callback(self._routes.close)
        self._open.callback(self._end_spawned)

    @property
    def session_path(self) -> str:
        """Path of the JSON file for the variable ``PATHBUDGET_LAB``."""
        return path_of(self._session)

    def session(self) -> session.LabSession:
        """What a program inside the lab gets to know of it."""
        nodes = {
            node.name: session.Node(
                namespace=self.namespace(node.name),
                ipv4=self.address_of(node.name, AddressFamily.IPV4),
                ipv6=self.address_of(node.name, AddressFamily.IPV6),
                kind=node.kind.value,
                asn=node.asn,
                mrt_file=self.mrt_file(node.name),
            )
            for node in self.world.nodes.values()
        }
        shown = self._services.with_certificates
        ca_file = f"{path_of(self._folder)}/ca.pem" if shown else ""
        listeners = {one.name: session_of(self.world, one) for one in self.world.listeners}
        return session.LabSession(nodes, ca_file, listeners)

    def ask_speaker(self, node: str, command: str) -> str:
        """What the BGP speaker of a node answers to a command of birdc. Raises LabError."""
        if not self._birds:
            raise LabError("this world has no [bgp]")
        return self._birds.ask(node, command)

    def mrt_file(self, node: str) -> str:
        """Where the BGP speaker of a node writes what it hears and says; empty: nowhere."""
        return self._birds.mrt_file(self.world, node) if self._birds else ""

    def as_session(self) -> contextlib.AbstractContextManager[None]:
        """Within the block, `session.current` gives this lab, here and in new child processes."""
        return session.made_current(self.session_path)

    def address_of(self, node: str, family: AddressFamily = AddressFamily.IPV4) -> str:
        """The address of a node."""
        return self.world.address_of(node, family)

    def namespace(self, node: str) -> str:
        """A path that another process (with the same rights) can give to `namespaces.enter`."""
        return path_of(self._fabric.spaces[node].descriptor)

    @contextlib.contextmanager
    def inside(self, node: str) -> Generator[None]:
        """The calling thread is at `node` for the block; sockets that it opens stay there."""
        with inside(self._fabric.spaces[node].descriptor):
            yield

    def call(self, node: str, function: Callable[[], Result]) -> Result:
        """The result of `function`, called in this process at `node`."""
        with self.inside(node):
            return function()

    def spawn(self, node: str, command: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start a process at `node`; `options` are those of Popen. Killed when the lab ends."""
        with self.inside(node):
            process: subprocess.Popen[Any] = subprocess.Popen(command, **options)  # noqa: S603
        self._spawned.append(process)
        return process

    def run(
        self, node: str, command: Sequence[str], *, timeout: float | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command at `node` to its end; its output as text."""
        pipe = subprocess.PIPE
        process = self.spawn(node, command, stdout=pipe, stderr=pipe, text=True)
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(list(command), process.returncode, output, errors)

    def change(self, source: str, destination: str, model: DirectionModel) -> None:
        """From now on the link from `source` to `destination` (neighbours) behaves like `model`;
        of parallel links and bundles every one.

        Routes and truth stay those of the world. Raises LookupError when there is no such link.
        """
        steps = [step for step in self.world.passes[source] if step.destination == destination]
        if not steps:
            raise LookupError(f"no link from {source} to {destination}")
        for step in steps:
            self._links.change(Change(step.link, source, (model,) * len(step.models)))

    def check(self) -> None:
        """Raise LabError when the emulator or a responder is dead."""
        self._links.process.check()
        self._services.check()
        if self._birds:
            self._birds.check()

    def converged(self, timeout: float = CONVERGENCE_SECONDS) -> float:
        """Wait until the kernels' routes are what the world (as it is now) says; seconds waited.

        Raises LabError, naming the first node that has others, when it takes longer than that.
        """
        began = time.monotonic()
        while odd := self.difference():
            if time.monotonic() - began > timeout:
                raise LabError(f"routes do not settle within {timeout:g} s: {odd}")
            self.check()
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - began

    def difference(self) -> str:
        """Where the kernels forward otherwise than the world says, in words; empty: nowhere."""
        return self._routes.first_difference(self.world)

    def become(self, world: World, *, over_ns: int = 0) -> None:
        """Be another world from now on: of the same nodes and links, with other keys.

        Delays that differ get there within `over_ns`. Routing protocols take their time;
        `converged` waits for them. Raises LabError.
        """
        try:
            self._becoming.become(self.world, world, over_ns)
        except OSError as error:
            raise LabError(f"the lab cannot change: {error}") from error
        self.world = world

    def play(self) -> "Ledger":
        """Have the events of the world happen, each at its time, and tell when they did.

        Returns when the last one has ended or begun. `playing.Play` can be stopped.
        """
        from pathbudget.agents.lab.playing import Play

        return Play(self).run()

    def report(self) -> LabReport:
        """The lab's statement about itself: now while it runs, at its end after the block."""
        return self._final or self._links.report()

    def _end_spawned(self) -> None:
        for process in self._spawned:
            if process.poll() is None:
                process.kill()
                process.wait()


def session_of(world: World, listener: Listener) -> session.Listener:
    """What the program that hears a router has to know."""
    peer_asn = world.nodes[listener.router].asn or 0
    return session.Listener(
        at=listener.at,
        address=world.address_of(listener.at),
        port=listener.port,
        asn=peer_asn if listener.asn is None else listener.asn,
        router=listener.router,
        peer_address=world.address_of(listener.router),
        peer_asn=peer_asn,
        add_paths=listener.add_paths,
    )


def _cannot_start(error: OSError) -> str:
    from pathbudget.agents.lab.capability import why_not

    if os.geteuid() != 0:
        remedy = "run the command by `pathbudget lab run`, or as root"
        return f"a lab needs a user namespace of its own here ({error}); {remedy}"
    return f"the lab cannot start: {why_not() or error}"
