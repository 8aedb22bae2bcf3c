"""Who does the work: this process, some processes of this machine, or a Dask cluster.

A runner takes a function and a list of tasks, and gives the results in the order of the tasks. The
work is the same everywhere; what a cluster needs beside this package is folders that all of it can
reach: the lake, and the scratch folder.
"""

import os
import pickle
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, get_context
from typing import Any, Protocol, TypeVar

from pathbudget.agents.lake.memory import give_memory_back, keep_memory

Task = TypeVar("Task")
Result = TypeVar("Result")


class Runner(Protocol):
    """Runs tasks."""

    workers: int
    """How many tasks run at a time."""

    def __call__(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Sequence[Result]:
        """All results, in the order of the tasks."""
        ...


class InThisProcess:
    """One task after the other."""

    workers = 1

    def __call__(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Sequence[Result]:
        """As `Runner`."""
        return [work(task) for task in tasks]


class InProcesses:
    """A pool of processes of this machine; to be closed, or used in a `with`."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        context = get_context("forkserver")
        context.set_forkserver_preload(["__main__", "pathbudget.agents.lake.lines"])
        with _environment(dict.fromkeys(THREADS, "1")):
            forkserver.ensure_running()
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ready)

    def __call__(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Sequence[Result]:
        """As `Runner`."""
        return list(self._pool.map(work, tasks))

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> "InProcesses":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One for each process: there are as many processes as are wanted. numpy reads them as it loads."""


def _ready() -> None:
    """Of a process, before its first task; the threads where its server is older than the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who waits for the results
    os.environ.update(dict.fromkeys(THREADS, "1"))
    keep_memory()


@contextmanager
def _environment(values: Mapping[str, str]) -> Generator[None]:
    """These variables for the processes that are begun meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class OnDask:
    """Tasks on the Dask scheduler in force: a `distributed.Client` where there is one.

    `scheduler` names another, such as ``synchronous``.
    """

    def __init__(self, workers: int = 2, scheduler: str | None = None) -> None:
        self.workers = workers
        self._scheduler = scheduler

    def __call__(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Sequence[Result]:
        """As `Runner`."""
        from dask.base import compute
        from dask.delayed import delayed

        # Packed, because Dask looks into every field of an argument for graphs of its own.
        jobs = [delayed(_unpacked)(pickle.dumps((work, task))) for task in tasks]
        wish = {} if self._scheduler is None else {"scheduler": self._scheduler}
        try:
            found: Sequence[Result] = compute(*jobs, **wish)  # type: ignore[no-untyped-call]
        finally:
            self._leave_as_found()
        return found

    def _leave_as_found(self) -> None:
        """The processes of a cluster outlive this work."""
        give_memory_back()
        if self._scheduler is None:
            client = _client()
            if client is not None:
                client.run(give_memory_back, on_error="ignore")


def _client() -> Any:
    """The client in force, if there is one."""
    try:
        from distributed import default_client

        return default_client()  # type: ignore[no-untyped-call]
    except (ImportError, ValueError):
        return None


def _unpacked(packed: bytes) -> Any:
    keep_memory()
    work, task = pickle.loads(packed)  # noqa: S301 - packed by ourselves, a moment ago
    return work(task)
