"""The two ways to run: with a picture or lines of text, or as JSON lines. Ends at Ctrl-C."""

import asyncio
import sys

from rich.console import Console

from pathbudget.agents.live_run import end_at_signals, ended_by_somebody, writer_to_stdout
from pathbudget.agents.ping.display import (
    console_for_ping,
    lines,
    live,
    nothing,
    print_final,
)
from pathbudget.agents.ping.json_lines import dropped_line
from pathbudget.agents.ping.line_writer import LineWriter
from pathbudget.agents.ping.options import PingOptions
from pathbudget.agents.ping.session import Display, Session
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.table import probe_table


def run_text(options: PingOptions, every_ns: int) -> Session:
    """A live view on a terminal, lines of text elsewhere, a table at the end. Raises
    BrokenPipeError when the reader of the lines has gone.
    """
    console = console_for_ping()
    if not console.is_terminal or console.is_dumb_terminal:
        return asyncio.run(_run_lines(options, every_ns, console))

    async def display(session: Session) -> None:
        await live(session, console)

    session = asyncio.run(_run(options, display))
    print_final(session.picture(), console)
    return session


def run_json(options: PingOptions) -> Session:
    """JSON lines. Raises BrokenPipeError when their reader has gone, or stands still at the end."""
    return asyncio.run(_run_json(options))


async def _run_lines(options: PingOptions, every_ns: int, console: Console) -> Session:
    made: list[Session] = []
    writer = writer_to_stdout(made, _missing_text)

    async def display(session: Session) -> None:
        await lines(session, every_ns, lambda text: writer.write_sample(f"{text}\n".encode()))

    try:
        session = await _run(options, display, made=made)
        with console.capture() as table:
            print_final(session.picture(), console)
        writer.write(table.get().encode())
    finally:
        await writer.close(lambda: ended_by_somebody(made))
    return session


async def _run_json(options: PingOptions) -> Session:
    made: list[Session] = []
    writer = writer_to_stdout(made, dropped_line)
    try:
        session = await _run(options, nothing, writer, made)
    finally:
        await writer.close(lambda: ended_by_somebody(made))
    return session


def _missing_text(count: int) -> bytes:
    return f"{count} lines are missing here: their reader stood still.\n".encode()


async def _run(
    options: PingOptions,
    display: Display,
    writer: LineWriter | None = None,
    made: list[Session] | None = None,
) -> Session:
    source = {options.family: options.source} if options.family and options.source else None
    network = SystemNetwork(source)
    try:
        session = Session(
            options,
            table=probe_table(),
            network=network,
            clock=SystemClock(),
            write=writer.write if writer else None,
            write_sample=writer.write_sample if writer else None,
        )
        if made is not None:
            made.append(session)
        if session.notice:
            sys.stderr.write(f"{session.notice}\n{session.remedy}\n")
        end_at_signals(session)
        await session.run(display)
    finally:
        network.close()
    return session
