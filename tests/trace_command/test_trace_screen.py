"""The picture: legible at 80 columns and at 40, nothing told by colour alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace_command.conftest import TARGET, Walk, plain, state_of

from pathbudget.agents.trace.hop_rows import judged
from pathbudget.agents.trace.known import Known, Whose
from pathbudget.agents.trace.path_state import PathState
from pathbudget.agents.trace.screen import Picture, final, screen
from pathbudget.probes.record import Note


def drawn(state: PathState, width: int = 80, *, known: Known | None = None) -> list[str]:
    picture = Picture(
        states=[state],
        verdicts={id(state): judged(state)},
        method="A round every 10s.",
        elapsed_ns=0,
        floor_ns=12_000,
        known=known or Known(),
    )
    return [line.plain.rstrip() for line in final(picture, width)]


def moving(trace: int, flow: int) -> Sequence[str | None]:
    """Flutters at hop 2, has a silent hop, moves after two rounds."""
    carrier = "10.2.0.1" if trace < 2 else "10.3.0.1"
    return ("10.0.0.1", f"10.1.0.{(flow + trace) % 2 + 1}", carrier, None, TARGET)


def test_a_diamond_at_80_columns() -> None:
    lines = drawn(state_of(Walk(plain)))
    assert lines[0] == f"{TARGET}, udp port 33434, 6 flows, round 3, 9.800 ms"
    assert lines[1].split() == [
        *("address", "flows", "loss", "min", "p50", "p95"),
        *("ms", "over", "time"),
    ]
    assert lines[2].startswith(" 1      10.0.0.1       6/6   0% 0.3")
    assert [line[:18] for line in lines[3:7]] == [
        " 2 ┌a   10.1.0.1  ",
        "   └b   10.1.0.2  ",
        " 3 ┌a<a 10.1.1.1  ",
        "   └b<b 10.1.1.2  ",
    ]
    assert "<ab: from a and b of the hop before" in lines


def test_what_moved_is_told_from_flutter_in_words() -> None:
    lines = drawn(state_of(Walk(moving), rounds=3))
    assert any(line.startswith(" 3!   10.3.0.1") for line in lines)
    assert "moved: was 10.2.0.1" in [line.strip() for line in lines]
    flutter = drawn(state_of(Walk(moving), rounds=2))
    assert any(line.startswith(" 2~┌a 10.1.0.1") for line in flutter)
    assert "moved" not in " ".join(flutter)


def test_notes_of_hops_are_said_below_them() -> None:
    notes: dict[str, dict[str, Note]] = {
        "10.2.0.1": {"mpls": "24015/0/0/1 16008/0/1/1", "mtu": 1400, "translated": True},
        "10.1.1.1": {"return_hops": 9, "icmp": "3/13"},
        "10.1.1.2": {"return_hops": 4},
    }
    text = " ".join(" ".join(drawn(state_of(Walk(plain, notes=notes)))).split())
    assert "MPLS 24015 16008; MTU 1400; addresses translated before here (NAT)" in text
    assert "refuses: forbidden by a filter; way back 9 hops (+6)" in text
    assert "way back 4" not in text


def test_an_as_is_named_where_it_begins() -> None:
    origins = {"10.1.0.1": Whose("AS65012", "carrier-b"), "10.1.0.2": Whose("AS65012", "carrier-b")}
    lines = drawn(state_of(Walk(plain)), known=Known(origins, {"10.0.0.1": "gw.example"}))
    assert sum("AS65012 carrier-b" in line for line in lines) == 1
    assert sum("AS65012" in line for line in lines) == 3
    assert "gw.example" in " ".join(lines)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("family", ["4", "6"])
def test_no_line_is_wider_than_the_terminal_and_every_address_is_whole(
    width: int, family: str
) -> None:
    v6 = "2001:db8:1234:5678:9abc:def0:1234:"
    target = f"{v6}ffff" if family == "6" else TARGET

    def script(trace: int, flow: int) -> Sequence[str | None]:
        if family == "4":
            return moving(trace, flow)
        return (f"{v6}1", f"{v6}{flow % 8 + 10:x}", f"{v6}2", target)

    walk = Walk(script, flows=16)
    lines = drawn(state_of(walk, target=target), width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    seen = {who for flow in range(16) for who in script(2, flow) if who}
    joined = text.replace("\n      ", "")
    assert all(who in joined for who in seen)
    assert f"{walk.flows}/{walk.flows}" in text


def test_a_screen_that_is_too_small_says_what_is_hidden() -> None:
    state = state_of(Walk(moving))
    picture = Picture([state], {}, "A round every 10s.", 0)
    assert len(screen(picture, 80, 60)) == len(final(picture, 80))
    small = screen(picture, 80, 6)
    assert len(small) == 6
    assert small[-1].plain == f"{len(final(picture, 80)) - 5} more lines; all at the end."


@pytest.mark.parametrize(
    ("notes", "words"),
    [({}, "loss here undecided"), ({"limited": "2 3"}, "rate-limited responder: no loss")],
    ids=["alone", "asked-again"],
)
def test_few_missing_answers_are_undecided_unless_the_trace_asked_again(
    notes: dict[str, Note], words: str
) -> None:
    walk = Walk(plain, silent=lambda who, trace, flow: who == "10.1.0.1" and flow < 3)
    walk.end_notes = {**walk.end_notes, **notes}
    assert words in " ".join(" ".join(drawn(state_of(walk, rounds=1))).split())


def test_not_reached_says_why() -> None:
    lines = drawn(state_of(Walk(lambda trace, flow: ("10.0.0.1", None, None))))
    assert "Not reached: the hops beyond are silent." in lines


def test_an_open_stopping_rule_is_said() -> None:
    walk = Walk(plain, end_notes={"complete": False, "confidence": 0.95, "stopped": "budget"})
    text = " ".join(drawn(state_of(walk)))
    assert "There may be more addresses than were found at 95 %" in text


@given(
    paths=st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=8),
        min_size=1,
        max_size=12,
    ),
    width=st.integers(40, 100),
)
@settings(max_examples=40, deadline=None)
def test_any_path_set_is_drawn_whole_within_the_width(
    paths: list[list[int | None]], width: int
) -> None:
    def script(trace: int, flow: int) -> Sequence[str | None]:
        turned = paths[(flow + trace) % len(paths)]
        return [None if n is None else f"10.{hop}.0.{n}" for hop, n in enumerate(turned)]

    state = state_of(Walk(script, flows=len(paths)), rounds=2)
    lines = drawn(state, width)
    assert max(map(len, lines)) <= width
    assert state.latest is not None
    seen = {who for hops in state.latest.flows.values() for who in hops.values() if who}
    assert all(who in "\n".join(lines) for who in seen)
