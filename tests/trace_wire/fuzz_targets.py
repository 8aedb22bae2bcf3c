"""Fuzz target of everything that a trace hears. See tests/fuzzing.py."""

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow, FlowPacket, PathArrival, TraceProtocol
from pathbudget.probes.trace.extensions import read_extensions
from pathbudget.probes.trace.matching import Match, match
from pathbudget.probes.trace.wire import build, build_session, read

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
HERE = {V4: "192.0.2.1", V6: "2001:db8::1"}
THERE = {V4: "198.51.100.7", V6: "2001:db8:1::7"}
SECRET = b"\x9a\x12seCret"
TOKEN = 0x1357


def _packets(family: AddressFamily) -> list[FlowPacket]:
    flow = Flow(TraceProtocol.UDP, family, HERE[family], THERE[family], 33_434, 443)
    packets = [
        build(flow._replace(protocol=protocol), 1, TOKEN, secret=SECRET)
        for protocol in (TraceProtocol.UDP, TraceProtocol.ICMP, TraceProtocol.TCP)
    ]
    session = flow._replace(protocol=TraceProtocol.SESSION)
    return [*packets, build_session(session, 1, TOKEN, acknowledged=70_000, expected=1)]


PACKETS = {family: _packets(family) for family in AddressFamily}


def fuzz_one_answer(data: bytes) -> None:
    """Any bytes as an answer and as an error around a quote of ours: nothing raises, and what is
    about a probe says so with its token, or says that it cannot tell (token 0).
    """
    for family, packets in PACKETS.items():
        heard = [data, *(data[:8] + one.data[: 28 + len(data)] + data[8:] for one in packets)]
        for protocol in (1, 6, 58):
            for one in heard:
                _one(PathArrival(protocol, _checked(one), THERE[family], 9, 1), family)
    _extensions(data)


def _one(arrival: PathArrival, family: AddressFamily) -> None:
    answer = read(arrival, family)
    if answer is None:
        return
    assert 0 <= answer.token <= 0xFFFF
    assert answer.token or answer.word == "ack"
    assert len(answer.stack) <= 16
    assert all(len(note.name) <= 63 and note.name.isprintable() for note in answer.interfaces)
    for packet in PACKETS[family]:
        if match(packet, answer) is not Match.FOREIGN:
            assert TOKEN in (answer.token, answer.other) or not answer.token


def _checked(message: bytes) -> bytes:
    """With the ICMP checksum put right, so that the reader looks further."""
    if len(message) < 4:
        return message
    even = message[:2] + b"\0\0" + message[4:] + b"\0" * (len(message) % 2)
    return message[:2] + (-int.from_bytes(even, "big") % 0xFFFF).to_bytes(2, "big") + message[4:]


def _extensions(data: bytes) -> None:
    said = data[0] * 4 if data else 0
    for body in (data, bytes(128) + b"\x20\0\0\0" + data):
        found = read_extensions(body, said)
        assert 0 <= found.quoted <= max(len(body), said)
