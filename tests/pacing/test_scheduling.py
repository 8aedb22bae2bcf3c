"""Real-time scheduling: taken where it may be, given back when it would harm."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pathbudget.probes import scheduling
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.scheduling import RealTime, schedule_this_process


class Kernel:
    """Takes the place of the kernel's scheduler and of its resource limits."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.allowed = True
        self.calls: list[tuple[int, int]] = []
        self.limits: list[tuple[int, tuple[int, int]]] = []
        patch.setattr(os, "sched_setscheduler", self._set)
        patch.setattr(resource, "setrlimit", self._limit)

    def _limit(self, limit: int, values: tuple[int, int]) -> None:
        self.limits.append((limit, values))

    def _set(self, process: int, policy: int, parameter: os.sched_param) -> None:
        assert process == 0
        if not self.allowed:
            raise PermissionError(1, "Operation not permitted")
        self.calls.append((policy, parameter.sched_priority))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    before = signal.getsignal(signal.SIGXCPU)
    yield Kernel(monkeypatch)
    signal.signal(signal.SIGXCPU, before)


@pytest.mark.parametrize("wish", [RealTime.AUTO, RealTime.ON])
def test_where_it_is_allowed_it_is_taken_at_the_lowest_priority_and_not_inherited(
    kernel: Kernel, wish: RealTime
) -> None:
    assert schedule_this_process(wish, alone=True).text == "realtime fifo 1"
    assert kernel.calls == [(os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 1)]
    ((limit, (soft, _)),) = kernel.limits
    assert limit == resource.RLIMIT_RTTIME
    assert soft == 200_000  # microseconds: far below 95 % of a second


@pytest.mark.parametrize(("wish", "alone"), [(RealTime.OFF, True), (RealTime.AUTO, False)])
def test_it_is_left_alone_where_unwanted_or_where_it_would_harm(
    kernel: Kernel, wish: RealTime, alone: bool
) -> None:
    assert schedule_this_process(wish, alone=alone).text == ""
    assert kernel.calls == []


def test_where_it_is_not_allowed_auto_goes_on_without(kernel: Kernel) -> None:
    kernel.allowed = False
    before = signal.getsignal(signal.SIGXCPU)
    assert schedule_this_process(RealTime.AUTO, alone=True).text == ""
    assert signal.getsignal(signal.SIGXCPU) == before


def test_wanting_it_where_it_is_not_allowed_is_an_error_with_a_remedy(kernel: Kernel) -> None:
    kernel.allowed = False
    with pytest.raises(PrivilegeError) as caught:
        schedule_this_process(RealTime.ON, alone=True)
    assert "CAP_SYS_NICE" in caught.value.remedy
    assert max(map(len, str(caught.value).splitlines())) <= 80
    assert max(map(len, scheduling.GIVEN_UP.splitlines())) <= 80


def test_a_process_that_computes_without_a_pause_becomes_ordinary(kernel: Kernel) -> None:
    state = schedule_this_process(RealTime.ON, alone=True)
    seen = [state.given_up]
    os.kill(os.getpid(), signal.SIGXCPU)
    seen.append(state.given_up)
    assert seen == [False, True]
    assert kernel.calls[-1] == (os.SCHED_OTHER, 0)


SPINS = """
import os, time
from pathbudget.probes.scheduling import RealTime, schedule_this_process
state = schedule_this_process(RealTime.AUTO, alone=True)
taken = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
assert taken == bool(state.text), (taken, state.text)
end = time.monotonic() + 20
while taken and not state.given_up and time.monotonic() < end:
    pass
assert state.given_up == taken
assert os.sched_getscheduler(0) == os.SCHED_OTHER
"""


def test_this_kernel_takes_it_back_from_a_process_that_spins() -> None:
    """Where this user may not have it, that it says so is all that can be seen."""
    done = subprocess.run(
        [sys.executable, "-c", SPINS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
