"""Whole runs on a fake network: JSON lines, fallback, bounds, outages within a second."""

import asyncio
from collections.abc import Callable, Container
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application
from pathbudget.agents.ping.hosts import parse_ping_host
from pathbudget.agents.ping.options import PingOptions, check, packets_per_second
from pathbudget.agents.ping.screen import screen
from pathbudget.probes.errors import ConfigError, PrivilegeError
from pathbudget.probes.record import AddressFamily, Sample

MS = 1_000_000
SECOND = 1_000 * MS
SITE = "192.0.2.1"


def losing(numbers: Container[int]) -> Callable[[int], bool]:
    """Loses the packets of these numbers."""
    return lambda number: number in numbers


def asked(hosts: int = 1, **options: Any) -> PingOptions:
    return PingOptions(hosts=[parse_ping_host(f"192.0.2.{n}") for n in range(hosts)], **options)


def test_every_packet_has_a_line_in_the_words_of_the_record(world: Any) -> None:
    world.path(SITE, round_trip_ns=15 * MS, lost=losing({3}))
    world.run([SITE], count=30)
    begun = world.objects("begin")
    assert [(one["host"], one["socket"], one["address"]) for one in begun] == [(SITE, "raw", SITE)]
    samples = world.objects("sample")
    assert sorted(one["seq"] for one in samples) == list(range(30))
    read = [
        msgspec.convert({k: v for k, v in one.items() if k != "type"}, Sample) for one in samples
    ]
    assert [one.seq for one in read if one.failure] == [3]
    assert {one.value_ns for one in read if not one.failure} == {15 * MS}
    (last,) = world.objects("summary")
    assert world.lines[-1][1] == last
    assert (last["sent"], last["lost"], last["p50_ns"]) == (30, 1, 15 * MS)
    assert last["noise"]["floor_ns"] > 0


def test_percentiles_that_are_lost_are_null_and_named(world: Any) -> None:
    world.path(SITE, lost=losing(range(1, 1000, 2)))
    world.run([SITE], count=40)
    (last,) = world.objects("summary")
    assert (last["loss_ratio"], last["p95_ns"]) == (0.5, None)
    assert last["lost_percentiles"] == ["p95_ns"]


def test_many_hosts_at_once(world: Any) -> None:
    hosts = [f"198.51.100.{n}" for n in range(1, 81)]
    for number, host in enumerate(hosts):
        world.path(host, round_trip_ns=(5 + number) * MS)
    session = world.run(hosts, count=20)
    ends = world.objects("summary")
    assert {one["host"]: one["p50_ns"] // MS for one in ends} == {
        host: 5 + number for number, host in enumerate(hosts)
    }
    assert {one["sent"] for one in ends} == {20}
    text = [line.plain for line in screen(session.picture(), 80, 24)]
    assert len(text) <= 24
    assert any("more rows" in line for line in text)


def test_an_outage_is_in_the_lines_within_a_second_with_its_windows(world: Any) -> None:
    """Every 10 ms; the answers stop for 700 ms."""
    world.path(SITE, round_trip_ns=15 * MS, lost=losing(range(300, 370)))
    world.run([SITE], interval_ns=10 * MS, duration_ns=6 * SECOND)
    events = [(at, one) for at, one in world.lines if one["type"] == "outage"]
    assert [one["state"] for _, one in events] == ["began", "ended"]
    (told_ns, began), (_, ended) = events
    assert told_ns - began["first_lost_unix_ns"] <= SECOND
    assert began["first_good_unix_ns"] is None
    assert began["first_lost_unix_ns"] - began["last_good_unix_ns"] == 10 * MS
    assert ended["lost"] == 70
    assert ended["first_good_unix_ns"] - ended["last_lost_unix_ns"] == 10 * MS
    assert ended["last_lost_unix_ns"] - ended["first_lost_unix_ns"] == 690 * MS


def test_pitfall_29_where_icmp_is_not_permitted_tcp_is_measured_and_said(world: Any) -> None:
    """`ping_group_range` is ``1 0`` on many hosts: nobody but root may ping."""
    world.network.privileged = None
    world.path(SITE, round_trip_ns=15 * MS)
    session = world.run([f"{SITE}:8443"], count=25)
    assert "ICMP is not permitted" in session.notice
    assert session.remedy
    (begun,) = world.objects("begin")
    assert (begun["probe"], begun["socket"], begun["notice"]) == ("tcp", "tcp", session.notice)
    text = "\n".join(line.plain for line in screen(session.picture(), 80, 24))
    assert "TCP connect is measured instead" in text
    assert " tcp" in text


@pytest.mark.parametrize("options", [{"interface": "nowhere0"}, {"source": "192.0.2.77"}])
@pytest.mark.parametrize("probe", ["", "icmp", "tcp", "stamp"])
def test_a_wrong_interface_or_source_is_a_wrong_word_and_not_a_lacking_right(
    options: dict[str, str], probe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """ICMP is not said to be forbidden, and nothing else is measured in its place."""
    words = [f"--{name}={value}" for name, value in options.items()]
    words += [f"--probe={probe}"] if probe else []
    result = CliRunner().invoke(application, ["ping", "127.0.0.1:9", "--count=1", *words])
    said = capsys.readouterr().err + result.output
    (value,) = options.values()
    assert result.exit_code == ExitCode.USAGE, said
    assert (
        f"this host has no {'interface' if 'interface' in options else 'address'} {value}" in said
    )
    assert "not permitted" not in said


def test_icmp_that_was_asked_for_is_never_replaced(world: Any) -> None:
    world.network.privileged = None
    with pytest.raises(PrivilegeError):
        world.run([SITE], probe="icmp", count=1)


def test_an_unprivileged_socket_is_named_in_the_mode(world: Any) -> None:
    world.network.privileged = False
    world.path(SITE)
    session = world.run([SITE], count=3)
    assert world.objects("begin")[0]["socket"] == "dgm"
    assert "K dgm" in "\n".join(line.plain for line in screen(session.picture(), 80, 24))


def test_a_name_that_leads_to_many_machines_is_refused_before_anything_is_sent(world: Any) -> None:
    world.network.names["all.example"] = {AddressFamily.IPV4: ("224.0.0.1",)}
    with pytest.raises(ConfigError, match="multicast"):
        world.run(["all.example"], count=1)
    assert world.network.sent == []


MANY_OR_NONE = "224.0.0.1 255.255.255.255 0.0.0.0 :: ff02::1 ::ffff:224.0.0.1 [ff02::1]:9"
NO_HOST = "[::1 host:0 host:65536 host:x host:\u00b2 a/b a@b -c"


@pytest.mark.parametrize("text", ["", "a b", *MANY_OR_NONE.split(), *NO_HOST.split()])
def test_what_is_no_single_machine_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_ping_host(text)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("site.example", "site.example", None),
        ("site.example:8443", "site.example", 8443),
        ("192.0.2.1:7", "192.0.2.1", 7),
        ("2001:db8::1", "2001:db8::1", None),
        ("[2001:db8::1]:862", "2001:db8::1", 862),
        ("[fe80::1%eth0]", "fe80::1%eth0", None),
    ],
)
def test_hosts_as_people_write_them(text: str, host: str, port: int | None) -> None:
    found = parse_ping_host(text)
    assert (found.host, found.port) == (host, port)


def test_the_bound_on_packets_covers_all_hosts_together() -> None:
    check(asked(hosts=200))
    assert packets_per_second(asked(hosts=20, interval_ns=10 * MS)) == 2_000
    check(asked(hosts=20, interval_ns=10 * MS))
    with pytest.raises(ConfigError, match="2100 packets per second"):
        check(asked(hosts=21, interval_ns=10 * MS))
    with pytest.raises(ConfigError, match="at most 2000"):
        check(asked(hosts=11, interval_ns=10 * MS, train=2))
    with pytest.raises(ConfigError, match="10ms or more"):
        check(asked(interval_ns=9 * MS))


def test_an_address_of_the_other_family_is_refused() -> None:
    check(asked(family=AddressFamily.IPV4))
    with pytest.raises(ConfigError, match="an ipv6 address"):
        check(asked(family=AddressFamily.IPV6))


def test_trains_are_sent_whole(world: Any) -> None:
    world.path(SITE, round_trip_ns=15 * MS)
    world.run([SITE], count=5, train=4)
    assert sorted(one["seq"] for one in world.objects("sample")) == list(range(20))


def test_an_option_that_the_probe_lacks_is_a_clear_error(world: Any) -> None:
    with pytest.raises(ConfigError, match="--size"):
        world.session([SITE], probe="tcp", size=100)


def test_a_run_without_end_ends_when_asked(world: Any) -> None:
    world.path(SITE, round_trip_ns=15 * MS)

    async def whole() -> Any:
        session = world.session([SITE])
        world.clock.call_in(90 * SECOND, session.stop)

        async def idle(_: Any) -> None:
            await asyncio.sleep(0)

        await session.run(idle)
        return session

    session = asyncio.run(whole())
    assert session.interrupted
    (last,) = world.objects("summary")
    assert 85 <= last["sent"] <= 91
