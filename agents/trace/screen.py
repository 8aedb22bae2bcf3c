"""The whole picture of `pathbudget trace`: what is known in, lines out. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rich.text import Text

from pathbudget.agents.ping.figures import METRO_NS
from pathbudget.agents.ping.words import duration
from pathbudget.agents.trace.changes import Change
from pathbudget.agents.trace.drawing import CHANGE_MARKS, heading, path_lines
from pathbudget.agents.trace.hop_rows import HopRow, hop_rows
from pathbudget.agents.trace.known import NOTHING_KNOWN, Known
from pathbudget.agents.trace.layout import NARROWEST, layout_of
from pathbudget.agents.trace.path_state import PathState, Round
from pathbudget.analysis.hop_loss import JudgedHop

STOPPED = {
    "gap": "the hops beyond are silent",
    "limit": "the hop limit was reached",
    "unreachable": "a router refuses to go on",
    "loop": "packets go round in a loop",
    "budget": "as many packets were sent as one trace may",
}
LEGEND = {
    Change.FLUTTER: "~ flutter: load balancers",
    Change.NEW: "+ new address",
    Change.MOVED: "! moved since the first round",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is drawn. `floor_ns` is what a difference must exceed to mean anything."""

    states: Sequence[PathState]
    verdicts: Mapping[int, Mapping[int, JudgedHop]]
    method: str
    elapsed_ns: int
    floor_ns: int = 0
    known: Known = NOTHING_KNOWN
    strips: bool = True
    """Whether there are several rounds to be shown over time."""
    notices: Sequence[str] = field(default_factory=tuple[str, ...])


def screen(picture: Picture, width: int, height: int) -> list[Text]:
    """What fits into a terminal; what does not is said."""
    lines = final(picture, width)
    if len(lines) > height:
        hidden = len(lines) - height + 1
        lines = [*lines[: height - 1], Text(f"{hidden} more lines; all at the end.", "dim")]
    return [_cut(line, width) for line in lines]


def final(picture: Picture, width: int) -> list[Text]:
    """Every path in full."""
    lines = [Text(one, "yellow") for text in picture.notices for one in wrap(text, width)]
    marks: set[Change] = set()
    for state in picture.states:
        rows = hop_rows(state, picture.verdicts.get(id(state), {}))
        lines += _path(picture, state, rows, width)
        marks |= {row.change for row in rows}
    lines += [Text(one, "dim") for one in _legend(picture, marks, width)]
    return [_cut(line, width) for line in lines]


def _path(picture: Picture, state: PathState, rows: Sequence[HopRow], width: int) -> list[Text]:
    lines = [Text(one, "bold") for one in wrap(_title(state), width)]
    if not rows:
        why = f": {state.failures.most_common(1)[0][0].replace('_', ' ')}" if state.failures else ""
        return [*lines, Text(f"   nobody has answered{why}")]
    micro = (state.target.quantile(0.5) or METRO_NS) < METRO_NS
    layout = layout_of(rows, width, origins=bool(picture.known.origins), strips=picture.strips)
    lines.append(heading(layout, "us" if micro else "ms"))
    lines += path_lines(rows, layout, picture.known, micro=micro, floor_ns=picture.floor_ns)
    lines += [Text(one, "yellow") for one in wrap(_verdict(state), width)]
    return lines


def _title(state: PathState) -> str:
    """Who, how, how often, how quick."""
    address = f" ({state.address})" if state.address not in ("", state.host) else ""
    protocol = f", {state.protocol}" if state.protocol else ""
    port = f" port {state.port}" if state.port else ""
    shown = state.shown
    flows = f", {len(shown.flows)} flow{'s' * (len(shown.flows) != 1)}" if shown else ""
    number = f", round {state.rounds}" if state.rounds else ", first round under way"
    return f"{state.host}{address}{protocol}{port}{flows}{number}{_rtt(state)}"


def _rtt(state: PathState) -> str:
    p50 = state.target.quantile(0.5)
    if p50 is None:
        return ""
    micro = p50 < METRO_NS
    return f", {duration(p50, micro=micro)} {'us' if micro else 'ms'}"


def _verdict(state: PathState) -> str:
    """What the latest round could not do."""
    shown = state.latest
    if shown is None:
        return ""
    texts: list[str] = []
    if state.left_out:
        texts.append(f"A round takes longer than the interval: {state.left_out} left out.")
    if not shown.reached:
        texts.append(f"Not reached: {STOPPED.get(shown.stopped, 'no answer on the first flow')}.")
    if shown.complete is False:
        texts.append(_incomplete(shown))
    texts += _remarks(shown)
    return " ".join(texts)


def _remarks(shown: Round) -> Iterator[str]:
    """What the latest round says of itself as a whole."""
    if shown.path_mtu:
        yield f"Path MTU {shown.path_mtu}."
    if shown.black_hole is not None:
        yield f"Longer packets vanish behind hop {shown.black_hole} without a word (black hole)."
    if shown.per_packet:
        hops = ", ".join(shown.per_packet.split())
        yield f"One flow met several routers at hop {hops}: balanced packet by packet."
    if shown.changed:
        yield "The path changed during the latest round; what it saw before is left out."
    if shown.unprivileged:
        yield "Sent without raw sockets: labels and translation are not seen."


def _incomplete(shown: Round) -> str:
    sure = f" at {100 * shown.confidence:g} %" if shown.confidence else ""
    return f"There may be more addresses than were found{sure}: not every hop was asked enough."


def _legend(picture: Picture, marks: set[Change], width: int) -> list[str]:
    noise = ""
    if picture.floor_ns:
        noise = f"Differences under {duration(picture.floor_ns, micro=True)} us are noise here."
    words = [LEGEND[one] for one in CHANGE_MARKS if one in marks]
    branches = any(len(row.branches) > 1 for one in picture.states for row in _rows(picture, one))
    if branches:
        words.insert(0, "<ab: from a and b of the hop before")
    return [
        line for text in (picture.method, noise, "; ".join(words)) for line in wrap(text, width)
    ]


def _rows(picture: Picture, state: PathState) -> Sequence[HopRow]:
    return hop_rows(state, picture.verdicts.get(id(state), {}))


def _cut(line: Text, width: int) -> Text:
    line.truncate(max(width, NARROWEST))
    line.no_wrap = True
    return line
