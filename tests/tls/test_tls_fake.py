"""The TLS probe on the fake network, where it succeeds: OpenSSL on both sides, exact times."""

import ssl
from collections.abc import Callable

import pytest

from pathbudget.probes.channels import RoundTrip
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.fake_tcp import FakeTcpChannel
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    FailureKind,
    Flag,
    Sample,
    Stage,
)
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000
HOUR_NS = 3_600_000 * MS
HERE = "192.0.2.1"
HOST = "site.example"
COLD, RESUMED = ConnectionMode.COLD, ConnectionMode.RESUMED

Shoot = Callable[..., list[Sample]]


def values(samples: list[Sample]) -> dict[str, int | None]:
    return {sample.metric: sample.value_ns for sample in samples}


def test_the_phases_of_a_full_handshake(tls_path: FakePath, shoot_tls: Shoot) -> None:
    samples = shoot_tls(resolve=True)
    phases = values(samples)
    assert list(phases) == ["resolve", "connect", "tls_handshake", "client_compute", "setup"]
    compute = phases.pop("client_compute")
    assert compute is not None
    assert 0 < compute < 1_000 * MS
    assert phases == {
        "resolve": 1 * MS,
        "connect": 20 * MS,
        "tls_handshake": 20 * MS,
        "setup": 41 * MS,
    }
    assert {sample.seq for sample in samples} == {0}
    modes = {sample.metric: sample.mode for sample in samples}
    assert (modes["tls_handshake"], modes["setup"]) == (COLD, COLD)
    assert modes["connect"] is None
    sources = [sample.clock_source for sample in samples]
    assert sources[:3] == [ClockSource.USER, ClockSource.TCP_INFO, ClockSource.KERNEL]
    assert samples[-1].clock_source is ClockSource.USER


def test_setup_without_resolving_is_connect_and_handshake(
    tls_path: FakePath, shoot_tls: Shoot
) -> None:
    samples = shoot_tls()
    assert values(samples)["setup"] == 40 * MS
    assert samples[-1].clock_source is ClockSource.TCP_INFO
    assert samples[-1].sent_unix_ns == samples[0].sent_unix_ns


def test_a_resumed_handshake_is_proved_and_primed_by_a_cold_one(
    tls_path: FakePath, shoot_tls: Shoot, fake_collector: Collector
) -> None:
    shoot_tls(shots=4, mode="resumed")
    handshakes = fake_collector.of("tls_handshake")
    assert [sample.mode for sample in handshakes] == [COLD, RESUMED, RESUMED, RESUMED]
    assert [sample.value_ns for sample in handshakes] == [20 * MS] * 4
    assert [sample.mode for sample in fake_collector.of("setup")] == [COLD, *[RESUMED] * 3]


def test_a_ticket_is_used_once_and_by_its_own_target_only(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    fake.paths["192.0.2.2"] = FakePath(tls=tls_path.tls)
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "mode": "resumed"})
    probe.fire(shot_at(HERE, seq=0, host=HOST))
    fake.clock.advance(3_000 * MS)
    for seq in (1, 2):  # at once: there is one ticket for two shots
        probe.fire(shot_at(HERE, seq=seq, host=HOST))
    probe.fire(shot_at("192.0.2.2", seq=3, host=HOST))
    fake.clock.advance(3_000 * MS)
    modes = {sample.seq: sample.mode for sample in fake_collector.of("tls_handshake")}
    assert modes == {0: COLD, 1: RESUMED, 2: COLD, 3: COLD}


def test_a_ticket_that_has_run_out_is_not_offered(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    import time

    fake.clock.step(time.time_ns() - fake.clock.unix_ns())  # OpenSSL dates tickets by itself
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "mode": "resumed"})
    for seq in range(2):
        probe.fire(shot_at(HERE, seq=seq, host=HOST))
        fake.clock.advance(24 * HOUR_NS)
    assert [sample.mode for sample in fake_collector.of("tls_handshake")] == [COLD, COLD]


def test_a_server_that_gives_no_tickets_is_measured_cold_every_time(
    tls_path: FakePath, shoot_tls: Shoot, server_context: ssl.SSLContext
) -> None:
    server_context.num_tickets = 0
    samples = shoot_tls(shots=3, mode="resumed")
    modes = [sample.mode for sample in samples if sample.metric == "setup"]
    assert modes == [COLD] * 3


def test_a_ticket_that_is_not_accepted_is_a_failure(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    certificate_folder: object,
) -> None:
    """The server lost its ticket key (a restart, or another machine behind the address)."""
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "mode": "resumed"})
    for seq in range(3):
        fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        fresh.load_cert_chain(ca_file, ca_file.replace("certificate.pem", "key.pem"))
        tls_path.tls = fresh
        probe.fire(shot_at(HERE, seq=seq, host=HOST))
        fake.clock.advance(3_000 * MS)
    handshakes = fake_collector.of("tls_handshake")
    assert handshakes[0].mode is COLD
    for sample in (*handshakes[1:], *fake_collector.of("setup")[1:]):
        assert sample.mode is RESUMED
        assert sample.failure is not None
        assert sample.failure.kind is FailureKind.NOT_RESUMED
        assert sample.failure.stage is Stage.HANDSHAKE


def test_a_hello_retry_request_costs_a_round_trip_and_is_marked(
    tls_path: FakePath, shoot_tls: Shoot, fake_collector: Collector, server_context: ssl.SSLContext
) -> None:
    server_context.set_ecdh_curve("secp384r1")
    samples = shoot_tls()
    assert values(samples)["tls_handshake"] == 40 * MS
    handshake = fake_collector.only("tls_handshake")
    assert handshake.flags == (Flag.HELLO_RETRY,)
    assert fake_collector.only("setup").flags == (Flag.HELLO_RETRY,)
    assert handshake.notes is not None
    assert handshake.notes["group"] == "P-384"


def test_an_unchecked_certificate_is_marked(tls_path: FakePath, shoot_tls: Shoot) -> None:
    samples = shoot_tls(verify=False, ca_file="")
    assert all(Flag.UNVERIFIED in sample.flags for sample in samples)
    assert values(samples)["setup"] == 40 * MS


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
@pytest.mark.parametrize("after_ms", [5, 25, 35])
def test_a_clock_step_is_marked_and_does_not_enter_the_value(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    step_ns: int,
    after_ms: int,
) -> None:
    probe = fake_collector.open(TLS, {"ca_file": ca_file})
    probe.fire(shot_at(HERE, host=HOST))
    fake.clock.advance(after_ms * MS)
    fake.clock.step(step_ns)
    fake.clock.advance(1_000 * MS)
    handshake, setup = fake_collector.only("tls_handshake"), fake_collector.only("setup")
    assert (handshake.value_ns, setup.value_ns) == (20 * MS, 40 * MS)
    straddles = after_ms > 20
    assert (Flag.CLOCK_STEP in handshake.flags) == straddles
    assert (Flag.CLOCK_STEP in setup.flags) == straddles


@pytest.mark.parametrize(
    ("send_stamps", "receive_stamps", "source"),
    [
        (True, True, ClockSource.KERNEL),
        (False, True, ClockSource.KERNEL_RECEIVE),
        (True, False, ClockSource.USER),
    ],
)
def test_missing_stamps_are_told(
    fake: FakeNetwork,
    tls_path: FakePath,
    shoot_tls: Shoot,
    fake_collector: Collector,
    send_stamps: bool,
    receive_stamps: bool,
    source: ClockSource,
) -> None:
    fake.send_stamps, fake.receive_stamps = send_stamps, receive_stamps
    shoot_tls()
    assert fake_collector.only("tls_handshake").clock_source is source
    assert fake_collector.only("tls_handshake").value_ns == 20 * MS


def test_a_connect_with_a_retransmitted_syn_is_marked_in_the_total_too(
    tls_path: FakePath, shoot_tls: Shoot, fake_collector: Collector
) -> None:
    tls_path.retransmits = 1
    shoot_tls()
    connect = fake_collector.only("connect")
    assert connect.flags == (Flag.SYN_RETRANSMITTED,)
    assert connect.clock_source is ClockSource.USER
    assert fake_collector.only("setup").flags == (Flag.SYN_RETRANSMITTED,)


def test_a_kernel_without_tcp_info_leaves_the_user_clock(
    tls_path: FakePath, shoot_tls: Shoot, fake_collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(channel: FakeTcpChannel) -> RoundTrip | None:
        return None

    monkeypatch.setattr(FakeTcpChannel, "round_trip", nothing)
    shoot_tls()
    connect = fake_collector.only("connect")
    assert (connect.value_ns, connect.clock_source) == (20 * MS, ClockSource.USER)
    assert connect.flags == ()


def test_protocols_are_offered(tls_path: FakePath, shoot_tls: Shoot, fake: FakeNetwork) -> None:
    offered: list[bytes] = []
    assert tls_path.tls is not None
    tls_path.tls.set_alpn_protocols(["h2"])
    send = FakeTcpChannel.send

    def spy(channel: FakeTcpChannel, data: bytes) -> None:
        offered.append(data)
        send(channel, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeTcpChannel, "send", spy)
        samples = shoot_tls(alpn="h2, http/1.1")
    assert b"\x02h2\x08http/1.1" in offered[0]
    assert values(samples)["setup"] == 40 * MS


def test_close_drops_what_is_under_way(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector
) -> None:
    probe = fake_collector.open(TLS)
    probe.fire(shot_at(HERE, host=HOST, resolve=True))
    fake.clock.advance(10 * MS)
    probe.close()
    emitted = list(fake_collector.emitted)
    fake.clock.advance(5_000 * MS)
    assert fake_collector.emitted == emitted
