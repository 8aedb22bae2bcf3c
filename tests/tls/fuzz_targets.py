"""Fuzz targets of everything in TLS that reads foreign bytes. See tests/fuzzing.py.

By hand, for 100,000 connections to servers that say anything, and what memory they leave behind:

    python tests/tls/fuzz_targets.py --rounds 100000
"""

import argparse
import random
import resource
import ssl
import sys
from dataclasses import dataclass, field

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.contract import ProbeEnvironment
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.record import ConnectionMode, Failure
from pathbudget.probes.tls.client import SslLibrary
from pathbudget.probes.tls.client_side import TlsLibrary
from pathbudget.probes.tls.openssl_binding import session_facts
from pathbudget.probes.tls.openssl_client import OpenSslLibrary
from pathbudget.probes.tls.records import plain_lengths
from pathbudget.probes.tls.server_hello import accepts_early_data, read_server_hello
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.stream import TlsStreamDialer

HERE, SECOND = "192.0.2.1", 1_000_000_000
UNCHECKED = TlsSettings(verify=False)
LIBRARIES: tuple[TlsLibrary, ...] = (
    SslLibrary(UNCHECKED),
    OpenSslLibrary(TlsSettings(verify=False, mode=ConnectionMode.EARLY_DATA)),
)


def fuzz_one_hello(data: bytes) -> None:
    """What a server says in clear, in records and as a message."""
    for start in (b"", b"\x16\x03\x03\x01\x00", b"\x16\x03\x03\x01\x00\x02\x00\x00\xfc\x03\x03"):
        found = read_server_hello(start + data)
        assert len(found.group) < 30
    accepts_early_data(b"\x08" + data)
    assert sum(length for _, length in plain_lengths(data)) <= 65_535 * (len(data) // 5 + 1)


def fuzz_one_session(data: bytes) -> None:
    """What a saved session says, whatever it is."""
    facts = session_facts(data)
    assert len(facts.ticket) <= len(data)


def fuzz_one_server(data: bytes) -> None:
    """A server's first bytes, in two reads: no library raises, and none believes them."""
    cut = len(data) // 2
    for library in LIBRARIES:
        client = library.client("site.example", None)
        assert client.start()
        for piece in (data[:cut], data[cut:]):
            if piece and client.failure is None:
                client.receive(piece)
        assert not client.complete
        client.goodbye()


@dataclass
class _Ear:
    ends: list[str] = field(default_factory=list[str])

    def opened(self, opened: Opened) -> None:
        self.ends.append(opened.mode)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        del metric, done
        self.ends.append(failure.kind)

    def sent(self, last_byte: int, moment: Moment) -> None:
        assert last_byte >= 0
        assert moment.kernel_unix_ns is not None

    acknowledged = sent

    def received(self, data: bytes, moment: Moment) -> None:
        assert data
        del moment

    def ended(self) -> None:
        self.ends.append("ended")


class World:
    """A dialer on a fake network where the other side says what it is told to."""

    def __init__(self, settings: TlsSettings) -> None:
        self.network = FakeNetwork(FakeClock())
        self.path = self.network.paths[HERE] = FakePath()
        collector = Collector(self.network, self.network.clock)
        environment = ProbeEnvironment(
            self.network,
            self.network.clock,
            collector.rng,
            lambda _series, _sample: None,
            lambda _series, _word: None,
        )
        self.dialer = TlsStreamDialer(environment, settings)

    def dial(self) -> list[str]:
        """One connection to its end: it ends, by the deadline at the latest, once."""
        ear = _Ear()
        stream = self.dialer.dial(shot_at(HERE, host="site.example"), ear, early=b"early")
        self.network.clock.advance(2 * SECOND)
        stream.close()
        self.network.clock.advance(2 * SECOND)
        assert len(ear.ends) == 1
        return ear.ends


def fuzz_one_stream(data: bytes) -> None:
    """A whole connection to a server that says this to everything."""
    for settings in (TlsSettings(verify=False, library="ssl"), UNCHECKED):
        world = World(settings)
        world.path.says = data
        (end,) = world.dial()
        assert end in ("protocol", "closed", "timeout")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--certificate", help="PEM file with certificate and key: also good rounds")
    asked = parser.parse_args()
    rng = random.Random(1)
    settings = [
        UNCHECKED,
        TlsSettings(verify=False, mode=ConnectionMode.RESUMED),
        TlsSettings(verify=False, mode=ConnectionMode.EARLY_DATA),
    ]
    worlds = [World(one) for one in settings]
    good = None
    if asked.certificate:
        good = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        good.load_cert_chain(asked.certificate)
    for number in range(asked.rounds):
        world = worlds[number % len(worlds)]
        world.path.tls = good if number // 3 % 2 else None
        world.path.says = None if world.path.tls else rng.randbytes(rng.randrange(1, 600))
        world.dial()
        if number % (asked.rounds // 10) == asked.rounds // 20:
            peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            sys.stdout.write(f"{number:7} connections, at most {peak_kb / 1024:.1f} MiB so far\n")


if __name__ == "__main__":
    main()
