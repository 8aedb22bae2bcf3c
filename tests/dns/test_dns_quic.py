"""DNS over QUIC. No server of Debian 12 speaks it, so the server is aioquic's, with answers by
dnspython; and `kdig +quic` of Knot DNS is asked the same, so that it is not our own word alone that
what it speaks is RFC 9250.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, QuicEvent, StreamDataReceived
from aioquic.tls import SessionTicket
from tests.programs import program

from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import ClockSource, ConnectionMode, FailureKind

SECOND = 1_000_000_000
HERE = "127.0.0.1"
ROUNDS = 3


class Certificate(Protocol):
    @property
    def file(self) -> Path: ...
    @property
    def key(self) -> Path: ...


@dataclass
class DoqServer:
    """What the server has seen."""

    port: int = 0
    resumed: list[bool] = field(default_factory=list[bool])
    early: list[bool] = field(default_factory=list[bool])
    questions: list[dns.message.Message] = field(default_factory=list[dns.message.Message])
    tickets: dict[bytes, SessionTicket] = field(default_factory=dict[bytes, SessionTicket])
    says: bytes | None = None
    """Said instead of the answer."""


def answer_to(wire: bytes) -> dns.message.Message:
    """An address for ``host.lan``, and no other name."""
    question = dns.message.from_wire(wire)
    answer = dns.message.make_response(question)
    answer.flags |= dns.flags.AA
    name = question.question[0].name
    if name.to_text().lower() == "host.lan.":
        answer.answer.append(dns.rrset.from_text(name, 300, "IN", "A", "192.0.2.7"))
    else:
        answer.set_rcode(dns.rcode.NXDOMAIN)
    return answer


@asynccontextmanager
async def serve_doq(certificate: Certificate) -> AsyncGenerator[DoqServer]:
    """Serve on a port of 127.0.0.1 that the system chooses."""
    seen = DoqServer()

    class Talk(QuicConnectionProtocol):
        def quic_event_received(self, event: QuicEvent) -> None:
            if isinstance(event, HandshakeCompleted):
                seen.resumed.append(event.session_resumed)
                seen.early.append(event.early_data_accepted)
            elif isinstance(event, StreamDataReceived) and event.end_stream:
                assert int.from_bytes(event.data[:2], "big") == len(event.data) - 2
                seen.questions.append(dns.message.from_wire(event.data[2:]))
                wire = answer_to(event.data[2:]).to_wire()
                framed = len(wire).to_bytes(2, "big") + wire if seen.says is None else seen.says
                self._quic.send_stream_data(event.stream_id, framed, end_stream=True)
                self.transmit()

    def keep(ticket: SessionTicket) -> None:
        seen.tickets[ticket.ticket] = ticket

    configuration = QuicConfiguration(is_client=False, alpn_protocols=["doq"])
    configuration.load_cert_chain(certificate.file, certificate.key)
    server = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=Talk,
        session_ticket_fetcher=seen.tickets.get,
        session_ticket_handler=keep,
    )
    transport = server._transport
    assert transport is not None
    seen.port = int(transport.get_extra_info("sockname")[1])
    try:
        yield seen
    finally:
        server.close()


async def shoot(collector: Collector, port: int, count: int = ROUNDS, **options: str) -> None:
    probe = collector.open(DNS, {"transport": "doq", "name": "host.lan", **options})
    for seq in range(count):
        target = shot_at(HERE, seq=seq, port=port, server_name="localhost", timeout_ns=5 * SECOND)
        probe.fire(target)
        await probe.drain()
    probe.close()


@pytest.mark.parametrize("mode", ["cold", "resumed", "early_data", "warm"])
async def test_every_mode_is_what_the_server_saw(
    collector: Collector, certificate: Certificate, mode: str
) -> None:
    async with serve_doq(certificate) as server:
        await shoot(collector, server.port, mode=mode, zone="lan", ca_file=str(certificate.file))
    hits, setups = collector.of("dns_hit"), collector.of("setup")
    assert [sample.failure for sample in (*hits, *setups)] == [None] * (2 * ROUNDS)
    assert {sample.mode for sample in (*hits[1:], *setups[1:])} == {ConnectionMode(mode)}
    assert hits[-1].clock_source is ClockSource.KERNEL
    assert {(one.notes or {})["rcode"] for one in collector.of("dns_miss")} == {"NXDOMAIN"}
    seen = [sample.mode for sample in (*hits, *collector.of("dns_miss"))]
    early = seen.count(ConnectionMode.EARLY_DATA)
    assert sum(server.early) == early
    assert sum(server.resumed) == seen.count(ConnectionMode.RESUMED) + early
    assert {question.id for question in server.questions} == {0}  # RFC 9250, 4.2.1
    assert len(server.questions) == 2 * ROUNDS + 1
    if mode in ("early_data", "warm"):
        assert setups[-1].value_ns == 0


@pytest.mark.needs("kdig")
async def test_another_client_gets_the_same_answer(certificate: Certificate) -> None:
    async with serve_doq(certificate) as server:
        kdig = await asyncio.create_subprocess_exec(
            program("kdig"), "+quic", f"@{HERE}", "-p", str(server.port), "+short", "host.lan",
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await kdig.communicate()
    assert said.split() == [b"192.0.2.7"]


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        (b"", FailureKind.PROTOCOL),
        (b"\xff\xff\x00", FailureKind.PROTOCOL),
        (b"\x00\x0c" + bytes(12), FailureKind.TIMEOUT),
    ],
    ids=["nothing", "half", "rubbish"],
)
async def test_a_server_without_an_answer(
    collector: Collector, certificate: Certificate, says: bytes, kind: FailureKind
) -> None:
    async with serve_doq(certificate) as server:
        server.says = says
        probe = collector.open(DNS, {"transport": "doq", "ca_file": str(certificate.file)})
        probe.fire(shot_at(HERE, port=server.port, server_name="localhost", timeout_ns=SECOND // 2))
        await probe.drain()
        probe.close()
    failure = collector.only("dns_hit").failure
    assert failure is not None
    assert failure.kind is kind


async def test_a_filtered_port_is_a_result(collector: Collector) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, (HERE, 0))
    port = int(transport.get_extra_info("sockname")[1])
    probe = collector.open(DNS, {"transport": "doq"})
    probe.fire(shot_at(HERE, port=port, server_name="localhost", timeout_ns=SECOND // 4))
    await probe.drain()
    probe.close()
    transport.close()
    for metric in ("setup", "dns_hit"):
        failure = collector.only(metric).failure
        assert failure is not None
        assert failure.kind is FailureKind.TIMEOUT
