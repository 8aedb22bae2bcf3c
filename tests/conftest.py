"""What every test can rely on: real data, system packages, networks fake and real, servers.

A test marked ``@pytest.mark.needs("chromium")``, ``needs("lab")`` and so on is not run on a machine
that lacks the thing, and one line at the end says so; with ``CI=true`` it fails instead.
"""

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.programs import PACKAGES, PATH

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.network import SystemNetwork

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
IN_CI = os.environ.get("CI") == "true"
LONGEST = (
    "campaign/test_run_command.py",
    "watch/test_prometheus.py",
    "report/test_chromium.py",
    "lab/test_lab_life.py",
    "quick/test_check_command.py",
    "store/test_store_disk.py",
    "cli/test_standard_streams.py",
    "importers/test_atlas_files.py",
    "importers/test_atlas_fuzz.py",
    "collector/test_collector_faults.py",
    "collector/test_collector_process.py",
    "fleet/test_newcomer.py",
    "fleet/test_agent_under_attack.py",
    "ssh/test_ssh_run.py",
)
"""Files that take longest. They begin first, so that no worker is left alone with one of them."""
STAMPS_WITHIN_SECONDS = 20.0
NOT_RUN = pytest.StashKey[dict[str, int]]()
NOTES = pytest.StashKey[list[str]]()
"""Lines for the end of the run: what a person must know of how a test came to pass."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOTES] = []
    # A shell that runs something in the background has it ignore Ctrl-C, and what that starts, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and our messages are wrapped by it


@functools.cache
def why_missing(thing: str) -> str | None:
    """Why this machine cannot run tests that need `thing`; None when it can."""
    if thing == "chromium":
        found = any(shutil.which(name) for name in ("chromium", "google-chrome"))
        return None if found else "the Debian package chromium is not installed"
    if thing in PACKAGES:
        found = shutil.which(thing, path=PATH) is not None
        return None if found else f"the Debian package {PACKAGES[thing]} is not installed"
    if thing == "lab":
        from pathbudget.agents.lab.capability import why_not

        return why_not()
    if thing == "data":
        return None if SHARED_DATA.is_dir() else f"no folder {SHARED_DATA.name} of real results"
    if thing == "root":  # servers that change users, file systems of a given size
        return None if os.geteuid() == 0 else "this user is not root"
    known = ", ".join(("chromium", "lab", "data", "root", *PACKAGES))
    raise pytest.UsageError(f"unknown need {thing!r}; known: {known}")


def needs_of(item: pytest.Item) -> list[str]:
    """Everything the marks of a test ask for."""
    return [str(need) for mark in item.iter_markers("needs") for need in mark.args]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not str(item.path).endswith(LONGEST))
    not_run: dict[str, int] = {}
    config.stash[NOT_RUN] = not_run
    if IN_CI:
        return
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        reasons = [reason for need in needs_of(item) if (reason := why_missing(need))]
        (dropped if reasons else kept).append(item)
        for reason in reasons[:1]:
            not_run[reason] = not_run.get(reason, 0) + 1
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Importing mrtparse makes a write to a closed pipe deadly; a worker would vanish in mid-test.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for need in needs_of(item):
        if reason := why_missing(need):
            pytest.fail(f"this test needs {need}, and {reason}", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(NOTES, []):
        terminalreporter.write_line(line, yellow=True)
    not_run = terminalreporter.config.stash.get(NOT_RUN, {})
    if not_run:
        parts = "; ".join(f"{count} because {reason}" for reason, count in not_run.items())
        terminalreporter.write_line(f"Not run: {parts}.", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands what it has to say to the one that writes the summary."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_run"] = session.config.stash.get(NOT_RUN, {})
        output["notes"] = session.config.stash.get(NOTES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects all tests, so every one leaves out the same; notes are its own."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[NOT_RUN] = output.get("not_run", {})
    node.config.stash[NOTES] += output.get("notes", [])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real measurements that others made; use with ``needs("data")``."""
    return SHARED_DATA


@pytest.fixture
def fake() -> FakeNetwork:
    return FakeNetwork(FakeClock())


@pytest.fixture
def fake_collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock)


@pytest.fixture(scope="session", autouse=True)
def stamping_host() -> Iterator[None]:
    """The kernel stamps what it receives, and goes on while tests run.

    It begins a moment after a first socket asks (on a busy host a long one), and ends with the
    last: without this the samples of a test that comes first have the clock of the user.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind(("127.0.0.1", 0))
        asking.settimeout(5)
        wanted = stamps.RX_SOFTWARE | stamps.SOFTWARE
        until = time.monotonic() + STAMPS_WITHIN_SECONDS
        while stamps.switch_on(asking, wanted) and time.monotonic() < until:
            asking.sendto(b"?", asking.getsockname())
            if stamps.read_control(asking.recvmsg(1, 256)[1]).stamp_unix_ns is not None:
                break
            time.sleep(0.001)
        yield


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    """The real network of this host."""
    network = SystemNetwork()
    yield network
    network.close()


@pytest.fixture
def collector(network: SystemNetwork) -> Collector:
    """On the real network of this host."""
    return Collector(network, SystemClock())


Holds = Callable[[], object]


@pytest.fixture
def until() -> Callable[[Holds], Awaitable[None]]:
    """Wait until a condition holds that another thread brings about."""

    async def wait(holds: Holds) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    return wait


Handler = Callable[[socket.socket], None]
"""Plays the server on one accepted connection; the socket is closed behind it."""


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Start a server on loopback, one thread per connection; returns its port."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def play(handler: Handler, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handler(connection)

    def accept(listener: socket.socket, handler: Handler) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=play, args=(handler, connection))
                threads.append(thread)
                thread.start()

    def start(handler: Handler, address: str = "127.0.0.1") -> int:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 0), family=family, backlog=128)
        listeners.append(listener)
        thread = threading.Thread(target=accept, args=(listener, handler))
        threads.append(thread)
        thread.start()
        port: int = listener.getsockname()[1]
        return port

    yield start
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join()


@pytest.fixture
def closed_port(closed_ports: tuple[int, int]) -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    return closed_ports[0]


@pytest.fixture
def closed_ports() -> tuple[int, int]:
    """Two of them. No neighbour of one will do: the kernel connects from those."""
    with socket.socket() as one, socket.socket() as other:
        for sock in (one, other):
            sock.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
