"""What is learned from the segments of a connection, and probes in it, over the fake network."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.channels import PathBatch
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.fake_packets import FakePacket
from pathbudget.probes.record import AddressFamily, Failure, FailureKind
from pathbudget.probes.tcp_wire import ACK, FIN, RST, SYN
from pathbudget.probes.tcp_wire import checksum as tcp_checksum
from pathbudget.probes.trace.contract import Answer, AnswerKind, Flow, PathArrival, TraceProtocol
from pathbudget.probes.trace.session_opening import TraceSession
from pathbudget.probes.trace.session_segments import SessionSegments
from pathbudget.probes.trace.tcp_probe import SEQUENCES
from pathbudget.probes.trace.wire import read

HERE, THERE, MS = "192.0.2.254", "192.0.2.9", 1_000_000
FLOW = Flow(TraceProtocol.SESSION, AddressFamily.IPV4, HERE, THERE, 40_000, 443)
STAMPS = b"\x04\x02\x08\x0a\x00\x00\x03\xe8\x00\x00\x00\x64"


def segment(
    numbers: tuple[int, int], flags: int, options: bytes = b"", data: bytes = b"", port: int = 443
) -> PathArrival:
    head = port.to_bytes(2, "big") + (40_000).to_bytes(2, "big")
    head += b"".join((one % SEQUENCES).to_bytes(4, "big") for one in numbers)
    head += bytes(((20 + len(options)) // 4 << 4, flags)) + bytes(6)
    return PathArrival(6, head + options + data, THERE, 60, None)


def opened(sequence: int = 1_000, options: bytes = STAMPS) -> SessionSegments:
    segments = SessionSegments(FLOW)
    assert segments.see(segment((sequence, 5_001), SYN | ACK, options), 0)
    return segments


def probe_of(data: bytes) -> tuple[int, int, bytes]:
    """Sequence, acknowledgement, options; the checksum has to be right."""
    start = 20 + (data[32] >> 4) * 4
    assert tcp_checksum(HERE, THERE, data[20:]) == 0
    assert len(data) == start + 1  # one octet
    return int.from_bytes(data[24:28], "big"), int.from_bytes(data[28:32], "big"), data[40:start]


def test_a_probe_is_an_octet_that_was_acknowledged_long_ago() -> None:
    segments = opened()
    for token in (1, 5_000, 5_001, 40_000, 65_534):
        sequence, expected, _ = probe_of(segments.build(3, token, 0).data)
        assert sequence % 65_536 == token
        assert 0 < (5_001 - sequence) % SEQUENCES <= 65_536
        assert expected == 1_001


def test_timestamps_never_run_ahead_of_the_kernels() -> None:
    """100 was ours when the SYN left, 20 ms before its answer came; now it is 50 ms later."""
    segments = opened()
    segments.round_trip_ns = 20 * MS
    _, _, options = probe_of(segments.build(3, 7, 50 * MS).data)
    assert int.from_bytes(options[4:8], "big") == 100 + 69
    assert int.from_bytes(options[8:12], "big") == 1_000
    segments.see(segment((1_001, 5_001), ACK, b"\1\1\x08\x0a\0\0\x07\xd0\0\0\0\x70"), 60 * MS)
    assert int.from_bytes(probe_of(segments.build(3, 7, 0).data)[2][8:12], "big") == 2_000


def test_what_the_server_says_moves_the_numbers() -> None:
    segments = opened(options=b"")
    assert (segments.exact, probe_of(segments.build(1, 9, 0).data)[2]) == (False, b"")
    segments.see(segment((1_001, 5_001), ACK, data=b"hello"), 0)
    segments.see(segment((1_006, 5_101), ACK), 0)
    segments.see(segment((1_001, 5_001), ACK), 0)  # came late
    assert (segments.expected, segments.acknowledged, segments.ended) == (1_006, 5_101, False)
    segments.see(segment((1_006, 5_101), ACK | FIN), 0)
    assert (segments.expected, segments.ended) == (1_007, True)


def test_numbers_that_wrap_are_followed() -> None:
    segments = opened(sequence=SEQUENCES - 1)
    assert segments.expected == 0
    segments.acknowledged = SEQUENCES - 5
    segments.see(segment((0, SEQUENCES + 5), ACK), 0)
    assert segments.acknowledged == 5


def test_segments_of_others_teach_nothing() -> None:
    segments = SessionSegments(FLOW)
    other = segment((1_000, 5_001), SYN | ACK, port=80)
    assert not segments.see(other, 0)
    assert not segments.see(segment((1, 5_001), SYN | ACK)._replace(sender="192.0.2.8"), 0)
    assert segments.see(segment((1, 2), ACK), 0)  # ours, but nothing is open yet
    assert not segments.ready
    with pytest.raises(ValueError, match="not open"):
        segments.build(1, 1, 0)
    again = opened()
    again.see(segment((7_000, 9_000), SYN | ACK), 0)  # said twice, or forged
    assert again.acknowledged == 5_001


@given(st.binary(max_size=80), st.booleans())
@settings(max_examples=40)
def test_whatever_arrives_raises_nothing(data: bytes, ours: bool) -> None:
    segments = opened()
    ports = (443 << 16 | 40_000).to_bytes(4, "big") if ours else b""
    segments.see(PathArrival(6, ports + data, THERE, None, None), 0)
    probe_of(segments.build(1, 1, 0).data)


class Opened:
    """A session over the fake network, behind three routers."""

    def __init__(self, *, selective: bool = True, port: int = 443) -> None:
        self.clock = FakeClock()
        self.network = FakeNetwork(self.clock)
        self.network.paths[THERE] = FakePath(refused=port != 443)
        self.network.topology.layers(THERE, [["10.0.0.1"], ["10.0.0.2"], ["10.0.0.3"]])
        host = self.network.topology.node(THERE)
        host.open_ports, host.selective = {443}, selective
        self.ready: list[Failure | None] = []
        self.answers: list[Answer] = []
        channel = self.network.open_paths(AddressFamily.IPV4, self.hear)
        assert channel is not None
        self.channel = channel
        self.session = TraceSession(
            self.network, channel, self.clock, (THERE, port), AddressFamily.IPV4, self.ready.append
        )

    def hear(self, batch: PathBatch) -> None:
        for arrival in batch.arrivals:
            self.session.see(arrival)
            answer = read(arrival, AddressFamily.IPV4)
            if answer is not None:
                self.answers.append(answer)

    def ask(self, tokens: list[int]) -> list[tuple[int, str]]:
        self.answers.clear()
        packets = [self.session.build(hop, token) for hop, token in enumerate(tokens, 1)]
        self.channel.send_all(packets)
        self.clock.advance(100 * MS)
        return [(one.token, one.responder) for one in self.answers]


async def test_a_firewall_that_drops_syns_lets_probes_of_a_connection_pass() -> None:
    opened_ = Opened()

    def established(packet: FakePacket) -> bool:
        return packet.protocol == 6 and bool(packet.transport[13] & ACK)

    opened_.network.topology.node("10.0.0.2").passes = established
    opened_.clock.advance(100 * MS)
    assert opened_.ready == [None]
    way = ["10.0.0.1", "10.0.0.2", "10.0.0.3", THERE]
    tokens = random.Random(3).sample(range(1, 65_535), 4)
    assert opened_.ask(tokens) == list(zip(tokens, way, strict=True))
    assert opened_.answers[-1].kind is AnswerKind.ARRIVED
    await asyncio.sleep(0)


async def test_where_acknowledgements_do_not_name_the_probe_the_session_says_so() -> None:
    opened_ = Opened(selective=False)
    opened_.clock.advance(100 * MS)
    segments = opened_.session.segments
    assert segments is not None
    assert (segments.ready, segments.exact) == (True, False)
    assert opened_.ask([11, 12, 13, 14])[-1] == (0, THERE)


async def test_a_refused_connection_is_told_once() -> None:
    opened_ = Opened(port=80)
    opened_.clock.advance(100 * MS)
    assert [one.kind for one in opened_.ready if one is not None] == [FailureKind.REFUSED]
    opened_.session.close()


async def test_without_raw_sockets_there_is_no_session() -> None:
    opened_ = Opened()
    plain = opened_.network.open_paths(AddressFamily.IPV4, lambda _: None, privileged=False)
    assert plain is not None
    ready: list[Failure | None] = []
    session = TraceSession(
        opened_.network, plain, opened_.clock, (THERE, 443), AddressFamily.IPV4, ready.append
    )
    opened_.clock.advance(MS)
    assert [one.kind for one in ready if one is not None] == [FailureKind.UNAVAILABLE]
    session.close()


async def test_a_reset_ends_the_session() -> None:
    opened_ = Opened()
    opened_.clock.advance(100 * MS)
    segments = opened_.session.segments
    assert segments is not None
    port = segments.flow.key.to_bytes(2, "big")
    reset = segment((1, 1), RST).data
    segments.see(PathArrival(6, reset[:2] + port + reset[4:], THERE, 60, None), 0)
    assert segments.ended
    opened_.session.close()
