"""Asking the daemons, in their order, with whatever goes wrong on the way."""

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.clock_quality import KernelTime, survey_clock
from pathbudget.probes.clock_statement import UNSYNCHRONISED, ClockStatement
from pathbudget.probes.clock_survey import REFRESH_NS, ClockSurvey
from pathbudget.probes.fake_network import FakeClock
from pathbudget.probes.record import ClockQuality, SyncState
from pathbudget.probes.time_daemons import (
    ALL_SECONDS,
    Deadline,
    Places,
    ask_chrony,
    ask_ntpd,
    ask_ptp,
)

MS = 1_000_000
Answer = Callable[[bytes], list[bytes]]
Choose = Callable[..., Answer]
Serve = Callable[..., int]
KEPT = KernelTime(0, 0x2001, 1_500, 300)
UNKEPT = KernelTime(5, 0x40, 16_000_000, 16_000_000)


def test_chrony_by_its_unix_socket(
    serve: Serve, chronyd: Choose, nowhere: Places, tmp_path: Path
) -> None:
    path = tmp_path / "chronyd.sock"
    serve(chronyd("chrony"), path)
    found = ask_chrony(Deadline(), nowhere._replace(chrony_socket=path))
    assert found is not None
    assert found.bound_ns == pytest.approx(6_556, abs=30)
    assert [one.name for one in tmp_path.iterdir()] == ["chronyd.sock"]  # our own is gone


def test_chrony_by_udp_where_the_socket_is_not_ours(
    serve: Serve, chronyd: Choose, nowhere: Places
) -> None:
    port = serve(chronyd("chrony"))
    found = ask_chrony(Deadline(), nowhere._replace(chrony_port=port))
    assert found is not None
    assert found.synchronised


def test_ntpd(serve: Serve, ntpd: Choose, nowhere: Places) -> None:
    found = ask_ntpd(Deadline(), nowhere._replace(ntp_port=serve(ntpd("ntpsec"))))
    assert found is not None
    assert found.bound_ns == pytest.approx(1_480_480, abs=1)


@pytest.mark.parametrize("domain", [0, 24, 44])
def test_ptp4l_in_the_domains_that_are_in_use(
    serve: Serve, ptp4l: Choose, nowhere: Places, tmp_path: Path, domain: int
) -> None:
    path = tmp_path / "ptp4l"
    serve(ptp4l("ptp4l", domain), path)
    places = nowhere._replace(ptp_sockets=(tmp_path / "ptp4lro", path))
    assert ask_ptp(Deadline(), places, tmp_path / "none") == ClockStatement(True, 3265, 235)
    (tmp_path / "ptp" / "ptp0").mkdir(parents=True)
    assert ask_ptp(Deadline(), places, tmp_path / "ptp") == ClockStatement(True, None, 235)


def always(replies: list[bytes]) -> Answer:
    def answer(request: bytes) -> list[bytes]:
        return replies

    return answer


def say(statement: ClockStatement | None) -> Callable[[Deadline], ClockStatement | None]:
    def ask(deadline: Deadline) -> ClockStatement | None:
        return statement

    return ask


ASKS = [ask_chrony, ask_ntpd, ask_ptp]


@pytest.mark.parametrize("ask", ASKS)
def test_nobody_there(
    ask: Callable[[Deadline, Places], ClockStatement | None], nowhere: Places
) -> None:
    assert ask(Deadline(), nowhere) is None


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(
    "replies",
    [[], [b""], [b"\xff" * 104], [b"\x06\x02" + bytes(102)], [bytes(2000)] * 3],
    ids=["silence", "nothing", "ones", "zeroes", "much"],
)
def test_pitfall_12_a_daemon_that_talks_garbage_is_as_good_as_none(
    ask: Callable[[Deadline, Places], ClockStatement | None],
    replies: list[bytes],
    serve: Serve,
    nowhere: Places,
    tmp_path: Path,
) -> None:
    path = tmp_path / "daemon"
    serve(always(replies), path)
    port = serve(always(replies))
    deadline = Deadline()
    assert ask(deadline, Places(path, port, port, (path,))) is None


def test_a_daemon_that_hangs_is_waited_for_no_longer_than_said(
    serve: Serve, tmp_path: Path
) -> None:
    """A socket whose owner has stopped reading: sends fill its queue, replies never come."""
    path = tmp_path / "daemon"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(path))
        port = serve(always([]))
        places = Places(path, port, port, (path, path))
        deadline = Deadline()
        before = time.monotonic()
        for _ in range(20):
            assert ask_ptp(deadline, places) is None
            assert ask_chrony(deadline, places) is None
        took = time.monotonic() - before
    assert took < 20 * ALL_SECONDS  # not one after the other: a loaded host has time for this
    with pytest.raises(TimeoutError):
        deadline.remaining()


def test_a_reply_with_another_sequence_is_passed_over(
    serve: Serve, chronyd: Choose, recorded: dict[str, list[bytes]], nowhere: Places
) -> None:
    good = chronyd("chrony")
    stale = recorded["chrony"][0]

    def answer(request: bytes) -> list[bytes]:
        return [stale, *good(request)]

    port = serve(answer)
    assert ask_chrony(Deadline(), nowhere._replace(chrony_port=port)) is not None


SYNCED = ClockStatement(synchronised=True, bound_ns=7_000, estimated_ns=700, skew_ppm=0.02)
KERNEL_SAYS = ClockQuality(SyncState.SYNCHRONISED, "adjtimex", 1_500_000)


@pytest.mark.parametrize(
    ("said", "kernel", "source", "state"),
    [
        ((SYNCED, SYNCED, SYNCED), KEPT, "chrony", SyncState.SYNCHRONISED),
        ((SYNCED, None, None), UNKEPT, "chrony", SyncState.SYNCHRONISED),
        ((None, SYNCED, SYNCED), KEPT, "ntpd", SyncState.SYNCHRONISED),
        ((UNSYNCHRONISED, SYNCED, None), KEPT, "ntpd", SyncState.SYNCHRONISED),
        ((None, None, SYNCED), KEPT, "ptp4l", SyncState.SYNCHRONISED),
        # ptp4l is right about its own clock, but nobody carries it over to the wall clock:
        ((None, None, SYNCED), UNKEPT, "adjtimex", SyncState.UNSYNCHRONISED),
        ((UNSYNCHRONISED, None, None), KEPT, "adjtimex", SyncState.SYNCHRONISED),
        ((UNSYNCHRONISED, None, None), UNKEPT, "chrony", SyncState.UNSYNCHRONISED),
        ((None, UNSYNCHRONISED, None), None, "ntpd", SyncState.UNSYNCHRONISED),
        ((None, None, None), KEPT, "adjtimex", SyncState.SYNCHRONISED),
        ((None, None, None), UNKEPT, "adjtimex", SyncState.UNSYNCHRONISED),
        ((None, None, None), None, "", SyncState.UNKNOWN),
    ],
)
def test_who_is_believed(
    said: tuple[ClockStatement | None, ...],
    kernel: KernelTime | None,
    source: str,
    state: SyncState,
) -> None:
    names = ("chrony", "ntpd", "ptp4l")
    daemons = {name: say(one) for name, one in zip(names, said, strict=True)}
    found = survey_clock(None, lambda: kernel, daemons)
    assert (found.source, found.sync_state) == (source, state)
    if state is not SyncState.SYNCHRONISED:
        assert found.offset_bound_ns is None
    elif source != "adjtimex":
        assert (found.offset_bound_ns, found.estimated_error_ns) == (7_000, 700)
        assert found.skew_ppm == 0.02


def test_pitfall_10_what_was_known_of_the_clock_is_void_after_a_step() -> None:
    """The wall clock only labels, and a jump of it is marked (mtr PR#281)."""
    clock = FakeClock()
    watcher = ClockWatcher(clock)
    said = ClockQuality(
        SyncState.SYNCHRONISED, "chrony", 10_000, estimated_error_ns=1_000, skew_ppm=0.1
    )
    survey = ClockSurvey(clock, watcher, lambda: said)
    fresh = asyncio.run(survey.refresh())
    assert fresh == said
    clock.advance(2_000 * MS)  # 15 ppm of 2 s: 30 us
    aged = survey.quality()
    assert (aged.offset_bound_ns, aged.estimated_error_ns) == (40_000, 31_000)
    clock.step(-70 * MS)
    watcher.read()
    doubtful = survey.quality()
    assert (doubtful.sync_state, doubtful.offset_bound_ns) == (SyncState.UNKNOWN, None)
    assert (doubtful.steps, doubtful.largest_step_ns) == (1, 70 * MS)
    again = asyncio.run(survey.refresh())
    assert (again.sync_state, again.offset_bound_ns, again.steps) == (said.sync_state, 10_000, 1)


def test_a_step_during_a_survey_makes_it_void() -> None:
    clock = FakeClock()
    watcher = ClockWatcher(clock)

    def survey_across_a_step() -> ClockQuality:
        clock.step(70 * MS)
        watcher.read()
        return ClockQuality(SyncState.SYNCHRONISED, "chrony", 10_000)

    survey = ClockSurvey(clock, watcher, survey_across_a_step)
    assert asyncio.run(survey.refresh()).offset_bound_ns is None


async def test_a_survey_does_not_hold_up_the_loop() -> None:
    clock = FakeClock()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()
    release = asyncio.Event()

    def slow() -> ClockQuality:
        loop.call_soon_threadsafe(began.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
        return KERNEL_SAYS

    survey = ClockSurvey(clock, ClockWatcher(clock), slow)
    task = asyncio.create_task(survey.refresh())
    await began.wait()
    assert not task.done()  # the loop runs while the survey waits for it
    release.set()
    assert await task == KERNEL_SAYS


def wait_for(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_a_survey_that_is_old_is_asked_again_in_the_background() -> None:
    clock = FakeClock()
    watcher = ClockWatcher(clock)
    asked: list[int] = []

    def survey_clock_again() -> ClockQuality:
        asked.append(len(asked))
        return ClockQuality(SyncState.SYNCHRONISED, "chrony", 10_000 * len(asked))

    survey = ClockSurvey(clock, watcher, survey_clock_again)
    survey.now()
    wait_for(lambda: survey.quality().offset_bound_ns == 10_000)
    assert survey.now().offset_bound_ns == 10_000
    clock.advance(REFRESH_NS)
    assert survey.now().source == "chrony"  # the old one, until the new one is there
    wait_for(lambda: survey.quality().offset_bound_ns == 20_000)
    clock.step(70 * MS)
    watcher.read()
    assert survey.quality().offset_bound_ns is None
    survey.now()  # the clock is looked at again, at once
    wait_for(lambda: survey.quality().offset_bound_ns == 30_000)
    assert len(asked) == 3
