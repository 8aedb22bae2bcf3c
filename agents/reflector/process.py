"""One reflector as a process: signals, the ready line, status lines, an end in good order."""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.agents.reflector.clock_error import ErrorBound, host_error_ns
from pathbudget.agents.reflector.clocks import HostClock, StampClock
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.runner import Reflector
from pathbudget.agents.reflector.status import Status
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import ReflectorError
from pathbudget.probes.network import SystemNetwork

GARBAGE_THRESHOLD = 100_000


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that one reflector process is told. `tell` gets a status every `status_every_s`
    and a last one at the end; `duration_s` ends it by itself; `started` is called when it listens;
    `complain` gets a line where something is not as it should be.
    """

    options: Options
    clock: StampClock = field(default_factory=lambda: HostClock(SystemClock()))
    error_estimate: ErrorBound = host_error_ns
    ready_fd: int | None = None
    started: Callable[[Reflector], None] | None = None
    tell: Callable[[Status], None] | None = None
    complain: Callable[[str], None] = lambda _line: None
    status_every_s: float | None = None
    duration_s: float | None = None


def serve(service: Service) -> Status:
    """Reflect until SIGTERM, SIGINT or the end of the duration; return what was counted.

    Raises what `Reflector.open` raises when it cannot listen. Blocks the calling thread.
    """
    return asyncio.run(_serve(service))


async def _serve(service: Service) -> Status:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # What is alive now stays so, and a reply leaves no cycles behind: looking for them costs time.
    gc.set_threshold(GARBAGE_THRESHOLD)
    network = SystemNetwork()
    reflector = Reflector(
        network, service.options, service.clock, service.error_estimate, service.complain
    )
    loop.add_signal_handler(signal.SIGHUP, reflector.reload)
    try:
        reflector.open()
        gc.freeze()
        if _say_ready(service, reflector):
            await _until_stopped(service, reflector, stop)
    finally:
        reflector.close()
        network.close()
    return reflector.status(final=True)


async def _until_stopped(service: Service, reflector: Reflector, stop: asyncio.Event) -> None:
    """Wait, and tell the status at its times."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    ends = None if service.duration_s is None else began + service.duration_s
    next_status = None if service.status_every_s is None else began + service.status_every_s
    while not stop.is_set():
        due = min((at for at in (ends, next_status) if at is not None), default=None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await stop.wait()
        now = loop.time()
        if ends is not None and now >= ends:
            return
        if next_status is not None and service.status_every_s and now >= next_status:
            next_status = max(next_status + service.status_every_s, now)
            if service.tell is not None:
                service.tell(reflector.status())


def _say_ready(service: Service, reflector: Reflector) -> bool:
    """Say that it listens, where that was asked for; False when nobody is there to hear it."""
    if service.started is not None:
        service.started(reflector)
    if service.ready_fd is None:
        return True
    try:
        os.write(service.ready_fd, b"ready\n")
        os.close(service.ready_fd)
    except BrokenPipeError:
        return False
    except OSError as error:
        told = f"cannot write to descriptor {service.ready_fd}: {error.strerror}"
        raise ReflectorError(told) from error
    return True
