"""The picture as text, at 80 and at 120 columns. What changed on purpose is written anew with

python -m pytest tests/ping/test_ping_screen.py --write-pictures   (then look at it)
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from pathbudget.agents.ping import words
from pathbudget.agents.ping.display import plain_line, print_final
from pathbudget.agents.ping.floors import floor_of, with_host
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.phases import Phase
from pathbudget.agents.ping.screen import Picture, Shown, final, noise_text, screen
from pathbudget.agents.ping.smoke import (
    ALL_LOST,
    AXIS,
    BEYOND,
    FEW_LOST,
    MANY_LOST,
    chart,
    loss_glyph,
    smoke_line,
)
from pathbudget.agents.ping.strip import Column
from pathbudget.probes.record import (
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
)

PICTURES = Path(__file__).with_name("pictures")
MS = 1_000_000
SECOND = 1_000 * MS


def picture_of(states: Sequence[HostState], **changes: object) -> Picture:
    return Picture(
        shown=[Shown(state, "raw") for state in states],
        method="icmp every 1s periodic",
        column_ns=10 * SECOND,
        elapsed_ns=600 * SECOND,
        floors=dict.fromkeys(ClockSource, 12_000),
    )


def text_of(picture: Picture, width: int, height: int) -> str:
    return "\n".join(line.plain.rstrip() for line in screen(picture, width, height)) + "\n"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_picture(
    states: Sequence[HostState], width: int, height: int, request: pytest.FixtureRequest
) -> None:
    text = text_of(picture_of(states), width, height)
    assert len(text.splitlines()) <= height
    assert max(map(len, text.splitlines())) <= width
    kept = PICTURES / f"three-hosts-{width}x{height}.txt"
    if request.config.getoption("--write-pictures"):
        kept.write_text(text)
    assert text == kept.read_text()


def test_no_size_of_terminal_is_overrun(states: Sequence[HostState]) -> None:
    for width in (20, 80, 81, 120, 400):
        for height in (5, 10, 24, 50, 200):
            lines = screen(picture_of(states), width, height)
            assert len(lines) <= height
            assert all(len(line.plain) <= width for line in lines)


def test_a_terminal_without_any_result_yet_is_no_error() -> None:
    empty = HostState(
        host="a",
        probe="icmp",
        address="",
        start_unix_ns=0,
        column_ns=SECOND,
        timeout_ns=SECOND,
    )
    assert "a " in text_of(picture_of([empty]), 80, 24)
    assert screen(picture_of([]), 80, 24)


def test_hosts_in_trouble_come_first_where_not_all_fit(states: Sequence[HostState]) -> None:
    good = [states[0]] * 40
    bad = HostState(
        host="broken.example",
        probe="icmp",
        address="192.0.2.9",
        start_unix_ns=0,
        column_ns=SECOND,
        timeout_ns=SECOND,
    )
    bad.take(Sample(0, "rtt", 0, failure=Failure(FailureKind.TIMEOUT, Stage.WAIT)), "rtt")
    text = text_of(picture_of([*good, bad]), 80, 24)
    assert "broken.exam" in text
    assert re.search(r"\d+ more rows, 0 of them losing packets; all at the end", text)
    assert len(final(picture_of([*good, bad]), 80)) > 41


def test_loss_has_a_letter_and_a_colour() -> None:
    columns = [
        Column(number, 10, lost, (MS,) * 5 if lost < 10 else ())
        for number, lost in enumerate((0, 1, 2, 10))
    ]
    assert [loss_glyph(one) for one in columns] == [" ", FEW_LOST, MANY_LOST, ALL_LOST]
    line = smoke_line(columns, 10)
    assert line.plain[1:] == "oOX"
    styles = [str(span.style) for span in line.spans]
    assert styles == ["green", "yellow", "magenta", "bold red"]
    assert len({str(line.spans[n].style) for n in range(4)}) == 4


def test_noise_does_not_look_like_smoke() -> None:
    """A spread below the noise floor stays on one level."""
    columns = [Column(n, 10, 0, (MS, MS, MS, MS, MS + n * 100)) for n in range(10)]
    assert len(set(smoke_line(columns, 10, floor_ns=12_000).plain)) == 1
    assert len(set(smoke_line(columns, 10, floor_ns=1).plain)) > 1


def test_one_outlier_does_not_flatten_the_others_and_is_marked() -> None:
    columns = [Column(n, 10, 0, (10, 11, 12, 13, 20 + n % 3)) for n in range(30)]
    columns[7] = Column(7, 10, 0, (10, 11, 12, 13, 900))
    drawn = [line.plain[AXIS:] for line in chart(columns, 60, 5, micro=True)]
    assert drawn[0][7] == BEYOND
    assert drawn[0].count(BEYOND) == 1
    assert "\u2591" in drawn[1].replace(drawn[1][7], "", 1)
    high = [Column(n, 10, 0, (10, 11, 12, 13, 900 if n % 2 else 20)) for n in range(30)]
    assert BEYOND not in "".join(line.plain for line in chart(high, 60, 5, micro=True))


def test_a_metro_path_is_in_microseconds_with_the_noise_beside_it(
    states: Sequence[HostState],
) -> None:
    text = text_of(picture_of([states[2]]), 80, 24)
    assert "Differences under 12.0 us are noise here" in text
    assert re.search(r"metro.*0% us +180 ", text)
    assert re.search(r"last \d+ us \(noise 12.0 us\)", text)
    assert noise_text({"K": 6_600, "U": 48_000}) == "Noise by clock: K 6.6 us, U 48.0 us."
    assert noise_text({}) == "The noise floor of this host is not known."


def test_each_row_has_the_noise_of_its_own_clock(states: Sequence[HostState]) -> None:
    floors: dict[str, int] = {ClockSource.KERNEL: 6_600, ClockSource.USER: 48_000}
    mixed = states[1]
    assert floor_of(mixed, floors) == 6_600
    for seq in range(600, 605):  # 5 of 600 are in no percentile
        mixed.take(Sample(seq, "rtt", 0, value_ns=MS, clock_source=ClockSource.USER), "rtt")
    assert floor_of(mixed, floors) == 6_600
    for seq in range(605, 620):
        mixed.take(Sample(seq, "rtt", 0, value_ns=MS, clock_source=ClockSource.USER), "rtt")
    assert floor_of(mixed, floors) == 48_000
    assert floor_of(mixed, {}) is None
    host = NoiseFloor(0, ClockSource.KERNEL, 0, 0, send_lateness_p99_ns=9_000, coalescing_ns=400)
    assert with_host(floors, host) == {ClockSource.KERNEL: 7_000, ClockSource.USER: 57_400}


def test_directions_wait_for_packets_and_say_so() -> None:
    state = HostState(
        host="site",
        probe="stamp",
        address="192.0.2.1",
        start_unix_ns=0,
        column_ns=SECOND,
        timeout_ns=SECOND,
    )
    for metric in (Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE):
        state.take(Sample(0, metric, 0, value_ns=MS), "rtt")
    assert "\n  directions after 100 packets\n" in text_of(picture_of([state]), 80, 24)
    assert (words.drift(-0.3), words.drift(-0.6)) == ("drift 0 ppm", "drift -1 ppm")
    assert words.between(0.005, 0.1) == "0.5%-10%"


def test_directions_flows_load_and_failures_have_lines_of_their_own() -> None:
    state = HostState(
        host="site.example",
        probe="stamp",
        address="192.0.2.1",
        start_unix_ns=0,
        column_ns=10 * SECOND,
        timeout_ns=SECOND,
    )
    for seq in range(200):
        at = seq * SECOND
        for metric, value in ((Metric.TRANSIT_FORWARD, 30), (Metric.TRANSIT_REVERSE, 20)):
            state.take(Sample(seq, metric, at, value_ns=value * MS + seq % 7 * 1_000), "rtt")
        phase = Phase.LOADED if seq % 2 else Phase.IDLE
        rtt = (90 if seq % 2 else 50) * MS
        state.take(Sample(seq, "rtt", at, value_ns=rtt), "rtt", phase)
    lost = Failure(FailureKind.TIMEOUT, Stage.WAIT)
    state.count("lost_forward")
    state.take(Sample(200, "rtt", 200 * SECOND, failure=lost), "rtt", Phase.IDLE)
    no = Failure(FailureKind.UNREACHABLE, Stage.WAIT, "host unreachable")
    state.take(Sample(201, "rtt", 201 * SECOND, failure=no), "rtt", Phase.IDLE)
    text = text_of(picture_of([state]), 80, 24)
    assert re.search(r"^  forward +drift 0 ppm +0\.5%-1\.0% us", text, re.MULTILINE)
    assert re.search(r"^  reverse +drift 0 ppm +0%-0\.5% us", text, re.MULTILINE)
    assert "p50/p95 idle 50.00/50.00, loaded 90.00/90.00, difference 40.00/40.00 ms" in text
    assert "last failure: unreachable: host unreachable" in text


def test_flows_show_their_spread() -> None:
    state = HostState(
        host="site.example",
        probe="icmp",
        address="192.0.2.1",
        start_unix_ns=0,
        column_ns=SECOND,
        timeout_ns=SECOND,
        flows=True,
    )
    for seq in range(39):
        value = (10 + seq % 2) * MS
        state.take(Sample(seq, "rtt", seq * MS, value_ns=value, flow=seq % 2), "rtt")
    assert "2 flows; the ECMP spread takes 20 answers" in text_of(picture_of([state]), 80, 24)
    state.take(Sample(39, "rtt", 39 * MS, value_ns=11 * MS, flow=1), "rtt")
    text = text_of(picture_of([state]), 80, 24)
    assert "2 flows; ECMP spread (of their medians) 1.000 ms" in text


@pytest.mark.parametrize(
    ("value_ns", "micro", "text"),
    [
        (None, False, "-"),
        (float("inf"), False, "lost"),
        (123_456, False, "0.123"),
        (9_999_499, False, "9.999"),
        (9_999_600, False, "10.00"),
        (99_996_000, False, "100.0"),
        (999_960_000, False, "1000"),
        (12_345_000_000, False, "12345"),
        (250_000_000_000, False, "250k"),
        (18_700, True, "18.7"),
        (123_456, True, "123"),
    ],
)
def test_numbers_fit_their_columns(value_ns: float | None, micro: bool, text: str) -> None:
    assert words.duration(value_ns, micro=micro) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "-"),
        (0, "0%"),
        (1e-6, "<.1%"),
        (0.0123, "1.2%"),
        (0.0996, "10%"),
        (0.997, "99%"),
        (1.0, "100%"),
    ],
)
def test_shares_never_hide_a_loss_or_an_answer(ratio: float | None, text: str) -> None:
    assert words.share(ratio) == text


def test_counts_fit_their_column() -> None:
    told = [words.amount(number) for number in (0, 99_999, 100_000, 12_345_678, 10**12)]
    assert told == ["0", "99999", "100k", "12M", "1000G"]


def test_marks_warn_of_what_makes_a_number_doubtful(states: Sequence[HostState]) -> None:
    state = states[0]
    flags = (str(Flag.HOST_BUSY), str(Flag.CLOCK_STEP))
    sample = Sample(600, "rtt", 0, value_ns=MS, clock_source=ClockSource.KERNEL, flags=flags)
    state.take(sample, "rtt")
    state.count("duplicate")
    assert words.marks(state) == "BSD"
    assert words.clock_letter(state) == "K"


def test_a_line_for_a_log_names_every_number(states: Sequence[HostState]) -> None:
    line = plain_line(Shown(states[0], "raw"))
    assert re.match(
        r"frankfurt.example: sent 600 loss 0\.2% min 15\.0\d p50 .* pdv_p99 .* ms K raw$", line
    )


def test_without_colours_nothing_is_lost(
    states: Sequence[HostState], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(force_terminal=True, width=140, markup=False, emoji=False)
    with console.capture() as shown:
        print_final(picture_of(states), console)
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?3[0-9]", shown.get())
    assert "XXO" in re.sub(r"\x1b\[[0-9;]*m", "", shown.get())
