"""Headers in clear, certificates, options: what needs no server."""

import datetime
from pathlib import Path

import pytest
from aioquic import tls
from aioquic._buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.quic.endings import from_close
from pathbudget.probes.quic.flight import Flight
from pathbudget.probes.quic.inside import GROUPS, ClientConnection, Closing
from pathbudget.probes.quic.packets import (
    VERSION_1,
    VERSION_2,
    PacketHead,
    PacketKind,
    read_datagram,
)
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.quic.verifying import Authorities
from pathbudget.probes.record import FailureKind, Flag, Stage

IDS = b"\x08" + bytes(8) + b"\x04" + bytes(4)
MS = 1_000_000


def long_header(first: int, version: int, rest: bytes) -> bytes:
    return bytes([first]) + version.to_bytes(4, "big") + IDS + rest


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (long_header(0xC0, VERSION_1, b"\x00\x05" + bytes(5)), ["initial"]),
        (long_header(0xD0, VERSION_2, b"\x00\x05" + bytes(5)), ["initial"]),
        (long_header(0xD0, VERSION_1, b"\x05" + bytes(5)), ["0-rtt"]),
        (long_header(0xE0, VERSION_1, b"\x05" + bytes(5)), ["handshake"]),
        (long_header(0xF0, VERSION_1, b"token" + bytes(16)), ["retry"]),
        (long_header(0x80, 0, b"\0\0\0\x01\x6b\x33\x43\xcf"), ["version negotiation"]),
        (b"\x40" + bytes(30), ["1-rtt"]),
        (
            long_header(0xC0, VERSION_1, b"\x00\x05" + bytes(5))
            + long_header(0xE0, VERSION_1, b"\x05" + bytes(5))
            + bytes(100),
            ["initial", "handshake"],
        ),
        (long_header(0xC0, VERSION_1, b"\x00\x44\x00" + bytes(5)), []),
        (long_header(0xC0, VERSION_1, b"\xff"), []),
        (long_header(0xF0, VERSION_1, bytes(16)), []),
        (long_header(0xC0, 0x0A0A0A0A, b"\x00\x05" + bytes(5)), []),
        (b"\xc0\0\0\0\x01\x15" + bytes(40), []),
        (bytes(40), []),
        (b"", []),
    ],
)
def test_packets_are_told_by_their_headers(data: bytes, kinds: list[str]) -> None:
    assert [head.kind for head in read_datagram(data)] == kinds


def test_a_token_and_versions_are_read() -> None:
    (initial,) = read_datagram(long_header(0xC0, VERSION_1, b"\x03abc\x05" + bytes(5)))
    assert initial.token == b"abc"
    (offer,) = read_datagram(long_header(0x80, 0, b"\0\0\0\x01\x6b\x33\x43\xcf"))
    assert offer.versions == (VERSION_1, VERSION_2)


def test_a_client_makes_no_more_keys_than_it_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    push_hello = tls.push_client_hello

    def watch(buffer: Buffer, hello: tls.ClientHello) -> None:
        made.extend(group for group, _ in hello.key_share or ())
        assert hello.supported_groups == made
        push_hello(buffer, hello)

    monkeypatch.setattr(tls, "push_client_hello", watch)
    quic = ClientConnection(configuration=QuicConfiguration(server_name="site.example"))
    quic.connect(("192.0.2.1", 443), 0.0)
    assert sorted(made) == sorted(GROUPS)


def at(monotonic_ns: int) -> Moment:
    return Moment(Reading(monotonic_ns, 1_790_000_000 * 10**9 + monotonic_ns, 0))


INITIAL = [PacketHead(PacketKind.INITIAL, 0, 1200, VERSION_1)]
HANDSHAKE = [PacketHead(PacketKind.HANDSHAKE, 0, 1200, VERSION_1)]


@pytest.mark.parametrize(
    ("sizes", "pause_ns", "stalled"),
    [
        ((1200, 1200, 1200), 40 * MS, True),
        ((1200, 1200, 1200), 5 * MS, False),
        ((1200, 1200), 40 * MS, False),
    ],
    ids=["limit and pause", "no pause", "below the limit"],
)
def test_a_stall_is_a_pause_at_the_limit(
    sizes: tuple[int, ...], pause_ns: int, stalled: bool
) -> None:
    flight = Flight()
    flight.left(INITIAL, 1200, at(0))
    for number, size in enumerate(sizes):
        flight.came(INITIAL, size, at(40 * MS + number))
    flight.left(HANDSHAKE, 1200, at(41 * MS))
    flight.came(HANDSHAKE, 1200, at(40 * MS + pause_ns))
    assert flight.flags == ((Flag.AMPLIFICATION_STALL,) if stalled else ())


def signed(name: str, days: tuple[int, int], names: list[x509.GeneralName]) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return builder.sign(key, hashes.SHA256())


@pytest.mark.parametrize(
    ("days", "server_name", "why_not"),
    [
        ((-1, 1), "site.example", ""),
        ((-1, 1), "other.example", "hostname mismatch"),
        ((-1, 1), "192.0.2.1", "hostname mismatch"),
        ((-2, -1), "site.example", "certificate has expired"),
        ((1, 2), "site.example", "certificate is not yet valid"),
    ],
)
def test_certificates_are_checked_by_name_date_and_chain(
    tmp_path: Path, days: tuple[int, int], server_name: str, why_not: str
) -> None:
    leaf = signed("a", days, [x509.DNSName("site.example")])
    file = tmp_path / "ca.pem"
    file.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    said = Authorities(str(file)).why_not(leaf, [], server_name)
    assert said.startswith(why_not)
    assert bool(said) == bool(why_not)


def test_a_stranger_is_not_trusted(tmp_path: Path) -> None:
    names: list[x509.GeneralName] = [x509.DNSName("site.example")]
    known, stranger = (signed(name, (-1, 1), names) for name in "ab")
    file = tmp_path / "ca.pem"
    file.write_bytes(known.public_bytes(serialization.Encoding.PEM))
    said = Authorities(str(file)).why_not(stranger, [], "site.example")
    assert said == "self-signed certificate"


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "no such file"), (b"", "empty"), (b"x", "no certificates")]
)
def test_a_file_of_authorities_that_is_none_is_an_error(
    fake_collector: Collector, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        fake_collector.open(QUIC, {"ca_file": str(file)})


@pytest.mark.parametrize("content", [b"", b"no certificate"])
def test_a_certificate_of_our_own_that_is_none_is_an_error(
    fake_collector: Collector, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(content)
    with pytest.raises(ConfigError):
        fake_collector.open(QUIC, {"client_certificate": str(file)})


def test_a_certificate_without_its_key_is_an_error(fake_collector: Collector, folder: Path) -> None:
    with pytest.raises(ConfigError, match="no private key"):
        fake_collector.open(QUIC, {"client_certificate": str(folder / "certificate.pem")})


def test_early_data_needs_a_protocol_whose_requests_are_known(fake_collector: Collector) -> None:
    with pytest.raises(ConfigError, match="h3"):
        fake_collector.open(QUIC, {"mode": "early_data", "alpn": "doq"})


@pytest.mark.parametrize(
    ("closing", "kind", "detail"),
    [
        (Closing(0x2, "", ours=False, application=False), FailureKind.REFUSED, "refuses"),
        (Closing(0x178, "", ours=False, application=False), FailureKind.PROTOCOL, "application"),
        (Closing(0x12A, "", ours=False, application=False), FailureKind.CERTIFICATE, "bad"),
        (Closing(0x0, "", ours=False, application=False), FailureKind.CLOSED, "other side"),
        (Closing(0xA, "a\nb", ours=False, application=False), FailureKind.PROTOCOL, "a?b"),
        (Closing(0x100, "", ours=False, application=True), FailureKind.CLOSED, "other side"),
        (Closing(0x107, "no", ours=False, application=True), FailureKind.CLOSED, "0x107: no"),
        (Closing(0x106, "", ours=True, application=True), FailureKind.PROTOCOL, "0x106"),
    ],
)
def test_how_a_connection_was_closed_says_why(
    closing: Closing, kind: FailureKind, detail: str
) -> None:
    failure = from_close(closing, Stage.HANDSHAKE)
    assert failure.kind is kind
    assert detail in failure.detail
