"""One process per vantage: enters its namespace, measures, writes its own journal.

Run by the controller as ``python -m pathbudget.agents.campaign.worker``; see `messages.py`.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pathbudget.agents.campaign.messages import (
    Done,
    FromController,
    Message,
    Ready,
    Refused,
    Report,
    Start,
    Stop,
    WorkOrder,
    encode,
    from_controller,
)
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.store.journal import Journal
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import ConfigError, PathbudgetError, PrivilegeError, SpoolError
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.scheduling import GIVEN_UP, schedule_this_process
from pathbudget.probes.table import probe_table

REPORT_EVERY_S = 0.5


Say = Callable[[Message], None]


def say_on_output(message: Message) -> None:
    """Send one message to the controller; one that is gone is no reason to fail."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()


async def standard_input() -> asyncio.StreamReader:
    """What comes in, by lines."""
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _stop_when_told(reader: asyncio.StreamReader, run: VantageRun) -> None:
    """Any further line, and the end of the pipe, mean stop."""
    await reader.readline()
    run.stop()


async def _report(run: VantageRun, say: Say) -> None:
    while True:
        await asyncio.sleep(REPORT_EVERY_S)
        say(_state(run))


def _state(run: VantageRun) -> Report:
    progress = run.progress
    return Report(
        progress.fired,
        progress.samples,
        progress.failures,
        progress.reached_ns,
        progress.unresolved,
    )


async def _measure(
    order: WorkOrder, reader: asyncio.StreamReader, say: Say, start_within_s: float | None
) -> None:
    scheduling = schedule_this_process(order.realtime, alone=order.alone)
    journal = Journal.create(Path(order.journal), reserve_bytes=order.reserve_bytes)
    network = SystemNetwork(order.plan.source)
    run = VantageRun(
        order.plan,
        table=probe_table(),
        network=network,
        clock=SystemClock(),
        sink=journal,
        scheduling=scheduling.text,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, run.stop)
    trouble, told = "", 0
    try:
        await run.prepare()
        say(Ready(tuple(run.progress.problems)))
        told = len(run.progress.problems)
        start = await _first_word(reader, start_within_s)
        if isinstance(start, Start):
            await _run_until_stopped(run, start, reader, say)
        run.finish()
        trouble = run.trouble
    except SpoolError as error:
        trouble = str(error)
    finally:
        network.close()
        with contextlib.suppress(SpoolError):
            journal.close()
    later = run.progress.problems[told:] + ([GIVEN_UP] if scheduling.given_up else [])
    say(Done(_state(run), trouble, tuple(later)))


async def _first_word(reader: asyncio.StreamReader, within_s: float | None) -> FromController:
    """What the controller says when all are ready; `Stop` where it says nothing."""
    try:
        line = await asyncio.wait_for(reader.readline(), within_s)
    except TimeoutError:
        return Stop()
    return from_controller(line) if line else Stop()


async def _run_until_stopped(
    run: VantageRun, start: Start, reader: asyncio.StreamReader, say: Say
) -> None:
    helpers = [
        asyncio.create_task(_stop_when_told(reader, run)),
        asyncio.create_task(_report(run, say)),
    ]
    try:
        await run.run(start.monotonic_ns)
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


async def carry_out(
    order: WorkOrder,
    reader: asyncio.StreamReader,
    say: Say,
    *,
    start_within_s: float | None = None,
) -> None:
    """Measure what `order` says, in the words of messages.py.

    Without a `Start` within that time it ends; without a time it waits for ever.
    """
    try:
        _enter(order.plan.namespace)
        await _measure(order, reader, say, start_within_s)
    except PathbudgetError as error:
        capability = error.capability if isinstance(error, PrivilegeError) else ""
        text = error.remedy if isinstance(error, PrivilegeError) else str(error)
        faults = error.faults if isinstance(error, ConfigError) else ()
        say(Refused(type(error).__name__, capability, text, faults))


def be_left_alone() -> None:
    """Ctrl-C and a closed terminal reach the whole process group; the controller decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


async def _main() -> None:
    reader = await standard_input()
    order = from_controller(await reader.readline())
    if not isinstance(order, WorkOrder):
        raise TypeError("the first line must be a work order")
    await carry_out(order, reader, say_on_output)


def _enter(namespace: str) -> None:
    if namespace:
        from pathbudget.agents.lab.namespaces import enter

        enter(namespace)


if __name__ == "__main__":
    be_left_alone()
    asyncio.run(_main())
