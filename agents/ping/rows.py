"""One host as lines of text: its figures, its directions, its flows, idle against loaded. Pure."""

from typing import NamedTuple

from rich.text import Text

from pathbudget.agents.ping import words
from pathbudget.agents.ping.directions import ENOUGH, DirectionFigures
from pathbudget.agents.ping.figures import Figures, figures, load_figures
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.load_rate import OurLoad, megabits
from pathbudget.agents.ping.phases import Phase
from pathbudget.agents.ping.smoke import smoke_line
from pathbudget.probes.record import Direction

NARROWEST = 80
NUMBERS = (("sent", 5), ("loss", 4), ("", 2), ("min", 5), ("p50", 5), ("p95", 5), ("PDV99", 5))
NUMBERS_END = (("IPDV", 5), ("mode", 5), ("", 3))
FIXED = sum(size + 1 for _, size in (*NUMBERS, *NUMBERS_END))
LONGEST_HOST = 32
FEWEST_HOST = 13


class Widths(NamedTuple):
    """Of the two columns that grow with the terminal."""

    host: int
    smoke: int


def widths(width: int, longest_host: int) -> Widths:
    """What is left of `width` after the numbers."""
    left = max(width, NARROWEST) - FIXED - 1
    host = max(FEWEST_HOST, min(longest_host, LONGEST_HOST, left // 2))
    return Widths(host, left - host)


def heading(size: Widths, column_text: str) -> Text:
    """The names of the columns."""
    cells = [f"{'host':<{size.host}}", f"{_fit('each ' + column_text, size.smoke):<{size.smoke}}"]
    cells += [f"{name:>{wide}}" for name, wide in (*NUMBERS, *NUMBERS_END)]
    return Text(" ".join(cells).rstrip(), "bold")


def block(state: HostState, mode: str, size: Widths, floor_ns: int = 0) -> list[Text]:
    """The line of one series and what belongs under it."""
    shown = figures(state)
    lines = [_main_line(state, shown, mode, size, floor_ns)]
    lines += _direction_lines(state, size)
    lines += [Text(one, "yellow") for one in _failure_lines(state)]
    lines += [Text(one, "cyan") for one in (*_flow_lines(state, shown), *_load_lines(state, shown))]
    return lines


def _main_line(state: HostState, shown: Figures, mode: str, size: Widths, floor_ns: int) -> Text:
    line = Text(f"{_fit(state.host, size.host):<{size.host}} ")
    if state.watch.ongoing is not None:
        line.stylize("bold red")
    smoke = smoke_line(state.strip.columns(size.smoke), size.smoke, floor_ns)
    smoke.pad_left(size.smoke - len(smoke))
    line.append_text(smoke)
    line.append(f" {words.amount(state.sent):>5} ")
    line.append(f"{words.share(state.loss_ratio):>4}", "yellow" if state.lost else "")
    line.append(f" {'us' if shown.micro else 'ms'}")
    numbers = (shown.minimum_ns, shown.p50_ns, shown.p95_ns, shown.pdv_p99_ns, shown.ipdv_p95_ns)
    for value in numbers:
        line.append(f" {words.duration(value, micro=shown.micro):>5}")
    line.append(f" {words.clock_letter(state)} {mode:<3} {words.marks(state)[:3]:<3}")
    line.rstrip()
    return line


def _direction_lines(state: HostState, size: Widths) -> list[Text]:
    """Forward and reverse, as soon as there are packets enough to tell drift from variation."""
    found = state.directions.figures()
    if found is None:
        return [Text(f"  directions after {ENOUGH} packets", "dim")] if state.directions.n else []
    pairs = zip((Direction.FORWARD, Direction.REVERSE), found, strict=True)
    return [_direction_line(state, one, of, size) for one, of in pairs]


def _direction_line(
    state: HostState, direction: Direction, of: DirectionFigures, size: Widths
) -> Text:
    micro = of.pdv_p99_ns < 1_000_000
    placed = state.lost_by_direction
    loss = words.between(*placed.bounds(direction)) if placed else words.DASH
    drift = words.drift(of.drift_ppm)
    if len(drift) + 10 <= size.smoke:
        drift = f"last {of.n}, {drift}"
    drift = _fit(drift, size.smoke)
    text = f"{'  ' + direction:<{size.host}} {drift:<{size.smoke}} {loss:>10} "
    text += f"{'us' if micro else 'ms'} {words.DASH:>5} {words.DASH:>5} {words.DASH:>5}"
    for value in (of.pdv_p99_ns, of.ipdv_p95_ns):
        text += f" {words.duration(value, micro=micro):>5}"
    return Text(text)


def _failure_lines(state: HostState) -> list[str]:
    """What somebody said of our packets, or why none was sent; silence is the loss column's."""
    if not state.last_failure or state.last_failure == "timeout":
        return []
    return [f"  last failure: {state.last_failure}"]


def _flow_lines(state: HostState, shown: Figures) -> list[str]:
    if len(state.flows) < 2:
        return []
    if shown.ecmp_spread_ns is None:
        return [f"  {len(state.flows)} flows; the ECMP spread takes 20 answers of each of two"]
    spread = _with_unit(shown.ecmp_spread_ns, micro=shown.micro)
    return [f"  {len(state.flows)} flows; ECMP spread (of their medians) {spread}"]


def _load_lines(state: HostState, shown: Figures) -> list[str]:
    found, lines = load_figures(state), list[str]()
    if found is not None:
        idle, loaded, more = (_pair(pair, micro=shown.micro) for pair in found)
        unit = "us" if shown.micro else "ms"
        lines.append(f"  p50/p95 idle {idle}, loaded {loaded}, difference {more} {unit}")
    if state.own_load is not None:
        lines += _own_load_lines(state, state.own_load)
    return lines


def _own_load_lines(state: HostState, load: OurLoad) -> list[str]:
    """What the load really was, and what was lost with it."""
    asked, sent, answered = (
        words.DASH if one is None else megabits(one)
        for one in (load.asked_bps, load.sent_bps, load.answered_bps)
    )
    idle, loaded, sought = (
        words.share(state.phases[one].loss_ratio)
        for one in (Phase.IDLE, Phase.LOADED, Phase.RAMPING)
    )
    return [
        f"  load {sent} Mbit/s sent, {answered} answered, {asked} asked for",
        f"  loss idle {idle}, loaded {loaded}, while the rate was sought {sought}",
    ]


def _pair(pair: tuple[float | None, float | None], *, micro: bool) -> str:
    return "/".join(words.duration(one, micro=micro) for one in pair)


def _with_unit(value_ns: float, *, micro: bool) -> str:
    return f"{words.duration(value_ns, micro=micro)} {'us' if micro else 'ms'}"


def _fit(text: str, width: int) -> str:
    """Cut at the end, with a sign that it was."""
    return text if len(text) <= width else text[: width - 1] + "~"
