"""``pathbudget bgp run`` as a process: signals, a live screen or lines, an end in good order."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncGenerator, Coroutine

from rich.console import Console, Group

from pathbudget.agents.bgp.listening import Hearing, listen
from pathbudget.agents.bgp.plans import BgpPlan
from pathbudget.agents.bgp.show import event_json, event_line, screen, status_json
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.routes.bgp_state import Event

REDRAW_S = 1.0
STATUS_S = 60.0
HEAD = 12
"""Lines of a screen that no event may take."""


def run_feeds(
    plan: BgpPlan, store: Store | None, *, as_json: bool, duration_s: float | None
) -> Hearing:
    """Hear all feeds until SIGTERM, SIGINT or the end of the duration. Raises PathbudgetError."""
    return asyncio.run(_run(plan, store, as_json=as_json, duration_s=duration_s))


async def _run(
    plan: BgpPlan, store: Store | None, *, as_json: bool, duration_s: float | None
) -> Hearing:
    console = Console(markup=False, emoji=False, highlight=False)
    looked_at = console.is_terminal and not as_json
    hearing = Hearing(plan, store, _quiet if looked_at else _json if as_json else _text)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if duration_s is not None:
        loop.call_later(duration_s, stop.set)
    async with _beside(_draw(hearing, console) if looked_at else _status(hearing, as_json=as_json)):
        await listen(hearing, store, stop)
    if looked_at:
        console.print(picture(hearing, SHOWN_AT_END))
    elif as_json:
        _write(status_of(hearing))
    else:
        _write(f"{_one_line(hearing)}\n".encode())
    return hearing


SHOWN_AT_END = 20


def picture(hearing: Hearing, events: int) -> Group:
    """What a person looks at now."""
    latest = list(hearing.events)[-events:] if events > 0 else []
    feeds = hearing.table.status(time.time_ns())
    return screen(feeds, hearing.table.prefixes(), latest, hearing.notes)


def status_of(hearing: Hearing) -> bytes:
    """The same as a line of JSON."""
    now = time.time_ns()
    return status_json(hearing.table.status(now), hearing.table.prefixes(), now)


async def _draw(hearing: Hearing, console: Console) -> None:
    from rich.live import Live

    view = Live(console=console, screen=True, auto_refresh=False)
    view.start()
    try:
        while True:
            view.update(picture(hearing, max(0, console.size.height - HEAD)))
            await asyncio.to_thread(view.refresh)
            await asyncio.sleep(REDRAW_S)
    finally:
        view.stop()


async def _status(hearing: Hearing, *, as_json: bool) -> None:
    while True:
        await asyncio.sleep(STATUS_S)
        _write(status_of(hearing) if as_json else f"{_one_line(hearing)}\n".encode())


def _one_line(hearing: Hearing) -> str:
    feeds = hearing.table.status(time.time_ns())
    return "; ".join(f"{one.feed} {one.state}, {one.updates} updates" for one in feeds)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _quiet(event: Event) -> None:
    """The screen shows it."""


def _json(event: Event) -> None:
    _write(event_json(event))


def _text(event: Event) -> None:
    _write(f"{event_line(event)}\n".encode())


def _write(data: bytes) -> None:
    sys.stdout.write(data.decode())
    sys.stdout.flush()
