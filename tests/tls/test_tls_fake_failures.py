"""The TLS probe on the fake network where the set-up fails: which stage, and whose fault."""

import ssl
from collections.abc import Callable

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Sample,
    Stage,
)
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000
HERE = "192.0.2.1"
HOST = "site.example"

Shoot = Callable[..., list[Sample]]


def test_an_unknown_issuer(tls_path: FakePath, shoot_tls: Shoot) -> None:
    samples = shoot_tls(ca_file="")
    assert [sample.metric for sample in samples] == ["connect", "tls_handshake", "setup"]
    for sample in samples[1:]:
        assert sample.failure == Failure(
            FailureKind.CERTIFICATE, Stage.HANDSHAKE, "self-signed certificate"
        )
        assert sample.mode is ConnectionMode.COLD


def test_a_certificate_for_another_name(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    probe = fake_collector.open(TLS, {"ca_file": ca_file})
    probe.fire(shot_at(HERE, host=HOST, server_name="other.example"))
    fake.clock.advance(1_000 * MS)
    failure = fake_collector.only("setup").failure
    assert failure is not None
    assert failure.kind is FailureKind.CERTIFICATE
    assert "other.example" in failure.detail


@pytest.mark.parametrize("name", ["", ".example", "a" * 64 + ".example", "x\0y"])
def test_a_server_name_that_cannot_be_is_a_failure(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str, name: str
) -> None:
    probe = fake_collector.open(TLS, {"ca_file": ca_file})
    probe.fire(shot_at(HERE, host=name or "..", server_name=name))
    fake.clock.advance(3_000 * MS)
    failure = fake_collector.only("setup").failure
    assert failure is not None
    assert failure.stage is Stage.HANDSHAKE
    assert failure.kind in (FailureKind.LOCAL, FailureKind.CERTIFICATE)


def test_tls_1_2_is_refused(
    tls_path: FakePath, shoot_tls: Shoot, server_context: ssl.SSLContext
) -> None:
    server_context.maximum_version = ssl.TLSVersion.TLSv1_2
    samples = shoot_tls()
    assert [sample.metric for sample in samples] == ["connect", "tls_handshake", "setup"]
    failure = samples[1].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.HANDSHAKE)
    assert "protocol version" in failure.detail


def test_garbage(fake: FakeNetwork, tls_path: FakePath, shoot_tls: Shoot) -> None:
    tls_path.tls, tls_path.says = None, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"
    failure = shoot_tls()[-1].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.HANDSHAKE)


def test_reset_and_close_in_the_handshake(tls_path: FakePath, shoot_tls: Shoot) -> None:
    tls_path.resets_after = 1
    reset = shoot_tls()[-1].failure
    assert reset is not None
    assert (reset.kind, reset.stage) == (FailureKind.RESET, Stage.HANDSHAKE)


def test_close_in_the_handshake(tls_path: FakePath, shoot_tls: Shoot) -> None:
    tls_path.closes_after = 1
    samples = shoot_tls()
    assert [sample.metric for sample in samples] == ["connect", "tls_handshake", "setup"]
    failure = samples[1].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.CLOSED, Stage.HANDSHAKE)


def test_refused(tls_path: FakePath, shoot_tls: Shoot) -> None:
    tls_path.refused = True
    samples = shoot_tls(resolve=True)
    assert [sample.metric for sample in samples] == ["resolve", "connect", "setup"]
    resolve, connect, setup = samples
    assert resolve.value_ns == 1 * MS
    assert (connect.value_ns, connect.flags) == (20 * MS, (Flag.REFUSED,))
    assert setup.failure == Failure(FailureKind.REFUSED, Stage.CONNECT, "connection refused")


def test_unreachable_keeps_the_routers_words(tls_path: FakePath, shoot_tls: Shoot) -> None:
    tls_path.unreachable = (3, 13, "198.51.100.7")
    samples = shoot_tls()
    failure = samples[-1].failure
    assert failure is not None
    assert (failure.kind, failure.icmp_type, failure.icmp_code) == (
        FailureKind.UNREACHABLE,
        3,
        13,
    )
    assert samples[0].responder == "198.51.100.7"


def test_an_unresolvable_name(fake: FakeNetwork, tls_path: FakePath, shoot_tls: Shoot) -> None:
    del fake.names[HOST]
    samples = shoot_tls(resolve=True)
    assert [sample.metric for sample in samples] == ["resolve", "setup"]
    kinds = {(s.failure.kind, s.failure.stage) for s in samples if s.failure is not None}
    assert kinds == {(FailureKind.NAME_NOT_FOUND, Stage.RESOLVE)}


@pytest.mark.parametrize("stage", [Stage.RESOLVE, Stage.CONNECT, Stage.HANDSHAKE])
def test_the_deadline_strikes_at_any_stage(
    fake: FakeNetwork, tls_path: FakePath, shoot_tls: Shoot, stage: Stage
) -> None:
    if stage is Stage.RESOLVE:
        fake.resolve_ns = None
    elif stage is Stage.CONNECT:
        tls_path.lost = lambda number: True
    else:
        tls_path.tls = None
    samples = shoot_tls(resolve=True)
    expected = {
        Stage.RESOLVE: ["resolve", "setup"],
        Stage.CONNECT: ["resolve", "connect", "setup"],
        Stage.HANDSHAKE: ["resolve", "connect", "tls_handshake", "setup"],
    }
    assert [sample.metric for sample in samples] == expected[stage]
    for sample in samples[-2:]:
        assert sample.failure == Failure(FailureKind.TIMEOUT, stage, "no answer within 1000 ms")


def test_an_answer_of_the_resolver_after_the_deadline_changes_nothing(
    fake: FakeNetwork, tls_path: FakePath, shoot_tls: Shoot
) -> None:
    fake.resolve_ns = 2_000 * MS
    assert [sample.metric for sample in shoot_tls(resolve=True)] == ["resolve", "setup"]


def test_an_authority_file_that_is_none(
    fake_collector: Collector, tmp_path: object, ca_file: str
) -> None:
    with pytest.raises(ConfigError) as told:
        fake_collector.open(TLS, {"ca_file": "missing.pem"})
    (fault,) = told.value.faults
    assert fault.file == "missing.pem"
    assert "no such file" in fault.problem
    with pytest.raises(ConfigError):
        fake_collector.open(TLS, {"ca_file": __file__})
