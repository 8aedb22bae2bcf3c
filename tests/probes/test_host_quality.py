"""Noise floor, clock quality, timer and capabilities."""

import asyncio
import ctypes
import errno
import json
import os
import socket
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.probes import capabilities, timer
from pathbudget.probes.capabilities import Capability, clock_discipline, ipv6, report
from pathbudget.probes.clock import ClockWatcher, SystemClock
from pathbudget.probes.clock_quality import KernelTime, read_adjtimex, read_clock_quality
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.noise import measure_noise_floor
from pathbudget.probes.record import AddressFamily, ClockQuality, ClockSource, SyncState
from pathbudget.probes.timer import PreciseTimer

MS = 1_000_000


async def test_the_noise_floor_of_this_host(network: SystemNetwork) -> None:
    floor = await measure_noise_floor(network, SystemClock())
    assert floor.floor_ns > 0
    assert floor.stamp_mode is ClockSource.KERNEL
    assert 0 <= floor.timer_lateness_p50_ns <= floor.timer_lateness_p99_ns
    assert 0 <= floor.steal_ratio <= 1


@pytest.mark.parametrize(
    ("send_stamps", "receive_stamps", "mode"),
    [
        (True, True, ClockSource.KERNEL),
        (False, True, ClockSource.KERNEL_RECEIVE),
        (True, False, ClockSource.USER),
    ],
)
async def test_the_floor_says_which_stamps_there_are(
    send_stamps: bool, receive_stamps: bool, mode: ClockSource, tmp_path: Path
) -> None:
    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock, send_stamps=send_stamps, receive_stamps=receive_stamps)
    before = clock.monotonic_ns()
    floor = await measure_noise_floor(network, clock, tmp_path / "missing")
    assert (floor.stamp_mode, floor.floor_ns) == (mode, 4_000)
    assert (floor.timer_lateness_p99_ns, floor.steal_ratio) == (0, 0.0)
    assert clock.monotonic_ns() - before < 500 * MS


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("cpu 50 0 20 100 0 0 0 30 0 0\ncpu0 1 2\n", 0.15),
        ("cpu 50 0 20 100\n", 0.0),
        ("cpu a b c d e f g h\n", 0.0),
        ("cpu 0 0 0 0 0 0 0 0\n", 0.0),
        ("", 0.0),
    ],
)
async def test_steal_time(text: str, ratio: float, tmp_path: Path) -> None:
    clock = FakeClock(jumps=True)
    (tmp_path / "stat").write_text(text)
    floor = await measure_noise_floor(FakeNetwork(clock), clock, tmp_path / "stat")
    assert floor.steal_ratio == pytest.approx(ratio)


def test_the_kernel_answers_about_its_clock() -> None:
    answer = read_adjtimex()
    assert answer is not None
    assert 0 <= answer.state <= 5
    quality = read_clock_quality()
    assert quality.source == "adjtimex"
    assert quality.sync_state is not SyncState.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "state", "bound_ns"),
    [
        (KernelTime(0, 0x2001, 1_500, 300), SyncState.SYNCHRONISED, 1_500_000),
        (KernelTime(1, 0x2001, 20, 20), SyncState.SYNCHRONISED, 20_000),
        (KernelTime(0, 0x2001, 500, 0), SyncState.SYNCHRONISED, None),
        (KernelTime(0, 0x2001, 500, 16_000_000), SyncState.SYNCHRONISED, None),
        (KernelTime(5, 0x0040, 16_000_000), SyncState.UNSYNCHRONISED, None),
        (KernelTime(0, 0x0040, 500), SyncState.UNSYNCHRONISED, None),
        (None, SyncState.UNKNOWN, None),
    ],
)
def test_what_the_kernel_says(
    answer: KernelTime | None, state: SyncState, bound_ns: int | None
) -> None:
    clock = FakeClock()
    watcher = ClockWatcher(clock)
    clock.step(-70 * MS)
    watcher.read()
    quality = read_clock_quality(watcher, lambda: answer)
    assert (quality.sync_state, quality.offset_bound_ns) == (state, bound_ns)
    assert (quality.steps, quality.largest_step_ns) == (1, 70 * MS)


def test_a_libc_without_adjtimex_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_libc(*arguments: object, **options: object) -> None:
        raise OSError("no libc")

    monkeypatch.setattr(ctypes, "CDLL", no_libc)
    assert read_clock_quality() == ClockQuality()


async def rings_in_order(alarm: PreciseTimer) -> None:
    rung: list[int] = []
    start = time.monotonic_ns()

    async def wait(after_ms: int) -> None:
        await alarm.wait_until(start + after_ms * MS)
        assert time.monotonic_ns() >= start + after_ms * MS
        rung.append(after_ms)

    await asyncio.gather(*(wait(after_ms) for after_ms in (90, 30, 60, 30, -5)))
    assert rung == [-5, 30, 30, 60, 90]


async def test_the_timer_never_rings_early() -> None:
    alarm = PreciseTimer()
    assert alarm.precise
    await rings_in_order(alarm)
    alarm.close()


async def test_the_timer_works_without_timerfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer, "_open_timerfd", lambda: None)
    alarm = PreciseTimer()
    assert not alarm.precise
    await rings_in_order(alarm)
    alarm.close()


async def test_a_cancelled_wait_does_not_keep_others_from_ringing() -> None:
    alarm = PreciseTimer()
    soon = time.monotonic_ns() + 20 * MS
    first = asyncio.create_task(alarm.wait_until(soon))
    second = asyncio.create_task(alarm.wait_until(soon + 10 * MS))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()
    alarm.close()
    alarm.close()


async def test_closing_the_timer_cancels_what_waits() -> None:
    alarm = PreciseTimer()
    waiting = asyncio.create_task(alarm.wait_until(time.monotonic_ns() + 60_000 * MS))
    await asyncio.sleep(0)
    alarm.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_one_network_serves_one_loop_after_the_other() -> None:
    network = SystemNetwork()
    for _ in range(2):
        asyncio.run(network.wait_until(time.monotonic_ns() + 5 * MS))
    network.close()
    network.close()


NAMES = [
    "ICMP raw IPv4",
    "ICMP raw IPv6",
    "ICMP datagram IPv4",
    "ICMP datagram IPv6",
    "kernel send stamps",
    "kernel receive stamps",
    "IPv6",
    "clock discipline",
    "precise timers",
]


def test_the_report_names_everything_and_a_remedy_for_what_is_missing() -> None:
    found = report()
    assert [one.name for one in found] == NAMES
    for one in found:
        assert one.reason
        if one.name.startswith("ICMP") and not one.available and "without" not in one.reason:
            assert one.remedy.startswith("sudo ")


def refuse(code: int) -> object:
    def open_nothing(family: AddressFamily, *, privileged: bool) -> socket.socket:
        raise OSError(code, os.strerror(code))

    return open_nothing


def test_without_privileges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capabilities, "try_icmp", refuse(errno.EPERM))
    monkeypatch.setattr(capabilities, "PING_GROUP_RANGE", tmp_path / "missing")
    icmp = report()[:4]
    assert [one.available for one in icmp] == [False] * 4
    assert icmp[0].reason == "needs CAP_NET_RAW"
    assert "setcap cap_net_raw+ep" in icmp[1].remedy
    assert "ping_group_range" in icmp[2].reason
    assert "ping_group_range='0 2147483647'" in icmp[3].remedy


def test_without_ipv6(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capabilities, "try_icmp", refuse(errno.EAFNOSUPPORT))
    monkeypatch.setattr(capabilities, "IF_INET6", tmp_path / "missing")
    assert report()[1].reason == "this kernel runs without IPv6"
    absent = ipv6(tmp_path / "missing")
    assert absent == Capability("IPv6", available=False, reason="this kernel runs without IPv6")
    interfaces = tmp_path / "if_inet6"
    interfaces.write_text(
        "00000000000000000000000000000001 01 80 10 80       lo\n"
        "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
    )
    assert ipv6(interfaces).reason == "no address beyond this link"
    with interfaces.open("a") as more:
        more.write("20010db8000000000000000000000001 02 40 00 80     eth0\n")
    assert ipv6(interfaces).available


def test_the_clock_in_words() -> None:
    good = ClockQuality(SyncState.SYNCHRONISED, "adjtimex", 1_234_567)
    assert clock_discipline(lambda: good).reason == "synchronised to within 1.2 ms"
    fine = ClockQuality(SyncState.SYNCHRONISED, "chrony", 4_200)
    assert clock_discipline(lambda: fine).reason == "synchronised to within 4.2 us"
    silent = ClockQuality(SyncState.SYNCHRONISED, "adjtimex")
    assert clock_discipline(lambda: silent).reason == "synchronised; adjtimex states no error"
    assert clock_discipline(ClockQuality).reason == "the kernel does not say"
    poor = ClockQuality(SyncState.UNSYNCHRONISED, "adjtimex")
    assert clock_discipline(lambda: poor).remedy


def test_the_command_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "try_icmp", refuse(errno.EPERM))
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    done = CliRunner().invoke(application, ["capabilities"])
    assert done.exit_code == 0
    assert all(len(line) <= 80 for line in done.output.splitlines())
    assert "tcp and tls work" in done.output
    for name in NAMES:
        assert name in done.output


def test_the_command_as_json() -> None:
    done = CliRunner().invoke(application, ["capabilities", "--format", "json"])
    assert done.exit_code == 0
    assert [one["name"] for one in json.loads(done.output)] == NAMES
