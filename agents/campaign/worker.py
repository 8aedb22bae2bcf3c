"""One process per vantage: enters its namespace, measures, writes its own journal.

Run by the controller as ``python -m pathbudget.agents.campaign.worker``; see `messages.py`.
"""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from pathbudget.agents.campaign.messages import (
    Done,
    Message,
    Ready,
    Refused,
    Report,
    Start,
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


def say(message: Message) -> None:
    """Send one message to the controller; one that is gone is no reason to fail."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _stop_when_told(reader: asyncio.StreamReader, run: VantageRun) -> None:
    """Any further line, and the end of the pipe, mean stop."""
    await reader.readline()
    run.stop()


async def _report(run: VantageRun) -> None:
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


async def _measure(order: WorkOrder, reader: asyncio.StreamReader) -> None:
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
        start = from_controller(await reader.readline() or b'{"type":"Stop"}')
        if isinstance(start, Start):
            await _run_until_stopped(run, start, reader)
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


async def _run_until_stopped(run: VantageRun, start: Start, reader: asyncio.StreamReader) -> None:
    helpers = [asyncio.create_task(_stop_when_told(reader, run)), asyncio.create_task(_report(run))]
    try:
        await run.run(start.monotonic_ns)
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


async def _main() -> None:
    reader = await _standard_input()
    order = from_controller(await reader.readline())
    if not isinstance(order, WorkOrder):
        raise TypeError("the first line must be a work order")
    try:
        _enter(order.plan.namespace)
        await _measure(order, reader)
    except PathbudgetError as error:
        capability = error.capability if isinstance(error, PrivilegeError) else ""
        text = error.remedy if isinstance(error, PrivilegeError) else str(error)
        faults = error.faults if isinstance(error, ConfigError) else ()
        say(Refused(type(error).__name__, capability, text, faults))


def _enter(namespace: str) -> None:
    if namespace:
        from pathbudget.agents.lab.namespaces import enter

        enter(namespace)


if __name__ == "__main__":
    # Ctrl-C and a closed terminal reach the whole process group; the controller decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    asyncio.run(_main())
