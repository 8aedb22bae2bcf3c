"""Fuzz targets of what DNS servers send. See tests/fuzzing.py."""

import random

from pathbudget.probes.channels import Datagram, DatagramBatch, QueuedError
from pathbudget.probes.clock import Reading
from pathbudget.probes.dns.answers import Answer, read_answer, refuse
from pathbudget.probes.dns.caches import Caches
from pathbudget.probes.dns.events import Outcome
from pathbudget.probes.dns.settings import OPTIONS, read_settings
from pathbudget.probes.dns.stream_link import FrameReader
from pathbudget.probes.dns.udp_session import UdpSession
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.record import AddressFamily

THERE, PORT = "192.0.2.1", 53
SENT = Reading(0, 1_790_000_000 * 10**9, 100)
READ = Reading(20_000_000, SENT.unix_ns + 20_000_000, 100)
SETTINGS = read_settings(
    {name: option.default for name, option in OPTIONS.items()}
    | {"name": "www.example.org", "zone": "example.org"}
)


def fuzz_one_answer(data: bytes) -> None:
    """Any bytes as an answer, and behind a header and question that are ours: nothing raises, notes
    are bounded, and only what carries our question back ends it.
    """
    session = UdpSession(AddressFamily.IPV4, SETTINGS, random.Random(1), Caches())
    session.begin(shot_at(THERE), SENT)
    questions = []
    for flight in session.outgoing():
        sending = session.send(flight, SENT)
        assert sending is not None
        questions.append(sending.question)
    miss = questions[1]
    header = miss.wire[:2] + b"\x84\x00\x00\x01" + (data + bytes(6))[:6]
    for wire in (data, miss.wire[:2] + data, header + miss.asked + data[6:]):
        arrival = Datagram(wire, THERE, PORT, "", 60, 0, READ.unix_ns)
        session.receive(DatagramBatch(arrivals=[arrival]), READ)
        for event in session.events():
            if isinstance(event, Outcome):
                assert any(refuse(question, wire) is None for question in questions)
        answer = read_answer(wire)
        if isinstance(answer, Answer):
            notes = answer.notes(dnssec=True)
            assert all(len(str(value)) <= 400 for value in notes.values())
            assert all(str(value).isprintable() for value in notes.values())
    error = QueuedError(3, 3, THERE, THERE, data, None)
    session.receive(DatagramBatch(errors=[error]), READ)


def fuzz_one_frames(data: bytes) -> None:
    """Any stream, cut anywhere: what comes out is what went in, and little is held."""
    reader, out = FrameReader(), bytearray()
    for at in range(0, len(data), 7):
        for message in reader.take(data[at : at + 7]):
            out += len(message).to_bytes(2, "big") + message
    assert data.startswith(bytes(out))
    assert len(data) - len(out) < 2 + 65_535
