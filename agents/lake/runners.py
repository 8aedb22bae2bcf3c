"""Who does the work: this process, some processes of this machine, or a Dask cluster.

A runner takes a function and a list of tasks, and gives the results in the order of the tasks. The
work is the same everywhere; what a cluster needs beside this package is folders that all of it can
reach: the lake, and the scratch folder.
"""

import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

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
        self._pool = ProcessPoolExecutor(
            workers, mp_context=get_context("forkserver"), initializer=_alone
        )

    def __call__(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Sequence[Result]:
        """As `Runner`."""
        return list(self._pool.map(work, tasks))

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown()

    def __enter__(self) -> "InProcesses":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _alone() -> None:
    """One thread each: there are as many processes as are wanted, and numpy is not loaded yet."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


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
        found: Sequence[Result] = compute(*jobs, **wish)  # type: ignore[no-untyped-call]
        return found


def _unpacked(packed: bytes) -> Any:
    work, task = pickle.loads(packed)  # noqa: S301 - packed by ourselves, a moment ago
    return work(task)
