"""When the lab itself was late: windows with many late deliveries, joined, on the wall clock."""

from pathbudget.agents.lab import lateness
from pathbudget.agents.lab.lateness import LATE_NS, WINDOW_NS, LatenessWatch

MS = 1_000_000
UNIX_NS = 1_790_000_000 * 10**9


def watch_of(errors_ms: dict[int, float], *, until_ms: int, every_ms: int = 5) -> LatenessWatch:
    """A delivery every 5 ms; `errors_ms` by when."""
    now = 0
    watch = LatenessWatch(lambda: UNIX_NS + now)
    for at in range(0, until_ms, every_ms):
        now = at * MS
        watch.note(round(errors_ms.get(at, 0.0) * MS), now)
    return watch


def test_a_lab_that_is_in_time_has_no_stall() -> None:
    assert watch_of({}, until_ms=2000).stalls(2000 * MS) == ()
    just = LATE_NS / MS
    assert watch_of(dict.fromkeys(range(0, 2000, 5), just), until_ms=2000).stalls(2000 * MS) == ()


def test_a_late_packet_now_and_then_is_none_and_one_in_ten_is() -> None:
    rare = dict.fromkeys(range(0, 2000, 50), 3.0)
    assert watch_of(rare, until_ms=2000).stalls(2000 * MS) == ()
    often = dict.fromkeys(range(0, 2000, 30), 3.0)
    (stall,) = watch_of(often, until_ms=2000).stalls(2000 * MS)
    assert stall.late == len(often)
    assert stall.deliveries == 400


def test_a_stall_begins_when_what_was_late_had_been_due() -> None:
    """Nothing was delivered from 1,000 to 1,200 ms, then all of it at once."""
    now = 0
    watch = LatenessWatch(lambda: UNIX_NS + now)
    for at in (*range(0, 1000, 5), *[1200] * 40, *range(1205, 3000, 5)):
        now = at * MS
        late = 200 if at == 1200 else 0
        watch.note(late * MS, now)
    (stall,) = watch.stalls(3000 * MS)
    assert stall.began_unix_ns - UNIX_NS <= 1000 * MS
    assert 1200 * MS <= stall.ended_unix_ns - UNIX_NS <= 1200 * MS + WINDOW_NS
    assert (stall.late, stall.largest_ns) == (40, 200 * MS)


def test_neighbouring_windows_are_one_and_others_are_not() -> None:
    errors = dict.fromkeys((*range(0, 600, 5), *range(2000, 2200, 5)), 1.0)
    stalls = watch_of(errors, until_ms=4000).stalls(4000 * MS)
    assert len(stalls) == 2
    first, second = stalls
    assert first.ended_unix_ns < second.began_unix_ns
    assert (first.late, second.late) == (120, 40)


def test_the_number_of_stalls_is_bounded() -> None:
    most = lateness.MOST_STALLS
    now = 0
    watch = LatenessWatch(lambda: UNIX_NS + now)
    for number in range(most + 50):
        now = number * 4 * WINDOW_NS
        watch.note(MS, now)
    stalls = watch.stalls(now + 1)
    assert len(stalls) == most
    assert sum(stall.late for stall in stalls) == most + 50
