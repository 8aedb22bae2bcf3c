"""A fake network whose time jumps; certificates; what QUIC connections and exchanges told."""

import asyncio
import datetime
import ipaddress
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import ProbeEnvironment
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.record import Failure, Note, Sample

PADDING = x509.ObjectIdentifier("1.3.6.1.4.1.32473.1")


def make_certificate(
    folder: Path, file: str, key: ec.EllipticCurvePrivateKey, padding: int
) -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file)])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("site.example")]
    names += [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if padding:
        filler = x509.UnrecognizedExtension(PADDING, bytes(padding))
        builder = builder.add_extension(filler, critical=False)
    made = builder.sign(key, hashes.SHA256())
    (folder / file).write_bytes(made.public_bytes(serialization.Encoding.PEM))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`certificate.pem`, one of over 5 kB as `long.pem`, and the `key.pem` of both."""
    place = tmp_path_factory.mktemp("quic")
    key = ec.generate_private_key(ec.SECP256R1())
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (place / "key.pem").write_bytes(secret)
    make_certificate(place, "certificate.pem", key, 0)
    make_certificate(place, "long.pem", key, 5_000)
    both = (place / "certificate.pem").read_bytes() + (place / "long.pem").read_bytes()
    (place / "ca.pem").write_bytes(both)
    return place


@pytest.fixture
def ca_file(folder: Path) -> str:
    """Both certificates, to be trusted."""
    return str(folder / "ca.pem")


@pytest.fixture
def fake() -> FakeNetwork:
    """Time jumps ahead whenever nobody has work to do."""
    return FakeNetwork(FakeClock(jumps=True))


def environment_of(network: Network, clock: Clock) -> ProbeEnvironment:
    """For what emits no samples."""

    def emit(series: int, sample: Sample) -> None:
        raise AssertionError((series, sample))

    def count(series: int, word: str) -> None:
        raise AssertionError((series, word))

    return ProbeEnvironment(network, clock, random.Random(1), emit, count)


@dataclass
class Heard:
    """What a connection told. A `QuicListener`; `on_open` is called as it stands."""

    on_open: Callable[[], None] = lambda: None
    opening: Opened | None = None
    failure: Failure | None = None
    metric: str | None = None
    lefts: dict[int, tuple[Moment, Moment]] = field(
        default_factory=dict[int, tuple[Moment, Moment]]
    )
    acknowledgements: dict[int, Moment] = field(default_factory=dict[int, Moment])
    data: dict[int, bytes] = field(default_factory=dict[int, bytes])
    moments: dict[int, Moment] = field(default_factory=dict[int, Moment])
    refusals: dict[int, int] = field(default_factory=dict[int, int])
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """A stream has ended, or all has failed."""

    def opened(self, opened: Opened) -> None:
        assert self.opening is None
        assert self.failure is None
        self.opening = opened
        self.on_open()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        del done
        assert self.failure is None
        self.metric, self.failure = metric, failure
        self.done.set()

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        assert stream not in self.lefts
        self.lefts[stream] = (first, last)

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        assert stream not in self.acknowledgements
        self.acknowledgements[stream] = moment

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        self.data[stream] = self.data.get(stream, b"") + data
        self.moments[stream] = moment
        if fin:
            self.done.set()

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        del moment
        self.refusals[stream] = code
        self.done.set()


@dataclass
class Answered:
    """What became of one request. A `carriers.AnswerListener`."""

    words: list[str] = field(default_factory=list[str])
    """What was called, in order."""
    first: Moment | None = None
    last: Moment | None = None
    acknowledgement: Moment | None = None
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    head_moment: Moment | None = None
    content: bytes = b""
    end: Moment | None = None
    notes: Mapping[str, Note] = field(default_factory=dict[str, Note])
    failure: Failure | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def left(self, first: Moment, last: Moment) -> None:
        self.words.append("left")
        self.first, self.last = first, last

    def acknowledged(self, moment: Moment) -> None:
        self.words.append("acknowledged")
        self.acknowledgement = moment

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        self.words.append("head")
        self.status, self.headers, self.head_moment = status, dict(headers), moment

    def body(self, data: bytes, moment: Moment) -> None:
        del moment
        self.words.append("body")
        self.content += data

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        self.words.append("complete")
        self.end, self.notes = moment, notes
        self.done.set()

    def failed(self, failure: Failure) -> None:
        self.words.append("failed")
        self.failure = failure
        self.done.set()
