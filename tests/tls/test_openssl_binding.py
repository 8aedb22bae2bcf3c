"""What is reached of OpenSSL through private names: all there, and what happens where it is not."""

import ssl
import sys

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.record import ConnectionMode, FailureKind
from pathbudget.probes.tls import openssl_binding as binding
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000
HERE, HOST = "192.0.2.1", "site.example"
EARLY = {"mode": "early_data"}


def test_nothing_is_missing_in_the_version_that_is_installed() -> None:
    assert binding.MISSING == ()


def test_without_the_binding_early_data_is_unavailable_and_nothing_is_sent(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "MISSING", ("SSL_write_early_data",))
    probe = fake_collector.open(TLS, {"ca_file": ca_file, **EARLY})
    for seq in range(2):
        probe.fire(shot_at(HERE, seq=seq, host=HOST))
        fake.clock.advance(1_000 * MS)
    assert len(fake_collector.of("setup")) == 2
    for _, sample in fake_collector.emitted:
        assert sample.failure is not None
        assert sample.failure.kind is FailureKind.UNAVAILABLE
        assert "SSL_write_early_data" in sample.failure.detail
    assert tls_path.sent == 0
    with pytest.raises(ConfigError):
        fake_collector.open(TLS, {"ca_file": ca_file, "groups": "X25519"})


@pytest.mark.parametrize("options", [EARLY, {"groups": "X25519"}, {"library": "openssl"}])
def test_without_pyopenssl_a_person_is_told_what_to_install(
    fake_collector: Collector, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, "pathbudget.probes.tls.openssl_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'pathbudget\[request\]'"):
        fake_collector.open(TLS, options)


def test_without_pyopenssl_pythons_own_library_does(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pathbudget.probes.tls.openssl_client", None)
    probe = fake_collector.open(TLS, {"ca_file": ca_file})
    probe.fire(shot_at(HERE, host=HOST))
    fake.clock.advance(1_000 * MS)
    said = str((fake_collector.only("tls_handshake").notes or {})["library"]).split()[1]
    assert said == ssl.OPENSSL_VERSION.split()[1]


def test_pythons_own_library_cannot_send_early_data(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "library": "ssl", **EARLY})
    probe.fire(shot_at(HERE, host=HOST))
    failure = fake_collector.only("setup").failure
    assert failure is not None
    assert failure.kind is FailureKind.UNAVAILABLE
    with pytest.raises(ConfigError, match="groups"):
        fake_collector.open(TLS, {"library": "ssl", "groups": "X25519"})


@pytest.mark.parametrize("groups", ["X99", "", ":", "X25519,P-256", "é"])
def test_groups_that_are_none(fake_collector: Collector, ca_file: str, groups: str) -> None:
    if not groups:
        fake_collector.open(TLS, {"ca_file": ca_file, "groups": groups})
        return
    with pytest.raises(ConfigError, match="groups"):
        fake_collector.open(TLS, {"ca_file": ca_file, "groups": groups})


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        ("missing.pem", ""),
        ("{folder}/certificate.pem", ""),
        ("{folder}/key.pem", "{folder}/key.pem"),
        ("{folder}/certificate.pem", "{folder}/certificate.pem"),
        ("{folder}/certificate.pem", "missing.pem"),
        ("{folder}/certificate.pem", "{folder}/locked.pem"),
    ],
)
def test_a_certificate_of_ours_that_is_none(
    fake_collector: Collector,
    certificate_folder: object,
    locked_key: str,
    library: str,
    certificate: str,
    key: str,
) -> None:
    key = locked_key if "locked" in key else key
    files = {
        "client_certificate": certificate.format(folder=certificate_folder),
        "client_key": key.format(folder=certificate_folder),
    }
    with pytest.raises(ConfigError, match="our certificate and its key"):
        fake_collector.open(TLS, {"library": library, **files})


@pytest.mark.parametrize("ca_file", ["missing.pem", __file__])
def test_authorities_that_are_none(fake_collector: Collector, ca_file: str) -> None:
    with pytest.raises(ConfigError, match="certificates in PEM form"):
        fake_collector.open(TLS, {"groups": "X25519", "ca_file": ca_file})


def test_a_session_lives_on_when_its_connection_is_gone(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    """OpenSSL spoils a session whose connection is freed without a goodbye; ours is a copy."""
    probe = fake_collector.open(TLS, {"mode": "resumed", "groups": "X25519", "ca_file": ca_file})
    for seq in range(3):
        probe.fire(shot_at(HERE, seq=seq, host=HOST))
        fake.clock.advance(3_000 * MS)
    modes = [sample.mode for sample in fake_collector.of("tls_handshake")]
    assert modes == [ConnectionMode.COLD, ConnectionMode.RESUMED, ConnectionMode.RESUMED]


def test_a_name_that_the_certificate_is_not_for(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "groups": "X25519"})
    names = [HOST, "other.example", HERE, "127.0.0.1", "", ".x", "a" * 64 + ".example", "x\0y"]
    for seq, name in enumerate(names):
        probe.fire(shot_at(HERE, seq=seq, host=name or "..", server_name=name))
        fake.clock.advance(1_000 * MS)
    kinds = [None if s.failure is None else s.failure.kind for s in fake_collector.of("setup")]
    refused, local = FailureKind.CERTIFICATE, FailureKind.LOCAL
    assert kinds[:4] == [None, refused, refused, None]
    assert set(kinds[4:]) <= {refused, local}


def test_tls_1_2_is_refused_here_too(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    server_context: ssl.SSLContext,
) -> None:
    server_context.maximum_version = ssl.TLSVersion.TLSv1_2
    probe = fake_collector.open(TLS, {"ca_file": ca_file, "groups": "X25519"})
    probe.fire(shot_at(HERE, host=HOST))
    fake.clock.advance(1_000 * MS)
    failure = fake_collector.only("setup").failure
    assert failure is not None
    assert failure.kind is FailureKind.PROTOCOL
    assert "protocol version" in failure.detail


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x80\x00", b"x"])
def test_facts_of_what_is_no_session(data: bytes) -> None:
    assert binding.session_facts(data) == binding.SessionFacts()
