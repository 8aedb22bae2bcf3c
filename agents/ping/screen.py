"""The whole picture: every host a row, a few of them a chart. Pure: what is known in, lines out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rich.text import Text

from pathbudget.agents.ping import rows, words
from pathbudget.agents.ping.figures import figures
from pathbudget.agents.ping.floors import Floors, floor_of
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.smoke import AXIS, chart
from pathbudget.agents.units import format_duration

LOWEST_CHART, HIGHEST_CHART = 4, 16
AROUND_CHART = 3
"""Lines of a pane that are not chart: its title, its losses, its time axis."""
MOST_PANES = 4
SHOWN_OUTAGES = 3


@dataclass(frozen=True, slots=True)
class Shown:
    """One series and how it is measured (``raw``, ``dgm``, ``tcp``, ``udp``)."""

    state: HostState
    mode: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is drawn. Times in nanoseconds."""

    shown: Sequence[Shown]
    method: str
    column_ns: int
    elapsed_ns: int
    floors: Floors = field(default_factory=dict[str, int])
    notices: Sequence[str] = field(default_factory=tuple[str, ...])


def screen(picture: Picture, width: int, height: int) -> list[Text]:
    """What fits: rows first, then charts of the first hosts, then what the letters mean."""
    head = _head(picture, width)
    foot = _foot(picture, width)
    body, left_over = _rows(picture, width, height - len(head) - len(foot))
    lines = [*head, *body, *_panes(picture, width, left_over), *foot]
    return [_cut(line, width) for line in lines[:height]]


def final(picture: Picture, width: int) -> list[Text]:
    """Every host, without charts; for the end."""
    lines = [*_head(picture, width), _heading(picture, width)]
    for block in _blocks(picture, width, range(len(picture.shown))):
        lines += block
    lines += [Text(one) for one in (*_outages(picture, width, len(picture.shown)), *words.LEGEND)]
    return [_cut(line, width) for line in lines]


def noise_text(floors: Floors) -> str:
    """What a difference between two numbers must exceed to mean anything; `floors` are by letter
    of the clock, as in the rows.
    """
    if not floors:
        return "The noise floor of this host is not known."
    sizes = {letter: _size(floor_ns) for letter, floor_ns in floors.items()}
    if len(set(sizes.values())) == 1:
        return f"Differences under {next(iter(sizes.values()))} are noise here."
    each = ", ".join(f"{letter} {size}" for letter, size in sizes.items())
    return f"Noise by clock: {each}."


def _size(floor_ns: int) -> str:
    micro = floor_ns < 10_000_000
    return f"{words.duration(floor_ns, micro=micro)} {'us' if micro else 'ms'}"


def _floors_shown(picture: Picture) -> Floors:
    """Of the clocks that the rows use; the worst of a letter."""
    shown: dict[str, int] = {}
    for one in picture.shown:
        floor_ns = floor_of(one.state, picture.floors)
        if floor_ns is not None:
            letter = words.clock_letter(one.state)
            shown[letter] = max(floor_ns, shown.get(letter, 0))
    known = {letter: floor for letter, floor in shown.items() if letter != words.DASH}
    return known or shown


def _head(picture: Picture, width: int) -> list[Text]:
    hosts = len({one.state.host for one in picture.shown})
    many = "1 host" if hosts == 1 else f"{hosts} hosts"
    title = f"{many}, {picture.method}, for {_clock(picture.elapsed_ns)}."
    noise = noise_text(_floors_shown(picture))
    together = len(title) + 1 + len(noise) <= width
    head = [f"{title} {noise}"] if together else [title, noise]
    notices = [line for one in picture.notices for line in wrap(one, width, subsequent_indent="  ")]
    return [*(Text(one) for one in head), *(Text(one, "yellow") for one in notices)]


def _foot(picture: Picture, width: int) -> list[Text]:
    lines = [Text(one, "bold red") for one in _outages(picture, width, SHOWN_OUTAGES)]
    return [*lines, *(Text(one, "dim") for one in words.LEGEND)]


def _outages(picture: Picture, width: int, most: int) -> list[str]:
    """The latest outage of each host, the latest last."""
    known = [
        (outage.first_lost_unix_ns, words.outage_text(one.state.host, outage))
        for one in picture.shown
        if (outage := one.state.watch.ongoing or one.state.last_outage) is not None
    ]
    texts = [text for _, text in sorted(known)[-most:]]
    return [line for text in texts for line in wrap(text, width, subsequent_indent="  ")]


def _blocks(picture: Picture, width: int, order: Iterable[int]) -> Iterator[list[Text]]:
    """The lines of each series, made only when they are asked for: there may be hundreds."""
    size = _widths(picture, width)
    for one in (picture.shown[at] for at in order):
        yield rows.block(one.state, one.mode, size, floor_of(one.state, picture.floors) or 0)


def _heading(picture: Picture, width: int) -> Text:
    return rows.heading(_widths(picture, width), format_duration(picture.column_ns))


def _widths(picture: Picture, width: int) -> rows.Widths:
    return rows.widths(width, max((len(one.state.host) for one in picture.shown), default=0))


def _rows(picture: Picture, width: int, room: int) -> tuple[list[Text], int]:
    """As many hosts as there is room for, those in trouble before the others."""
    heading, count = _heading(picture, width), len(picture.shown)
    if count < room:
        lines = [line for block in _blocks(picture, width, range(count)) for line in block]
        if len(lines) < room:
            return [heading, *lines], room - len(lines) - 1
    trouble = [_in_trouble(one.state) for one in picture.shown]
    order = sorted(range(count), key=lambda at: not trouble[at])
    room -= 2  # the heading, and the line about the others
    chosen: dict[int, list[Text]] = {}
    for at, block in zip(order, _blocks(picture, width, order), strict=True):
        room -= len(block)
        if room < 0:
            break
        chosen[at] = block
    bad = sum(trouble) - sum(trouble[at] for at in chosen)
    more = f"{count - len(chosen)} more rows, {bad} of them losing packets; all at the end."
    lines = [line for at in sorted(chosen) for line in chosen[at]]
    return [heading, *lines, Text(more, "dim")], 0


def _in_trouble(state: HostState) -> bool:
    """Losing now, or in the last minute's worth of columns."""
    recent = state.strip.columns(6)
    return state.watch.ongoing is not None or any(one is not None and one.lost for one in recent)


def _panes(picture: Picture, width: int, room: int) -> list[Text]:
    """Charts of the first hosts, all of one height."""
    known = [one for one in picture.shown if one.state.sent]
    count = min(len(known), MOST_PANES, room // (LOWEST_CHART + AROUND_CHART))
    if count <= 0:
        return []
    height = min(HIGHEST_CHART, room // count - AROUND_CHART)
    return [line for one in known[:count] for line in _pane(picture, one, width, height)]


def _pane(picture: Picture, one: Shown, width: int, height: int) -> list[Text]:
    state, shown = one.state, figures(one.state)
    columns = state.strip.columns(max(1, width - AXIS))
    unit = "us" if shown.micro else "ms"
    last = f"last {words.duration(state.last_ns, micro=shown.micro)} {unit}"
    address = f" ({state.address})" if state.address not in ("", state.host) else ""
    title = f"{state.host}{address} {state.probe}: {last}"
    floor_ns = floor_of(state, picture.floors)
    if shown.micro and floor_ns is not None:
        title += f" (noise {words.duration(floor_ns, micro=True)} us)"
    lines = chart(columns, width, height, micro=shown.micro, floor_ns=floor_ns or 0)
    return [
        Text(title, "bold"),
        *lines,
        _time_axis(len(columns) * picture.column_ns, len(columns), unit),
    ]


def _time_axis(span_ns: int, columns: int, unit: str) -> Text:
    left, right = f"-{_clock(span_ns)}", "now"
    gap = columns - len(left) - len(right)
    return Text(f"{unit:>{AXIS - 2}}  " + (left + " " * gap + right if gap > 0 else right), "dim")


def _clock(duration_ns: int) -> str:
    minutes, seconds = divmod(duration_ns // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _cut(line: Text, width: int) -> Text:
    line.truncate(width)
    line.no_wrap = True
    return line
