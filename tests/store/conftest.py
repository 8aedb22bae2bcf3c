"""Measurements to store, and the troubles of a disk: other users, full and read-only disks."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Sample,
    Stage,
    Target,
    Vantage,
)

NOON = 1_764_590_400_000_000_000  # 2025-12-01 12:00 UTC
DAY_NS = 86_400_000_000_000
NOBODY = 65534
MakeMeasurement = Callable[..., Measurement]
RunScript = Callable[..., "subprocess.CompletedProcess[str]"]


def measurement(number: int = 0, *, samples: int = 4, day: int = 0, **fields: str) -> Measurement:
    """Every fourth sample is a loss; `number` decides the id, the region and the site."""
    started = NOON + day * DAY_NS + number * 1_000_000_000
    region, site = fields.get("region", f"region-{number % 3}"), f"site-{number % 2}"
    return Measurement(
        id=fields.get("id", f"{started}-{number:04}"),
        campaign=fields.get("campaign", "evaluation"),
        vantage=Vantage(name=f"{region}-a", region=region, network="fibre", latitude=32.75),
        target=Target(name=f"{site}-t", host="192.0.2.1", site=site, port=443),
        probe=fields.get("probe", "icmp"),
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        started_unix_ns=started,
        duration_ns=samples * 250_000_000,
        options={"size": 56, "ratio": 0.5},
        counters={"foreign": number},
        samples=tuple(_sample(started, seq) for seq in range(samples)),
    )


def _sample(started: int, seq: int) -> Sample:
    sent = started + seq * 250_000_000
    if seq % 4 == 3:
        lost = Failure(FailureKind.TIMEOUT, Stage.WAIT, "no answer in 1 s")
        return Sample(seq, "rtt", sent, failure=lost)
    return Sample(seq, "rtt", sent, 15_000_000 + seq, clock_source=ClockSource.KERNEL, ttl=57)


@pytest.fixture
def make() -> MakeMeasurement:
    """A factory of measurements."""
    return measurement


@pytest.fixture
def run_script() -> RunScript:
    """Run a Python program in a process of its own; `measurement` is imported for it."""

    def run(program: str, *arguments: object, within: tuple[str, ...] = ()) -> object:
        start = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from conftest import measurement\n"
            "from pathlib import Path\n"
            "from pathbudget.agents.store.parquet import Store\n"
            "from pathbudget.agents.store.journal import Journal, read_journal\n"
        )
        command = [*within, sys.executable, "-c", start + program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    return run  # type: ignore[return-value]


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user of this machine can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="store-of-a-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def as_ordinary_user() -> Callable[[Callable[[], str]], str]:
    """Call a function as somebody who is not root, in a forked process; returns its text."""

    def call(function: Callable[[], str]) -> str:
        return _forked(function, lambda: os.setuid(NOBODY) if os.geteuid() == 0 else None)

    return call


@pytest.fixture
def with_file_limit() -> Callable[[int, Callable[[], str]], str]:
    """Call a function that may write files of so many bytes at most (works for every user)."""

    def call(limit: int, function: Callable[[], str]) -> str:
        soft_hard = (limit, limit)
        return _forked(function, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, soft_hard))

    return call


@pytest.fixture
def with_open_files() -> Callable[[int, Callable[[], str]], str]:
    """Call a function that may open so many files more than are open already."""

    def call(more: int, function: Callable[[], str]) -> str:
        limit = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()) + more
        soft_hard = (limit, limit)
        return _forked(function, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, soft_hard))

    return call


@pytest.fixture
def killed_at() -> Callable[[str, Callable[[Callable[[str], None]], object]], int]:
    """Call a function in a child that dies of SIGKILL at a step; returns the signal, 0 if none."""

    def call(step: str, function: Callable[[Callable[[str], None]], object]) -> int:
        def die(reached: str) -> None:
            if reached == step:
                os.kill(os.getpid(), signal.SIGKILL)

        child = _fork()
        if child == 0:
            try:
                function(die)
            finally:
                os._exit(0)
        return os.WTERMSIG(os.waitpid(child, 0)[1])

    return call


def _fork() -> int:
    """os.fork; newer Pythons warn when a library has threads, which are idle here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _forked(function: Callable[[], str], prepare: Callable[[], object]) -> str:
    """The text that `function` returns in a child, or the traceback that it died with."""
    out, back = os.pipe()
    child = _fork()
    if child == 0:
        try:
            prepare()
            answer = function()
        except BaseException:  # noqa: BLE001
            answer = traceback.format_exc()
        os.write(back, answer.encode())
        os._exit(0)
    os.close(back)
    with os.fdopen(out) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer
