"""Against a reflector: directions, loss on either way, load that goes only where it is answered."""

import re
from collections.abc import Callable, Container
from typing import Any

import pytest

from pathbudget.agents.ping.hosts import parse_ping_host
from pathbudget.agents.ping.load import LONGEST_NS, SIZE_BYTES, Load, parse_rate
from pathbudget.agents.ping.options import PingOptions, check
from pathbudget.agents.ping.screen import screen
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import Flag
from pathbudget.probes.stamp.fake_reflector import FakeReflector
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession

MS = 1_000_000
SECOND = 1_000 * MS
SITE = "192.0.2.1"
PORT = 8620
TEN_MBIT = 10_000_000


def text_of(session: Any) -> str:
    return "\n".join(line.plain for line in screen(session.picture(), 80, 40))


def reflector(world: Any, **behaviour: Any) -> FakeReflector:
    world.path(SITE, round_trip_ns=50 * MS)
    found = FakeReflector(**behaviour)
    world.network.services[SITE, PORT] = found
    return found


def in_turn(*values: int) -> Callable[[int], int]:
    return lambda number: values[number % len(values)]


def losing(numbers: Container[int]) -> Callable[[int], bool]:
    return lambda number: number in numbers


def sizes(world: Any) -> list[int]:
    return [len(payload) for _, payload in world.network.sent]


def test_a_reflector_gives_each_direction_by_itself(world: Any) -> None:
    """3 ms of variation there, none back, a clock that is hours away and drifts by 80 ppm."""
    reflector(
        world,
        forward_ns=in_turn(30 * MS, 31 * MS, 32 * MS, 33 * MS),
        reverse_ns=20 * MS,
        lost_forward=losing(range(10, 1_000, 20)),
        offset_ns=10**13,
        ppm=80.0,
    )
    session = world.run([SITE], stamp=PORT, count=300)
    one = next(one for one in world.objects("summary") if one["probe"] == "stamp")
    assert 2.8 * MS < one["forward"]["pdv_p99_ns"] < 3.2 * MS
    assert one["reverse"]["pdv_p99_ns"] < 200_000
    assert 70 < one["forward"]["drift_ppm"] < 90
    assert one["lost"] == 15
    assert one["lost_by_direction"] == {"forward": 15, "reverse": 0, "unknown": 0}
    text = text_of(session)
    assert "\n  forward " in text
    assert "\n  reverse " in text
    assert "udp" in text


def test_a_reflector_that_does_not_count_leaves_the_direction_of_losses_unknown(
    world: Any,
) -> None:
    reflector(
        world,
        session=ReflectorSession(ReflectorPolicy(port=PORT, stateful=False)),
        lost_forward=losing(range(10, 1_000, 20)),
    )
    session = world.run([SITE], probe="stamp", count=200)
    (one,) = world.objects("summary")
    assert one["lost"] == 10
    assert "lost_by_direction" not in one
    assert re.search(r"^  forward .* -  ?[um]s", text_of(session), re.MULTILINE)


def test_a_reflector_that_does_not_answer_is_said(world: Any) -> None:
    world.path(SITE, round_trip_ns=50 * MS)
    session = world.run([SITE], stamp=PORT, count=5)
    assert f"No reflector answers at {SITE}: forward and reverse stay unknown." in text_of(session)
    assert session.answered


def test_samples_under_load_are_marked_and_shown_apart(world: Any) -> None:
    def delay(number: int) -> int:
        recent = world.network.sent[-20:]
        busy = sum(len(payload) >= SIZE_BYTES for _, payload in recent) > 10
        return (40 if busy else 30) * MS

    found = reflector(world, forward_ns=delay, reverse_ns=20 * MS)

    session = world.run(
        [SITE],
        probe="stamp",
        interval_ns=50 * MS,
        duration_ns=20 * SECOND,
        load=Load(TEN_MBIT, 6 * SECOND),
    )
    loaded = [
        one
        for one in world.objects("sample")
        if one["metric"] == "rtt" and str(Flag.LOADED) in one.get("flags", ())
    ]
    assert 100 <= len(loaded) <= 140  # 6 s of 20 a second
    (summary,) = world.objects("summary")
    assert summary["sent"] == 400  # the load is no part of it
    assert summary["load"]["difference"]["p50_ns"] == pytest.approx(10 * MS, abs=MS)
    assert "p50/p95 idle 50" in text_of(session)
    load_packets = sum(size >= SIZE_BYTES for size in sizes(world))
    assert 0.6 < load_packets * SIZE_BYTES * 8 / (6 * TEN_MBIT) < 1.1
    own = summary["own_load"]
    assert own["asked_bps"] == TEN_MBIT
    assert own["sent_bps"] == pytest.approx(TEN_MBIT, rel=0.05)
    assert own["answered_bps"] == pytest.approx(own["sent_bps"], rel=0.01)
    assert (own["sent"], own["limited"]) == (load_packets, "")
    assert "load 10.0 Mbit/s sent, 10.0 answered, 10.0 asked for" in text_of(session)
    assert found.taken > load_packets


def test_no_load_goes_to_who_does_not_answer(world: Any) -> None:
    world.path(SITE, round_trip_ns=50 * MS)
    world.run([SITE], stamp=PORT, duration_ns=20 * SECOND, load=Load(TEN_MBIT, 30 * SECOND))
    assert max(sizes(world)) < SIZE_BYTES


def test_the_load_ends_when_answers_stay_away(world: Any) -> None:
    began: list[int] = []

    def gone(number: int) -> bool:
        """From a second of load on nobody is there any more."""
        big = [one for one in sizes(world) if one >= SIZE_BYTES]
        if big and not began:
            began.append(world.clock.monotonic_ns())
        return bool(began) and world.clock.monotonic_ns() > began[0] + SECOND

    reflector(world, lost_forward=gone)
    session = world.run(
        [SITE],
        probe="stamp",
        interval_ns=100 * MS,
        duration_ns=40 * SECOND,
        load=Load(TEN_MBIT, 30 * SECOND),
    )
    sent = sum(one >= SIZE_BYTES for one in sizes(world))
    assert sent * SIZE_BYTES * 8 < 3.2 * TEN_MBIT
    assert "the reflector stopped answering; the load was ended" in text_of(session)


def test_load_needs_a_reflector_and_one_host_and_has_bounds() -> None:
    load = Load(TEN_MBIT, SECOND)
    hosts = [parse_ping_host(SITE), parse_ping_host("192.0.2.2")]
    with pytest.raises(ConfigError, match="--stamp PORT"):
        check(PingOptions(hosts=hosts[:1], load=load))
    with pytest.raises(ConfigError, match="one host"):
        check(PingOptions(hosts=hosts, stamp=PORT, load=load))
    check(PingOptions(hosts=hosts[:1], stamp=PORT, load=load))
    assert LONGEST_NS == 60 * SECOND
    assert parse_rate("10mbit") == TEN_MBIT
    assert parse_rate("500kbit") == 500_000
    for text in ("51mbit", "1gbit", "10", "-1mbit", "0mbit", "1kbit", ""):
        with pytest.raises(ValueError, match="bit"):
            parse_rate(text)
