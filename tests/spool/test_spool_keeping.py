"""What a spool keeps, in which order, what it drops, and that it counts all of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.spool.conftest import balanced

from pathbudget.agents.spool.bounds import DAY_NS, Bounds, DropPolicy
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.errors import SpoolError
from pathbudget.probes.fake_time import FakeClock

Open = Callable[..., Spool]
PAYLOAD = b'{"schema":4}\n'


def fill(spool: Spool, count: int, *, samples: int = 3, size: int = 100) -> None:
    for number in range(count):
        spool.append(f"id-{number}", bytes([number % 251]) * size, samples)


def test_what_is_appended_waits_in_order(open_spool: Open, clock: FakeClock) -> None:
    spool = open_spool()
    entry = spool.append("one", PAYLOAD, 7)
    assert entry is not None
    spool.append("two", b"", 0)
    assert spool.waiting(0, 10)[0] == entry
    assert [one.id for one in spool.waiting(0, 10)] == ["one", "two"]
    assert [one.id for one in spool.waiting(entry.number, 10)] == ["two"]
    assert [one.id for one in spool.waiting(0, 1)] == ["one"]
    assert entry.appended_unix_ns == clock.unix_ns()
    assert spool.state().oldest_unix_ns == entry.appended_unix_ns


def test_acknowledged_entries_are_gone_also_after_a_restart(open_spool: Open) -> None:
    spool = open_spool()
    fill(spool, 5)
    spool.acknowledge([2, 4, 2, 99])
    before = spool.state()
    again = open_spool()
    assert [one.number for one in again.waiting(0, 10)] == [1, 3, 5]
    assert again.state() == before
    assert again.state().acknowledged_samples == 6
    assert again.append("next", PAYLOAD, 1).number == 6  # type: ignore[union-attr]


def test_a_killed_writer_loses_nothing(tmp_path: Path, clock: FakeClock) -> None:
    spool = Spool.open(tmp_path / "a", clock=clock)
    fill(spool, 40)
    spool.acknowledge(range(1, 11))
    copy = tmp_path / "b"
    copy.mkdir()
    for path in (tmp_path / "a").iterdir():  # as the kernel has them, without a close
        (copy / path.name).write_bytes(path.read_bytes())
    spool.close()
    with Spool.open(copy, clock=clock) as after:
        assert [one.number for one in after.waiting(0, 100)] == list(range(11, 41))
        assert after.state().made_samples == 120
        assert balanced(after.state())


def test_a_second_process_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    with (
        Spool.open(tmp_path, clock=clock),
        pytest.raises(SpoolError, match="another process has this spool"),
    ):
        Spool.open(tmp_path, clock=clock)
    Spool.open(tmp_path, clock=clock).close()


@pytest.mark.parametrize("drop", DropPolicy)
def test_more_than_the_bound_is_dropped_by_the_policy(open_spool: Open, drop: DropPolicy) -> None:
    spool = open_spool(Bounds(bytes=20_000, drop=drop))
    fill(spool, 200)
    numbers = [one.number for one in spool.waiting(0, 1000)]
    state = spool.state()
    assert balanced(state)
    assert state.dropped_samples["bytes"] == 3 * (200 - len(numbers))
    assert 60 < len(numbers) < 140
    ids = [one.id for one in spool.waiting(0, 1000)]
    kept = range(200 - len(ids), 200) if drop is DropPolicy.OLDEST else range(len(ids))
    assert ids == [f"id-{number}" for number in kept]


def test_what_is_larger_than_the_spool_drops_nothing_else(open_spool: Open) -> None:
    spool = open_spool(Bounds(bytes=10_000))
    fill(spool, 5)
    assert spool.append("large", bytes(20_000), 9) is None
    assert spool.state().waiting_entries == 5
    assert spool.state().dropped_samples == {"bytes": 9}


def test_a_settled_file_makes_room_for_the_newest(open_spool: Open) -> None:
    spool = open_spool(Bounds(bytes=4000, drop=DropPolicy.NEWEST))
    for number in range(100):
        entry = spool.append(f"id-{number}", bytes(1000), 1)
        assert entry is not None
        spool.acknowledge([entry.number])
    assert spool.state().dropped_samples == {}


def test_entries_age_by_a_clock_that_no_step_moves(open_spool: Open, clock: FakeClock) -> None:
    spool = open_spool(Bounds(age_ns=DAY_NS))
    fill(spool, 3)
    clock.step(400 * DAY_NS)
    assert spool.state().waiting_entries == 3
    clock.step(-800 * DAY_NS)
    clock.advance(DAY_NS - 1)
    fill(spool, 1)
    assert spool.state().waiting_entries == 4
    clock.advance(2)
    state = spool.state()
    assert (state.waiting_entries, state.dropped_samples) == (1, {"age": 9})
    assert balanced(state)
    again = open_spool(Bounds(age_ns=DAY_NS))
    assert again.state() == state


def test_entries_age_while_nobody_has_the_spool_open(open_spool: Open, clock: FakeClock) -> None:
    spool = open_spool(Bounds(age_ns=DAY_NS))
    fill(spool, 3)
    spool.close()
    clock.advance(DAY_NS // 2)
    open_spool(Bounds(age_ns=DAY_NS)).close()
    clock.step(-30 * DAY_NS)  # a clock that runs behind makes nothing older
    assert open_spool(Bounds(age_ns=DAY_NS)).state().waiting_entries == 3
    clock.advance(DAY_NS)
    assert open_spool(Bounds(age_ns=DAY_NS)).state().dropped_samples == {"age": 9}


def test_files_that_are_settled_go(open_spool: Open, tmp_path: Path) -> None:
    spool = open_spool(Bounds(bytes=64 * 4096))
    fill(spool, 200, size=500)
    spool.acknowledge(range(1, 200))
    assert spool.first_number > 190
    spool.unsynced()()
    assert len(list((tmp_path / "spool").glob("*.segment"))) == 1
    assert set(spool.names()) == {f"id-{number - 1}" for number in range(spool.first_number, 201)}


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3000), st.integers(0, 9)),
        st.tuples(st.just("acknowledge"), st.integers(0, 30), st.integers(1, 5)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 2 * DAY_NS), st.just(0)),
        st.tuples(st.just("sync"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(operations=OPERATIONS, drop=st.sampled_from(DropPolicy))
def test_every_sample_is_somewhere_always(
    operations: list[tuple[str, int, int]],
    drop: DropPolicy,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder, clock = tmp_path_factory.mktemp("spool"), FakeClock()
    bounds = Bounds(bytes=12_000, age_ns=3 * DAY_NS, drop=drop)
    spool, made, seen = Spool.open(folder, bounds, clock), 0, set[int]()
    for kind, amount, other in operations:
        if kind == "append":
            entry = spool.append(f"id-{made}-{amount}", bytes(amount), other)
            made += other
            assert entry is None or entry.number not in seen
            seen |= {entry.number} if entry else set()
        elif kind == "acknowledge":
            waiting = spool.waiting(0, 1000)
            spool.acknowledge(one.number for one in waiting[amount::other])
        elif kind == "wait":
            clock.advance(amount)
        elif kind == "sync":
            spool.unsynced()()
        else:
            before = spool.state()
            spool.close()
            spool = Spool.open(folder, bounds, clock)
            assert spool.state() == before
            assert spool.problems == []
        state = spool.state()
        assert state.made_samples == made
        assert balanced(state)
        assert sum(path.stat().st_size for path in folder.glob("*.segment")) <= bounds.bytes
        numbers = [one.number for one in spool.waiting(0, 1000)]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == state.waiting_entries
    spool.close()
