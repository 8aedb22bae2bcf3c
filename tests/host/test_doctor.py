"""`pathbudget doctor`: what is claimed, what is advised, and how it reads."""

import errno
import json
import os

import msgspec
import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli import doctor as command
from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application
from pathbudget.agents.doctor import examination
from pathbudget.agents.doctor.advice import advice
from pathbudget.agents.doctor.claims import claims
from pathbudget.agents.doctor.examination import Examination
from pathbudget.agents.doctor.measuring import Figures, measure
from pathbudget.agents.doctor.show import as_text
from pathbudget.agents.doctor.words import duration
from pathbudget.probes.capabilities import Capability
from pathbudget.probes.channels import LoopbackTest
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.clock_quality import KernelTime
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.host_cpu import Scheduling
from pathbudget.probes.host_device import Device
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import ClockQuality, SyncState

GOOD = Figures(4_900, 40_000, 60_000, 900_000, 40_000, 120_000, 300_000)
BUSY = Figures(5_400, 44_000, 62_000, 6_400_000, 1_100_000, 3_200_000, 3_300_000)
NOTHING = Figures(None, None, None, None, None, None, None)
ICMP = tuple(
    Capability(f"ICMP {kind} {family}", available=True, reason="may be opened")
    for kind in ("raw", "datagram")
    for family in ("IPv4", "IPv6")
)
NO_ICMP = tuple(
    Capability(one.name, available=False, reason="needs CAP_NET_RAW", remedy="sudo do something")
    for one in ICMP
)
WELL = Examination(
    software="pathbudget 0.1.0",
    kernel="6.1.0",
    virtual="",
    seconds=2.0,
    quiet=GOOD,
    busy=BUSY,
    steal_ratio=0.0,
    scheduling=Scheduling(50_000, 0, 0.95, "performance", 2),
    realtime_allowed=True,
    devices=(Device("eth0", 0, 0, False, False),),
    clock=ClockQuality(SyncState.SYNCHRONISED, "chrony", 250_000, estimated_error_ns=20_000),
    kernel_clock=KernelTime(0, 0x2001, 300, 20, 1.2, 37),
    capabilities=ICMP,
)


def but(**changes: object) -> Examination:
    return msgspec.structs.replace(WELL, **changes)


def said(found: Examination) -> dict[str, str]:
    return {claim.number: claim.text for claim in claims(found)}


def test_a_good_host_needs_no_advice() -> None:
    assert advice(WELL) == ()
    assert said(WELL) == {
        "round trips by kernel stamps": "differences under 5.4 us are noise here",
        "TCP connects (TCP_INFO)": "differences under 44 us are noise here",
        "send times": "99 % within 120 us (busy loop: 3.2 ms)",
        "variation per direction": "yes, without synchronised clocks",
        "one-way delays": "to 250 us (chrony), and the other end's error",
    }


def test_the_floor_is_that_of_the_best_clock_there_is() -> None:
    receive = [msgspec.structs.replace(one, kernel_ns=None) for one in (GOOD, BUSY)]
    user = [msgspec.structs.replace(one, kernel_receive_ns=None) for one in receive]
    found = said(but(quiet=receive[0], busy=receive[1]))
    assert found["round trips by kernel receive stamps"].startswith("differences under 62 us")
    found = said(but(quiet=user[0], busy=user[1]))
    assert found["round trips by the user clock"].startswith("differences under 6.4 ms")
    assert found["variation per direction"].startswith("blurred")


def test_what_a_device_holds_back_is_noise() -> None:
    held = (Device("eth1", 30_000, 20_000, True),)
    found = but(devices=held)
    assert said(found)["round trips by kernel stamps"] == "differences under 55 us are noise here"
    assert [one.command for one in advice(found)] == [
        "sudo ethtool -C eth1 adaptive-rx off rx-usecs 0",
        "echo 0 | sudo tee /sys/class/net/eth1/gro_flush_timeout",
        "sudo ethtool -K eth1 gro off lro off",
    ]


def test_pitfall_13_the_error_of_one_way_delays_is_stated_beside_them() -> None:
    """Clock drift is the limit; the error was unreadable (perfsonar/project#1410, #836)."""
    claim = claims(WELL)[-1]
    assert (claim.holds, claim.noise_ns) == (True, 250_000)
    assert "error at most 250 us" in as_text(WELL, claims(WELL), ())


@pytest.mark.parametrize(
    ("clock", "reason", "command"),
    [
        (ClockQuality(), "no: nobody keeps this clock right", "sudo apt-get install chrony"),
        (
            ClockQuality(SyncState.UNSYNCHRONISED, "chrony"),
            "no: nobody keeps this clock right",
            "chronyc -n sources",
        ),
        (
            ClockQuality(SyncState.SYNCHRONISED, "adjtimex"),
            "no: adjtimex states no error of the clock",
            "sudo apt-get install chrony",
        ),
    ],
)
def test_pitfall_12_without_a_stated_error_round_trips_are_still_claimed(
    clock: ClockQuality, reason: str, command: str
) -> None:
    """A daemon that is not understood is no reason to fail (perfsonar/owamp#97, #72)."""
    found = but(clock=clock)
    assert said(found)["one-way delays"] == reason
    assert claims(found)[0].holds
    assert [one.command for one in advice(found)] == [command]


def test_what_limits_a_poor_host() -> None:
    found = but(
        quiet=msgspec.structs.replace(GOOD, kernel_ns=None, send_lateness_p99_ns=900_000),
        steal_ratio=0.031,
        scheduling=Scheduling(None, 0, None, "powersave", 890),
        realtime_allowed=False,
        kernel_clock=KernelTime(1, 0x11, 300, 20),
        capabilities=NO_ICMP,
    )
    text = "\n".join(f"{one.reason}: {one.command}" for one in advice(found))
    for word in (
        "no ICMP at all",
        "no send stamps",
        "leap second",
        "took 3% of processor time",
        "cpupower idle-set -D 50",
        "cpupower frequency-set -g performance",
        "cap_sys_nice+ep",
    ):
        assert word in text


def test_datagram_sockets_do_where_raw_ones_are_refused() -> None:
    found = but(capabilities=(*NO_ICMP[:2], *ICMP[2:]))
    assert [one.command for one in advice(found)] == ["sudo do something"]
    assert advice(but(capabilities=(*ICMP[:2], *NO_ICMP[2:]))) == ()


@pytest.mark.parametrize("found", [WELL, but(quiet=NOTHING, busy=NOTHING, clock=ClockQuality())])
def test_the_text_fits_80_columns(found: Examination) -> None:
    text = as_text(found, claims(found), advice(found))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert text.isascii()


@pytest.mark.parametrize(
    ("ns", "text"),
    [(None, "-"), (0, "0 ns"), (999, "999 ns"), (9_940, "9.9 us"), (9_960, "10 us"),
     (44_000, "44 us"), (6_400_000, "6.4 ms"), (1_500_000_000, "1.5 s"), (-2_500, "-2.5 us")],
)  # fmt: skip
def test_durations(ns: int | None, text: str) -> None:
    assert duration(ns) == text


async def test_every_figure_is_measured_here() -> None:
    network = SystemNetwork()
    found = await measure(network, SystemClock(), 0.2, busy=True)
    network.close()
    for name, value in msgspec.structs.asdict(found).items():
        assert value is not None, name
        assert value >= 0, name


async def test_without_a_loopback_device_nothing_is_measured_and_nothing_breaks() -> None:
    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock)

    async def unreachable(packets: int) -> LoopbackTest:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    network.loopback_test = unreachable  # type: ignore[method-assign]
    found = await measure(network, clock, 0.2, busy=False)
    assert (found.kernel_ns, found.tcp_info_ns, found.user_ns) == (None, None, None)
    assert found.send_lateness_p99_ns is not None


def test_the_command_on_this_host() -> None:
    done = CliRunner().invoke(application, ["doctor", "--seconds", "0.4", "--format", "json"])
    assert done.exit_code == 0, done.output
    whole = json.loads(done.output)
    assert [claim["number"] for claim in whole["claims"]][-1] == "one-way delays"
    assert whole["examination"]["quiet"]["user_ns"] > 0
    assert whole["examination"]["scheduling"].keys() >= {"timer_slack_ns", "realtime_share"}
    assert "sync_state" in whole["examination"]["clock"] or whole["examination"]["clock"] == {}


def test_a_host_that_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = but(quiet=NOTHING, busy=NOTHING)

    def examine(seconds: float) -> Examination:
        return found

    monkeypatch.setattr(command, "_examine", examine)
    done = CliRunner().invoke(application, ["doctor"])
    assert done.exit_code == ExitCode.NOTHING_MEASURED
    assert "not measured here" in done.output
    assert "sudo ip link set lo up" in done.output


def test_sched_fifo_is_only_tried() -> None:
    before = os.sched_getscheduler(0)
    examination.realtime_allowed()
    assert os.sched_getscheduler(0) == before
