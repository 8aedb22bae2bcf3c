"""Workers are alone on their thread, and neither they nor a cluster change who asked them."""

import os

import pytest

from pathbudget.agents.lake.memory import give_memory_back, keep_memory
from pathbudget.agents.lake.runners import THREADS, InProcesses, OnDask


def threads_of_worker(_: int) -> list[str | None]:
    return [os.environ.get(name) for name in THREADS]


def test_processes_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS[0], "7")
    monkeypatch.delenv(THREADS[1], raising=False)
    with InProcesses(1) as runner:
        assert runner(threads_of_worker, [0, 1]) == [["1"] * len(THREADS)] * 2
    assert os.environ[THREADS[0]] == "7"
    assert THREADS[1] not in os.environ


def failing(number: int) -> int:
    return 1 // number


def test_an_error_of_a_task_is_that_of_the_work() -> None:
    with InProcesses(1) as runner, pytest.raises(ZeroDivisionError):
        runner(failing, [1, 0, 1])
    with pytest.raises(ZeroDivisionError):
        OnDask(1, "synchronous")(failing, [1, 0])


def test_memory_that_is_kept_can_be_given_back() -> None:
    keep_memory()
    give_memory_back()
    assert OnDask(1, "synchronous")(abs, [-1, -2]) == (1, 2)
