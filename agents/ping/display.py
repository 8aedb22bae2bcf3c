"""Puts pictures where somebody sees them: a live terminal, or lines of text. No statistics here."""

import asyncio
from collections.abc import Callable, Sequence

from rich.console import Console, Group
from rich.live import Live

from pathbudget.agents.ping import words
from pathbudget.agents.ping.figures import figures
from pathbudget.agents.ping.screen import Picture, Shown, final, screen
from pathbudget.agents.ping.session import Session

REDRAW_S = 0.5
NARROWEST = 80


def console_for_ping() -> Console:
    """Addresses are neither markup nor emoji nor numbers to be coloured."""
    return Console(markup=False, emoji=False, highlight=False)


async def live(session: Session, console: Console) -> None:
    """Redraw twice a second until cancelled.

    What is drawn is made here; the writing is done in a thread, so that a terminal that takes
    nothing (Ctrl-S, a slow line) does not hold up the measuring.
    """
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


async def lines(session: Session, every_ns: int, say: Callable[[str], None]) -> None:
    """A line per host every so often, until cancelled; outages at once."""
    loop = asyncio.get_running_loop()
    due = loop.time() + every_ns / 1e9
    told: set[str] = set()
    while True:
        await asyncio.sleep(min(0.25, max(0.0, due - loop.time())))
        picture = session.picture()
        for text in _news(picture, told):
            say(text)
        if loop.time() >= due:
            due += every_ns / 1e9
            for one in picture.shown:
                say(plain_line(one))


async def nothing(session: Session) -> None:
    """No display: the JSON lines say it all."""
    del session


def plain_line(one: Shown) -> str:
    """The figures of one host with their names, for a log."""
    state, shown = one.state, figures(one.state)
    unit = "us" if shown.micro else "ms"
    numbers = {
        "min": shown.minimum_ns,
        "p50": shown.p50_ns,
        "p95": shown.p95_ns,
        "pdv_p99": shown.pdv_p99_ns,
        "ipdv_p95": shown.ipdv_p95_ns,
    }
    values = " ".join(f"{k} {words.duration(v, micro=shown.micro)}" for k, v in numbers.items())
    loss = words.share(state.loss_ratio)
    mode = f"{words.clock_letter(state)} {one.mode} {words.marks(state)}".rstrip()
    return f"{state.host}: sent {state.sent} loss {loss} {values} {unit} {mode}"


def print_final(picture: Picture, console: Console) -> None:
    """The table of all hosts, at the end."""
    for line in final(picture, max(NARROWEST, console.width)):
        console.print(line, soft_wrap=True)


def _news(picture: Picture, told: set[str]) -> Sequence[str]:
    """Outages that began or ended since the last time."""
    fresh: list[str] = []
    for one in picture.shown:
        outage = one.state.last_outage
        if outage is None:
            continue
        key = f"{one.state.host} {one.state.probe} {outage.first_lost_unix_ns} {outage.over}"
        if key not in told:
            told.add(key)
            fresh.append(words.outage_text(one.state.host, outage))
    return fresh
