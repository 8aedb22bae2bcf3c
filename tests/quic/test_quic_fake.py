"""The quic probe in virtual time: every mode takes exactly the round trips that it should."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aioquic import tls
from aioquic._buffer import Buffer
from aioquic.quic.packet import QuicProtocolVersion
from tests.quic.scripted_server import ScriptedServer

from pathbudget.probes.contract import Option
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.record import ClockSource, FailureKind, Flag, Sample, Stage

ADDRESS, PORT = "192.0.2.1", 443
MS = 1_000_000
TRIP = 40 * MS
"""Round trip of the scripted server."""


async def fire(
    collector: Collector, probe: Any, *, times: int = 1, timeout_ns: int = 5_000 * MS
) -> list[Sample]:
    """Shots one after the other; the setup samples, and everything else is checked by whom it
    concerns.
    """
    for _ in range(times):
        shot = shot_at(ADDRESS, host="site.example", port=PORT, timeout_ns=timeout_ns)
        probe.fire(shot)
        async with asyncio.timeout(4):
            await probe.drain()
    return collector.of("setup")


def first_alone(number: int) -> bool:
    return number == 0


def everything(number: int) -> bool:
    return number >= 0


def serve(fake: FakeNetwork, folder: Path, **script: Any) -> ScriptedServer:
    server = ScriptedServer(folder, round_trip_ns=TRIP, **script)
    fake.services[ADDRESS, PORT] = server
    return server


async def test_a_full_handshake_takes_one_round_trip(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    await fire(fake_collector, probe)
    handshake = fake_collector.only("quic_handshake")
    assert handshake.value_ns == TRIP
    assert handshake.clock_source is ClockSource.KERNEL
    assert handshake.flags == ()
    assert handshake.mode == "cold"
    assert handshake.notes is not None
    assert handshake.notes["version"] == "v1"
    assert handshake.notes["alpn"] == "h3"
    assert handshake.notes["cipher"] == "TLS_AES_256_GCM_SHA384"
    assert handshake.notes["certificate_bytes"] == certificate_bytes(folder / "certificate.pem")
    assert handshake.notes["sent_bytes"] == 1200
    assert handshake.stamps is not None
    assert handshake.stamps.kernel_sent_ns == 0
    assert handshake.stamps.kernel_received_ns == TRIP
    assert fake_collector.only("setup").value_ns == TRIP
    compute = fake_collector.only("client_compute").value_ns
    assert compute is not None
    assert compute > 0
    probe.close()


def certificate_bytes(file: Path) -> int:
    import base64

    body = "".join(line for line in file.read_text().splitlines() if "-----" not in line)
    return len(base64.b64decode(body))


async def test_a_ticket_resumes_and_is_used_once(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    server = serve(fake, folder)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file, "mode": "resumed"})
    setups = await fire(fake_collector, probe, times=3)
    assert [sample.mode for sample in setups] == ["cold", "resumed", "resumed"]
    assert [sample.value_ns for sample in setups] == [TRIP] * 3
    notes = [sample.notes or {} for sample in fake_collector.of("quic_handshake")]
    assert [note.get("ticket") for note in notes] == ["none at hand", "accepted", "accepted"]
    assert notes[1]["certificate_bytes"] == 0
    assert all(not quic.tls.early_data_accepted for quic in server.connections)
    probe.close()


async def test_an_early_request_waits_for_nothing(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    server = serve(fake, folder)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file, "mode": "early_data"})
    setups = await fire(fake_collector, probe, times=2)
    assert [sample.mode for sample in setups] == ["cold", "early_data"]
    assert [sample.value_ns for sample in setups] == [TRIP, 0]
    assert [sample.value_ns for sample in fake_collector.of("quic_handshake")] == [TRIP, TRIP]
    assert server.requests[-1][":method"] == "HEAD"
    assert server.requests[-1][":authority"] == "site.example"
    probe.close()


async def test_a_server_that_rejects_early_data_is_a_failure(
    fake: FakeNetwork,
    fake_collector: Collector,
    folder: Path,
    ca_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve(fake, folder)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file, "mode": "early_data"})
    await fire(fake_collector, probe)
    read_hello = tls.pull_client_hello

    def deaf(buffer: Buffer) -> tls.ClientHello:
        """A server that reads on as if no early data had been announced (RFC 8446, 4.2.10)."""
        hello = read_hello(buffer)
        assert hello.early_data
        hello.early_data = False
        return hello

    monkeypatch.setattr(tls, "pull_client_hello", deaf)
    setups = await fire(fake_collector, probe)
    failure = setups[-1].failure
    assert failure is not None
    assert failure.kind is FailureKind.EARLY_DATA_REJECTED
    assert failure.detail == "the server resumed, and did not accept the early data"
    assert setups[-1].mode == "early_data"
    probe.close()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("resumed", FailureKind.NOT_RESUMED), ("early_data", FailureKind.EARLY_DATA_REJECTED)],
)
async def test_a_server_that_does_not_know_its_ticket_is_a_failure(
    fake: FakeNetwork,
    fake_collector: Collector,
    folder: Path,
    ca_file: str,
    mode: str,
    kind: FailureKind,
) -> None:
    server = serve(fake, folder)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file, "mode": mode})
    await fire(fake_collector, probe)
    server.resumes = False
    setups = await fire(fake_collector, probe)
    failure = setups[-1].failure
    assert failure is not None
    assert failure.kind is kind
    assert failure.detail == "the server did not accept the session ticket"
    probe.close()


@pytest.mark.parametrize(
    ("script", "flag", "trips"),
    [
        ({"retry": True}, Flag.RETRY, 2),
        ({"versions": (QuicProtocolVersion.VERSION_2,)}, Flag.VERSION_NEGOTIATION, 2),
        ({"certificate": "long.pem"}, Flag.AMPLIFICATION_STALL, 2),
    ],
    ids=["retry", "version negotiation", "amplification stall"],
)
async def test_each_round_trip_too_many_is_told(
    fake: FakeNetwork,
    fake_collector: Collector,
    folder: Path,
    ca_file: str,
    script: dict[str, Any],
    flag: Flag,
    trips: int,
) -> None:
    serve(fake, folder, **script)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.value_ns == trips * TRIP
    assert setup.flags == (flag,)
    probe.close()


async def test_two_round_trips_too_many_are_told_together(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    """aioquic's server keeps to the limit also where Retry has shown it our address."""
    serve(fake, folder, retry=True, certificate="long.pem")
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.value_ns == 3 * TRIP
    assert set(setup.flags) == {Flag.RETRY, Flag.AMPLIFICATION_STALL}
    probe.close()


@pytest.mark.parametrize(
    "script",
    [{"retry": True}, {"versions": (QuicProtocolVersion.VERSION_2,)}],
    ids=["retry", "version negotiation"],
)
async def test_early_data_survives_a_handshake_that_begins_anew(
    fake: FakeNetwork,
    fake_collector: Collector,
    folder: Path,
    ca_file: str,
    script: dict[str, Any],
) -> None:
    """aioquic forgets what left with the first flight; the server would wait for it for ever."""
    server = serve(fake, folder, **script)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file, "mode": "early_data"})
    setups = await fire(fake_collector, probe, times=2)
    assert setups[-1].failure is None
    assert setups[-1].mode == "early_data"
    assert len(server.requests) == 2
    probe.close()


async def test_a_lost_first_packet_is_marked(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder, lost=first_alone)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.value_ns is not None
    assert setup.value_ns > 600 * MS
    assert Flag.RETRIED in setup.flags
    probe.close()


async def test_reordered_packets_cost_no_timer(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    """The datagram with the ServerHello comes last: what came before is kept until it does."""
    server = serve(fake, folder, certificate="long.pem")
    server.late_ns = lambda number: 3 * MS if number == 0 else 0
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.value_ns == 2 * TRIP + 3 * MS
    assert setup.flags == (Flag.AMPLIFICATION_STALL,)
    probe.close()


async def test_silence_says_that_nothing_came_back(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder, lost=everything)
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe, timeout_ns=1_000 * MS)
    assert setup.failure is not None
    assert setup.failure.kind is FailureKind.TIMEOUT
    assert setup.failure.stage is Stage.HANDSHAKE
    assert setup.failure.detail == "no answer within 1000 ms: nothing came back over UDP"
    probe.close()


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (
            (3, 13, "198.51.100.1"),
            FailureKind.UNREACHABLE,
            "administratively prohibited: nothing came back over UDP",
        ),
        (
            (3, 3, ADDRESS),
            FailureKind.REFUSED,
            "port unreachable: nothing listens on UDP port 443",
        ),
    ],
    ids=["prohibited", "nobody listens"],
)
async def test_icmp_says_why_quic_does_not_get_through(
    fake: FakeNetwork,
    fake_collector: Collector,
    error: tuple[int, int, str],
    kind: FailureKind,
    detail: str,
) -> None:
    fake.paths[ADDRESS] = FakePath(unreachable=error)
    probe = fake_collector.open(QUIC)
    (setup,) = await fire(fake_collector, probe)
    assert setup.failure is not None
    assert (setup.failure.kind, setup.failure.detail) == (kind, detail)
    handshake = fake_collector.only("quic_handshake")
    assert handshake.responder == (None if error[2] == ADDRESS else error[2])
    probe.close()


async def test_a_certificate_that_is_not_trusted_is_a_failure(
    fake: FakeNetwork, fake_collector: Collector, folder: Path
) -> None:
    serve(fake, folder)
    probe = fake_collector.open(QUIC)
    (setup,) = await fire(fake_collector, probe)
    assert setup.failure is not None
    assert setup.failure.kind is FailureKind.CERTIFICATE
    assert setup.failure.detail == "self-signed certificate"
    probe.close()


async def test_what_is_not_verified_says_so(
    fake: FakeNetwork, fake_collector: Collector, folder: Path
) -> None:
    serve(fake, folder)
    probe = fake_collector.open(QUIC, {"verify": False})
    (setup,) = await fire(fake_collector, probe)
    assert setup.flags == (Flag.UNVERIFIED,)
    assert all(Flag.UNVERIFIED in sample.flags for _, sample in fake_collector.emitted)
    probe.close()


async def test_a_server_of_another_protocol_is_a_failure(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder, alpn=("other",))
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.failure is not None
    assert setup.failure.kind is FailureKind.PROTOCOL
    assert "no application protocol" in setup.failure.detail
    probe.close()


async def test_a_server_of_no_version_of_ours_is_a_failure(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder, versions=(0x0A0A0A0A,))
    probe = fake_collector.open(QUIC, {"ca_file": ca_file})
    (setup,) = await fire(fake_collector, probe)
    assert setup.failure is not None
    assert setup.failure.kind is FailureKind.PROTOCOL
    assert "version" in setup.failure.detail
    probe.close()


async def test_a_ticket_of_an_age_waits_until_it_has_it(
    fake: FakeNetwork, fake_collector: Collector, folder: Path, ca_file: str
) -> None:
    serve(fake, folder)
    options: dict[str, Option] = {"ca_file": ca_file, "mode": "resumed", "ticket_age": 3600.0}
    probe = fake_collector.open(QUIC, options)
    await fire(fake_collector, probe, times=2)
    fake.clock.advance(3_600_000 * MS)
    fake.clock.step(-86_400_000 * MS)  # the age is that of the monotonic clock
    setups = await fire(fake_collector, probe)
    assert [sample.mode for sample in setups] == ["cold", "cold", "resumed"]
    notes = fake_collector.of("quic_handshake")[-1].notes
    assert notes is not None
    age = notes["ticket_age_ms"]
    assert isinstance(age, int)
    assert 3_600_000 <= age < 3_605_000
    assert notes["ticket"] == "accepted"
    probe.close()
