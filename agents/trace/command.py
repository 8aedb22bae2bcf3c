"""The ways to run: a live picture, lines of text, JSON lines. Ends at Ctrl-C."""

import asyncio
import sys
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live

from pathbudget.agents.live_run import end_at_signals, ended_by_somebody, writer_to_stdout
from pathbudget.agents.ping.display import console_for_ping
from pathbudget.agents.trace.json_lines import dropped_line
from pathbudget.agents.trace.known import Knowing
from pathbudget.agents.trace.options import TraceOptions
from pathbudget.agents.trace.path_state import PathState, Round
from pathbudget.agents.trace.screen import final, screen
from pathbudget.agents.trace.session import Display, Session
from pathbudget.agents.trace.sink import news_of
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.table import probe_table

REDRAW_S = 0.5


def run_text(options: TraceOptions, knowing: Knowing) -> Session:
    """A live view on a terminal, a line per round elsewhere; the whole path at the end."""
    console = console_for_ping()
    moving = console.is_terminal and not console.is_dumb_terminal and not options.once

    async def display(session: Session) -> None:
        if moving:
            await _live(session, console)
        elif not options.once:
            session.sink.ended = _say_round

    session = asyncio.run(_run(options, display, knowing))
    for line in final(session.picture(), console.width):
        console.print(line, soft_wrap=True)
    return session


def run_json(options: TraceOptions, knowing: Knowing) -> Session:
    """JSON lines. Raises BrokenPipeError when their reader has gone, or stands still at the end."""
    return asyncio.run(_run_json(options, knowing))


async def _run_json(options: TraceOptions, knowing: Knowing) -> Session:
    made: list[Session] = []
    writer = writer_to_stdout(made, dropped_line)
    try:
        session = await _run(options, _nothing, knowing, write=writer.write_sample, made=made)
    finally:
        await writer.close(lambda: ended_by_somebody(made))
    return session


async def _run(
    options: TraceOptions,
    display: Display,
    knowing: Knowing,
    *,
    write: Callable[[bytes], None] | None = None,
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
            write=write,
            knowing=knowing,
        )
        if made is not None:
            made.append(session)
        end_at_signals(session)
        await session.run(display)
    finally:
        network.close()
    return session


async def _live(session: Session, console: Console) -> None:
    """Redraw twice a second until cancelled; written in a thread, as in `ping`."""
    view = Live(console=console, screen=True, auto_refresh=False)
    view.start()
    try:
        while True:
            width, height = console.size
            view.update(Group(*screen(session.picture(), width, height)))
            await asyncio.to_thread(view.refresh)
            await asyncio.sleep(REDRAW_S)
    finally:
        view.stop()


async def _nothing(session: Session) -> None:
    """No display: the JSON lines say it all."""
    del session


def _say_round(state: PathState, ended: Round) -> None:
    sys.stdout.write(f"{news_of(state, ended)}\n")
    sys.stdout.flush()
