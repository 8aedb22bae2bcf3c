"""Rows of a path as lines of text. Pure.

Everything is told by words and shapes; colour repeats it.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.text import Text

from pathbudget.agents.ping.figures import percentile
from pathbudget.agents.ping.smoke import smoke_line
from pathbudget.agents.ping.words import DASH, duration, share
from pathbudget.agents.trace.changes import Change
from pathbudget.agents.trace.hop_rows import Branch, HopRow, rate_limited
from pathbudget.agents.trace.known import UNKNOWN, Known
from pathbudget.agents.trace.layout import LIMIT, NUMBERS, Layout
from pathbudget.analysis.hop_loss import HopVerdict

SILENCE = "*"
ASYMMETRIC = 2
"""Fewer hops more or less on the way back than there are taken for the same number."""
CHANGE_MARKS = {Change.FLUTTER: "~", Change.NEW: "+", Change.MOVED: "!"}
CHANGE_STYLES = {Change.FLUTTER: "dim", Change.NEW: "yellow", Change.MOVED: "bold red"}
SIZES = dict(NUMBERS)
REFUSALS = {
    "3/0": "network unreachable",
    "3/1": "host unreachable",
    "3/9": "network forbidden",
    "3/10": "host forbidden",
    "3/13": "forbidden by a filter",
    "1/0": "no route",
    "1/1": "forbidden by a filter",
    "1/3": "host unreachable",
}


def heading(layout: Layout, unit: str) -> Text:
    """The names of the columns."""
    text = " " * layout.indent
    if layout.stacked:
        return Text(f"{text}address, then flows, {', '.join(layout.numbers)} in {unit}", "bold")
    text += f"{'address':<{layout.address}} {'flows':>{layout.flows}}"
    text += "".join(f" {name:>{SIZES[name]}}" for name in layout.numbers)
    text += f" {'AS':<{layout.origin}}" if layout.origin else ""
    text += f" {unit} over time" if layout.strip > len(unit) + 10 else ""
    return Text(text, "bold")


def path_lines(
    rows: Sequence[HopRow], layout: Layout, known: Known, *, micro: bool, floor_ns: int = 0
) -> Iterator[Text]:
    """Every hop: its addresses, and under each what is to be said of it."""
    named: set[str] = set()
    for row in rows:
        yield from _hop_lines(row, layout, known, named, micro=micro, floor_ns=floor_ns)


def _hop_lines(
    row: HopRow, layout: Layout, known: Known, named: set[str], *, micro: bool, floor_ns: int
) -> Iterator[Text]:
    for index, branch in enumerate(row.branches):
        yield from _branch_lines(row, index, layout, known, micro=micro, floor_ns=floor_ns)
        yield from _details(branch_words(row, branch, known, named), layout, "dim")
    if row.silent_flows or not row.branches:
        yield _silent_line(row, layout)
    yield from _details(list(hop_words(row)), layout, CHANGE_STYLES.get(row.change, "yellow"))


def _branch_lines(
    row: HopRow, index: int, layout: Layout, known: Known, *, micro: bool, floor_ns: int
) -> Iterator[Text]:
    branch = row.branches[index]
    line = Text(_gutter(row, index, layout))
    if layout.stacked:
        room = layout.width - layout.indent
        line.append(branch.address[:room], _style(row, branch))
        yield line
        rest = branch.address[room:]
        line = Text(f"{'':{layout.indent}}{rest:<4}")
    else:
        line.append(f"{branch.address:<{layout.address}}", _style(row, branch))
    line.append(f" {f'{branch.flows}/{row.asked}':>{layout.flows}}")
    for name in layout.numbers:
        line.append(f" {_number(name, row, branch, index, micro=micro):>{SIZES[name]}}")
    if layout.origin:
        number = known.origins.get(branch.address, UNKNOWN).number
        line.append(f" {number:<{layout.origin}.{layout.origin}}", "cyan")
    if layout.strip and branch.router is not None:
        line.append(" ")
        columns = branch.router.strip.columns(layout.strip)
        line.append_text(smoke_line(columns, layout.strip, floor_ns))
    line.rstrip()
    yield line


def _style(row: HopRow, branch: Branch) -> str:
    if row.change is Change.MOVED:
        return CHANGE_STYLES[row.change]
    return "bold" if branch.destination else ""


def _gutter(row: HopRow, index: int, layout: Layout) -> str:
    """Hop limit, mark of a change, bracket and letter of a branch, where it comes from."""
    branch, last = row.branches[index], len(row.branches) - 1
    number = f"{row.limit:>{LIMIT}}" if index == 0 else " " * LIMIT
    mark = CHANGE_MARKS.get(row.change, " ") if index == 0 else " "
    bracket = " " if not last else "┌" if index == 0 else "└" if index == last else "├"
    source = f"<{branch.comes_from}" if branch.comes_from else ""
    if len(source) > layout.sources:
        source = source[: layout.sources - 1] + "+" if layout.sources else ""
    return f"{number}{mark}{bracket}{branch.letter or ' '}{source:<{layout.sources}} "


def _number(name: str, row: HopRow, branch: Branch, index: int, *, micro: bool) -> str:
    if name == "loss":
        if index or not row.state.sent:
            return ""
        return share(1 - row.state.answered / row.state.sent)
    if branch.router is None:
        return DASH
    rtt = branch.router.rtt
    if name == "p95":
        return duration(percentile(rtt, 0.95), micro=micro)
    return duration(rtt.quantile(0.5 if name == "p50" else 0.0), micro=micro)


def _silent_line(row: HopRow, layout: Layout) -> Text:
    """Flows that nobody answered at this hop, in this round."""
    number = f"{row.limit:>{LIMIT}}" if not row.branches else " " * LIMIT
    line = Text(f"{number}   {'':<{layout.sources}} ")
    flows = f"{row.silent_flows}/{row.asked}"
    if layout.stacked:
        line.append(f"{SILENCE} {flows}")
    else:
        line.append(f"{SILENCE:<{layout.address}} {flows:>{layout.flows}}")
        if "loss" in layout.numbers and not row.branches and row.state.sent:
            line.append(f" {share(1 - row.state.answered / row.state.sent):>{SIZES['loss']}}")
    line.stylize("dim")
    return line


def _details(words: Sequence[str], layout: Layout, style: str) -> Iterator[Text]:
    """Below a row, indented; as many lines as it takes."""
    if words:
        room = max(20, layout.width - layout.indent - 2)
        for line in wrap("; ".join(words), room, break_on_hyphens=False):
            yield Text(" " * (layout.indent + 2) + line, style)


def branch_words(row: HopRow, branch: Branch, known: Known, named: set[str]) -> list[str]:
    """What one address said of itself, and what is known of it. An AS is named once."""
    words: list[str] = []
    whose = " ".join(filter(None, known.origins.get(branch.address, UNKNOWN)))
    if whose and whose not in named:
        named.add(whose)
        words.append(whose)
    if branch.address in known.names:
        words.append(known.names[branch.address])
    router = branch.router
    if router is None:
        return words
    if router.labels:
        words.append(f"MPLS {' '.join(one.split('/')[0] for one in router.labels.split())}")
    if router.mtu:
        words.append(f"MTU {router.mtu}")
    if router.interface:
        words.append(f"interface {router.interface}")
    if router.translated:
        words.append("addresses translated before here (NAT)")
    if router.refusal:
        words.append(f"refuses: {REFUSALS.get(router.refusal, f'ICMP {router.refusal}')}")
    back = router.return_hops
    if back is not None and abs(back - row.limit) >= ASYMMETRIC:
        words.append(f"way back {back} hops ({back - row.limit:+d})")
    return words


def hop_words(row: HopRow) -> Iterator[str]:
    """What the missing answers mean, and what changed."""
    if row.change is Change.MOVED:
        yield f"moved{_was(row)}"
    elif row.change is Change.NEW:
        yield "new address beside those of the first round"
    elif row.change is Change.FLUTTER:
        yield "flutter: same addresses, other flows"
    verdict = row.judged.verdict if row.judged else HopVerdict.CLEAN
    if verdict is HopVerdict.LOSS and row.judged is not None:
        yield f"loss up to here, at least {share(row.judged.lost_at_least)}"
    elif rate_limited(row):
        word = HopVerdict.RATE_LIMITED if row.state.answered else verdict
        yield f"{word}: no loss of packets"
    elif verdict is HopVerdict.UNDECIDED and row.state.answered:
        yield "loss here undecided"


def _was(row: HopRow) -> str:
    if not row.gone:
        return ""
    more = f" and {len(row.gone) - 2} more" if len(row.gone) > 2 else ""
    return f": was {', '.join(row.gone[:2])}{more}"
