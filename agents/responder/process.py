"""One responder as a process: file limit, timers, parent, signals, the ready line."""

import asyncio
import ctypes
import os
import resource
import selectors
import signal
import ssl
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from pathbudget.agents.responder.delays import NO_DELAYS, Delays
from pathbudget.agents.responder.limits import DEFAULT_LIMITS, Limits
from pathbudget.agents.responder.server import Listening, Responder
from pathbudget.probes.errors import ReflectorError

PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29
SPARE_DESCRIPTORS = 32
SELECT_DESCRIPTORS = 1024
"""FD_SETSIZE: select() can watch no descriptor above it."""


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that one responder process is told."""

    listening: Listening
    context: ssl.SSLContext
    limits: Limits = DEFAULT_LIMITS
    delays: Delays = NO_DELAYS
    ready_fd: int | None = None
    greeting: str = ""
    """For a person, on stderr, when everything listens and no descriptor was given."""


def serve(service: Service) -> Counter[str]:
    """Listen until SIGTERM or SIGINT; return what was counted. Blocks the calling thread.

    Raises what `Responder` raises when it cannot listen, ReflectorError when this process may
    open too few files.
    """
    service = replace(service, limits=_bounded(service))
    with asyncio.Runner(loop_factory=_loop_factory(service.delays)) as runner:
        return runner.run(_serve(service))


async def _serve(service: Service) -> Counter[str]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Responder(
        service.listening, service.context, service.limits, service.delays
    ) as responder:
        if _say_ready(service.ready_fd, service.greeting):
            await stop.wait()
        return responder.counters


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the thread that started this process ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _loop_factory(delays: Delays) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The usual loop; with delays one whose timers are good to some microseconds.

    epoll takes whole milliseconds and asyncio rounds up to them; select takes microseconds.
    """
    if delays is NO_DELAYS:
        return None
    _prctl(PR_SET_TIMERSLACK, 1)
    return lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _bounded(service: Service) -> Limits:
    """The limits, with no more connections than this process may have descriptors for."""
    ports = 2 if service.listening.echo_port is None else 3
    reserved = ports * len(service.listening.addresses) + SPARE_DESCRIPTORS
    reachable = _raise_descriptor_limit(service.limits.connections + reserved)
    if service.delays is not NO_DELAYS:
        reachable = min(reachable, SELECT_DESCRIPTORS)
    if reachable <= reserved:
        raise ReflectorError(
            f"this process may open {reachable} files; expected more than {reserved} (ulimit -n)"
        )
    connections = min(service.limits.connections, reachable - reserved)
    return replace(service.limits, connections=connections)


def _raise_descriptor_limit(needed: int) -> int:
    """Raise the soft limit of open files to `needed`, or as far as it goes; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    reachable = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    return reachable


def _say_ready(descriptor: int | None, greeting: str) -> bool:
    """Write the ready line where it was asked for; False when nobody is there to read it."""
    if descriptor is None:
        sys.stderr.write(greeting)
        return True
    try:
        os.write(descriptor, b"ready\n")
        os.close(descriptor)
    except BrokenPipeError:
        return False
    except OSError as error:
        raise ReflectorError(
            f"cannot write to descriptor {descriptor}: {error.strerror}"
        ) from error
    return True
