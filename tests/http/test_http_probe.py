"""The http probe on the fake network, whose every number is known: HTTP/1.1 without TLS."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.http.probe import HTTP
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    FailureKind,
    Flag,
    Sample,
    Stage,
)

MS = 1_000_000
OK = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer-Timing: auth;dur=3.5, db;dur=1\r\n"
    b"residence-ns: 1500\r\n\r\nhi"
)

Shoot = Callable[..., dict[str, Sample]]


@pytest.fixture
def path(fake: FakeNetwork) -> FakePath:
    """A server 20 ms away that answers everything with `OK`."""
    fake.names["site.example"] = {AddressFamily.IPV4: ("192.0.2.1",)}
    fake.paths["192.0.2.1"] = FakePath(round_trip_ns=20 * MS, says=OK)
    return fake.paths["192.0.2.1"]


@pytest.fixture
def shoot(fake: FakeNetwork, fake_collector: Collector, path: FakePath) -> Shoot:
    """Fire shots one after the other; the samples of the last one by metric, each there once."""

    def run(shots: int = 1, *, apart_ms: int = 2_000, **options: Any) -> dict[str, Sample]:
        resolve = options.pop("resolve", False)
        probe = fake_collector.open(HTTP, {"scheme": "http", **options})
        for seq in range(shots):
            fake_collector.emitted.clear()
            probe.fire(shot_at("192.0.2.1", seq=seq, host="site.example", resolve=resolve))
            fake.clock.advance(apart_ms * MS)
            assert len(fake_collector.of("first_byte")) == 1
        found = {(sample.metric, sample.part): sample for _, sample in fake_collector.emitted}
        assert len(found) == len(fake_collector.emitted)
        probe.close()
        return {
            metric if part is None else f"{metric} {part}": sample
            for (metric, part), sample in found.items()
        }

    return run


def values(samples: dict[str, Sample]) -> dict[str, float | None]:
    return {
        name: None if sample.value_ns is None else sample.value_ns / MS
        for name, sample in samples.items()
    }


def test_a_cold_request_phase_by_phase(shoot: Shoot) -> None:
    samples = shoot(resolve=True)
    assert values(samples) == {
        "resolve": 1,
        "connect": 20,
        "setup": 21,
        "send": 0,
        "wait": 20,
        "ttfb": 20,
        "receive": 0,
        "first_byte": 41,
    }
    assert {
        sample.mode for name, sample in samples.items() if name not in ("resolve", "connect")
    } == {ConnectionMode.COLD}
    assert samples["wait"].clock_source is ClockSource.KERNEL
    assert samples["first_byte"].clock_source is ClockSource.USER  # the resolver has no stamps
    notes = samples["first_byte"].notes or {}
    expected = {"status": 200, "bytes": 2, "protocol": "HTTP/1.1", "residence_ns": 1_500,
                "server_timing": "auth;dur=3.5, db;dur=1", "own_us": 0}  # fmt: skip
    assert expected.items() <= notes.items()


def test_time_that_this_host_was_busy_is_in_no_number_but_noted(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath
) -> None:
    probe = fake_collector.open(HTTP, {"scheme": "http"})
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(19 * MS)
    fake.clock.stall(31 * MS)  # the SYN-ACK is read 30 ms late
    fake.clock.advance(900 * MS)
    sample = fake_collector.only("first_byte")
    assert sample.value_ns == 40 * MS
    assert (sample.notes or {})["own_us"] == 30_000


def test_a_warm_request_has_no_set_up(shoot: Shoot, fake: FakeNetwork) -> None:
    samples = shoot(3, mode="warm")
    assert values(samples) == {
        "setup": 0, "send": 0, "wait": 20, "ttfb": 20, "receive": 0, "first_byte": 20,
    }  # fmt: skip
    assert {sample.mode for sample in samples.values()} == {ConnectionMode.WARM}
    notes = samples["first_byte"].notes or {}
    assert notes["idle_ms"] == 2_000 - 20
    assert notes["connection_age_ms"] == 4_000
    assert fake.last_port == 32_768  # one connection


def test_each_series_has_a_connection_of_its_own(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath
) -> None:
    probe = fake_collector.open(HTTP, {"scheme": "http", "mode": "warm"})
    for seq in range(2):
        for series in (4, 5):
            probe.fire(shot_at("192.0.2.1", seq=seq, series=series))
        fake.clock.advance(2_000 * MS)
    modes = [(series, sample.mode) for series, sample in fake_collector.emitted
             if sample.metric == "first_byte"]  # fmt: skip
    assert modes == [(4, "cold"), (5, "cold"), (4, "warm"), (5, "warm")]


def test_a_warm_connection_that_was_closed_is_not_sold_as_warm(
    shoot: Shoot, path: FakePath
) -> None:
    path.says = OK.replace(b"\r\n\r\nhi", b"\r\nConnection: close\r\n\r\nhi")
    samples = shoot(2, mode="warm")
    assert values(samples)["first_byte"] == 40
    assert {samples["setup"].mode, samples["first_byte"].mode} == {ConnectionMode.COLD}


def test_a_warm_connection_that_ends_as_it_is_used_again_is_a_failure_of_the_warm_one(
    shoot: Shoot, path: FakePath
) -> None:
    path.closes_after = 150  # the second request
    samples = shoot(2, mode="warm")
    failure = samples["first_byte"].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.CLOSED, Stage.WAIT)
    assert samples["first_byte"].mode is ConnectionMode.WARM
    assert samples["setup"].value_ns == 0


def test_idle_is_only_what_was_left_alone_long_enough(shoot: Shoot) -> None:
    assert shoot(2, mode="idle", idle=5)["first_byte"].mode is ConnectionMode.COLD
    samples = shoot(4, mode="idle", idle=5)
    assert samples["first_byte"].mode is ConnectionMode.IDLE
    assert (samples["first_byte"].notes or {})["idle_ms"] == 6_000 - 40


def test_a_request_longer_than_a_segment_has_a_time_to_be_sent(shoot: Shoot) -> None:
    samples = shoot(method="POST", body_bytes=50_000)
    assert values(samples)["ttfb"] == 20
    assert samples["send"].clock_source is ClockSource.KERNEL
    assert samples["send"].value_ns == 0  # the fake network has no rate


@pytest.mark.parametrize(
    ("status", "expect", "fails"),
    [(200, 0, False), (301, 0, False), (404, 0, True), (503, 0, True),
     (404, 404, False), (200, 204, True)],
)  # fmt: skip
def test_a_status_that_is_not_expected_is_a_failure(
    shoot: Shoot, path: FakePath, status: int, expect: int, fails: bool
) -> None:
    path.says = OK.replace(b"200", str(status).encode())
    samples = shoot(expect_status=expect)
    assert (samples["first_byte"].notes or {})["status"] == status
    for name in ("ttfb", "first_byte"):
        failure = samples[name].failure
        assert (failure is not None) is fails
        if failure is not None:
            assert (failure.kind, failure.detail) == (FailureKind.STATUS, f"status {status}")
    assert samples["wait"].value_ns == 20 * MS


def test_the_deadline_of_each_step(shoot: Shoot, fake: FakeNetwork, path: FakePath) -> None:
    path.says = None
    samples = shoot()
    for name in ("wait", "ttfb", "first_byte"):
        failure = samples[name].failure
        assert failure is not None
        assert (failure.kind, failure.stage) == (FailureKind.TIMEOUT, Stage.WAIT)
    assert samples["setup"].value_ns == 20 * MS
    path.lost = lambda number: True
    samples = shoot()
    assert set(samples) == {"connect", "setup", "first_byte"}
    for sample in samples.values():
        assert sample.failure is not None
        assert (sample.failure.kind, sample.failure.stage) == (FailureKind.TIMEOUT, Stage.CONNECT)
    fake.resolve_ns = None
    samples = shoot(resolve=True)
    assert set(samples) == {"resolve", "setup", "first_byte"}
    assert samples["first_byte"].failure is not None
    assert samples["first_byte"].failure.stage is Stage.RESOLVE


def test_a_refused_connection(shoot: Shoot, path: FakePath) -> None:
    path.refused = True
    samples = shoot()
    assert samples["connect"].value_ns == 20 * MS
    assert samples["connect"].flags == (Flag.REFUSED,)
    for name in ("setup", "first_byte"):
        failure = samples[name].failure
        assert failure is not None
        assert failure.kind is FailureKind.REFUSED


def test_an_answer_that_stops_half_way_had_a_first_byte(shoot: Shoot, path: FakePath) -> None:
    path.says = OK[:-1]
    samples = shoot()
    assert samples["first_byte"].value_ns == 40 * MS
    assert samples["receive"].failure is not None
    assert samples["receive"].failure.kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("how", "kind"),
    [({"resets_after": 1}, FailureKind.RESET), ({"closes_after": 1}, FailureKind.CLOSED),
     ({"says": b"SSH-2.0-x\r\n\r\n"}, FailureKind.PROTOCOL)],
    ids=["reset", "closed", "garbage"],
)  # fmt: skip
def test_answers_that_are_none(
    shoot: Shoot, path: FakePath, how: dict[str, Any], kind: FailureKind
) -> None:
    for name, value in how.items():
        setattr(path, name, value)
    samples = shoot()
    for name in ("wait", "ttfb", "first_byte"):
        failure = samples[name].failure
        assert failure is not None
        assert failure.kind is kind
    assert values(samples)["setup"] == 20


REDIRECT = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n"


def test_a_redirect_that_is_not_followed_is_noted(shoot: Shoot, path: FakePath) -> None:
    path.says = REDIRECT % b"https://other.example/"
    samples = shoot()
    notes = samples["first_byte"].notes or {}
    assert (notes["status"], notes["location"]) == (302, "https://other.example/")
    assert samples["first_byte"].value_ns == 40 * MS


def test_a_redirect_that_goes_round_ends(shoot: Shoot, path: FakePath) -> None:
    path.says = REDIRECT % b"/again?x"
    samples = shoot(follow_redirects=True)
    assert [samples[f"ttfb {part}"].value_ns for part in range(5)] == [20 * MS] * 5
    assert [samples[f"setup {part}"].value_ns for part in range(2)] == [20 * MS, 0]
    assert [samples[f"setup {part}"].mode for part in range(2)] == ["cold", "warm"]
    failure = samples["first_byte"].failure
    assert failure is not None
    assert (failure.kind, failure.detail) == (FailureKind.STATUS, "more than 5 redirects")
    assert (samples["first_byte"].notes or {})["redirects"] == 5


@pytest.mark.parametrize(
    "location",
    ["http://other.example/", "https://site.example/", "http://site.example:81/", "//other.example",
     "http://[::1", "ftp://site.example/", "/a b", "http://user@site.example/"],
)  # fmt: skip
def test_a_redirect_to_anywhere_else_is_refused(
    shoot: Shoot, fake: FakeNetwork, path: FakePath, location: str
) -> None:
    path.says = REDIRECT % location.encode()
    failure = shoot(follow_redirects=True)["first_byte"].failure
    assert failure is not None
    assert failure.kind is FailureKind.STATUS
    assert location in failure.detail
    assert fake.last_port == 32_768


def test_a_clock_step_is_marked(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath
) -> None:
    probe = fake_collector.open(HTTP, {"scheme": "http"})
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(30 * MS)
    fake.clock.step(-3_600_000 * MS)
    fake.clock.advance(2_000 * MS)
    for name in ("wait", "ttfb", "first_byte"):
        sample = fake_collector.only(name)
        assert Flag.CLOCK_STEP in sample.flags
    assert fake_collector.only("ttfb").value_ns == 20 * MS
    assert fake_collector.only("first_byte").value_ns == 40 * MS


@pytest.mark.parametrize("stamps", [(True, False), (False, True), (False, False)])
def test_hosts_without_stamps_are_truthful_about_it(
    shoot: Shoot, fake: FakeNetwork, stamps: tuple[bool, bool]
) -> None:
    fake.send_stamps, fake.receive_stamps = stamps
    samples = shoot()
    expected = ClockSource.KERNEL_RECEIVE if stamps[1] else ClockSource.USER
    assert samples["ttfb"].clock_source is expected
    assert samples["ttfb"].value_ns == 20 * MS


def test_random_shots_always_end_with_one_first_byte(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath
) -> None:
    """Overlapping shots, and a server that does what it likes."""
    rng = random.Random(5)
    probe = fake_collector.open(HTTP, {"scheme": "http", "mode": "warm"})
    answers = [OK, OK, OK[:40], b"\0" * 9, OK + OK, REDIRECT % b"/", None]
    for seq in range(400):
        path.says = rng.choice(answers)
        path.resets_after = rng.choice([None, None, None, 1])
        path.round_trip_ns = rng.choice([1, 20, 600, 1_100]) * MS
        probe.fire(shot_at("192.0.2.1", seq=seq))
        fake.clock.advance(rng.choice([0, 10, 700]) * MS)
    fake.clock.advance(5_000 * MS)
    assert [
        sample.seq for sample in sorted(fake_collector.of("first_byte"), key=lambda s: s.seq)
    ] == list(range(400))
    kinds = {sample.failure.kind for sample in fake_collector.of("first_byte") if sample.failure}
    assert {FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.PROTOCOL} <= kinds
    modes = {sample.mode for sample in fake_collector.of("first_byte") if not sample.failure}
    assert modes == {ConnectionMode.COLD, ConnectionMode.WARM}


def test_a_probe_that_is_closed_says_no_more(
    fake: FakeNetwork, fake_collector: Collector, path: FakePath
) -> None:
    probe = fake_collector.open(HTTP, {"scheme": "http"})
    probe.fire(shot_at("192.0.2.1"))
    fake.clock.advance(30 * MS)
    probe.close()
    fake.clock.advance(5_000 * MS)
    assert fake_collector.emitted == []
