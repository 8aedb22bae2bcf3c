"""The two ways to run: with a picture or lines of text, or as JSON lines. Ends at Ctrl-C."""

import asyncio
import signal
import sys

from pathbudget.agents.ping.display import (
    console_for_ping,
    lines,
    live,
    nothing,
    print_final,
)
from pathbudget.agents.ping.json_lines import LineWriter
from pathbudget.agents.ping.options import PingOptions
from pathbudget.agents.ping.session import Display, Session
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.table import probe_table

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_text(options: PingOptions, every_ns: int) -> Session:
    """A live view on a terminal, lines of text elsewhere, a table at the end."""
    console = console_for_ping()
    on_terminal = console.is_terminal and not console.is_dumb_terminal

    async def display(session: Session) -> None:
        if on_terminal:
            await live(session, console)
        else:
            await lines(session, every_ns, _say)

    session = asyncio.run(_run(options, display))
    print_final(session.picture(), console)
    return session


def run_json(options: PingOptions) -> Session:
    """JSON lines. Raises BrokenPipeError when their reader has gone."""
    return asyncio.run(_run_json(options))


async def _run_json(options: PingOptions) -> Session:
    loop = asyncio.get_running_loop()
    session: list[Session] = []

    def broken() -> None:
        for one in session:
            loop.call_soon_threadsafe(one.stop)

    writer = LineWriter(sys.stdout.buffer, broken)
    try:
        return await _run(options, nothing, writer, session)
    finally:
        writer.close()


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
        )
        if made is not None:
            made.append(session)
        if session.notice:
            sys.stderr.write(f"{session.notice}\n{session.remedy}\n")
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, session.stop)
        await session.run(display)
    finally:
        network.close()
    return session


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
