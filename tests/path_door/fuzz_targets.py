"""Fuzz targets of what the door for traces hears by itself. See tests/fuzzing.py."""

from pathbudget.probes.kernel_stamps import read_path_error
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.sent_payloads import SentPayloads
from pathbudget.probes.trace.contract import Flow, PathArrival, TraceProtocol
from pathbudget.probes.trace.session_segments import SessionSegments
from pathbudget.probes.trace.tcp_probe import SEQUENCES

HERE, THERE, PORT = "192.0.2.254", "192.0.2.9", 40_000
FLOW = Flow(TraceProtocol.SESSION, AddressFamily.IPV4, HERE, THERE, PORT, 443)
PORTS = (443 << 16 | PORT).to_bytes(4, "big")
OPEN = PORTS + bytes.fromhex(
    "000003e8 00001389 9012ffff 00000000 0402080a 000003e8 00000064 01010101"
)
PLACE = (PORT, THERE, 443)


def fuzz_one_session(data: bytes) -> None:
    """Any bytes as segments of a connection: nothing raises, and a probe stays an old octet."""
    segments = SessionSegments(FLOW)
    segments.see(PathArrival(6, data, THERE, 60, None), 0)
    segments.see(PathArrival(6, PORTS + data, THERE, 60, None), 0)
    segments.see(PathArrival(6, OPEN, THERE, 60, None), 0)
    for start in range(0, len(data), 24):
        segments.see(PathArrival(6, PORTS + data[start : start + 60], THERE, 60, None), start)
    assert segments.ready
    probe = segments.build(3, 77, 10**9).data
    sequence = int.from_bytes(probe[24:28], "big")
    assert 0 < (segments.acknowledged - sequence) % SEQUENCES <= 65_536
    assert len(probe) == 20 + (probe[32] >> 4) * 4 + 1


def fuzz_one_path_error(data: bytes) -> None:
    """Any bytes as what the kernel says of an error, and as a quote."""
    for level, kind in ((0, 11), (41, 25), (1, 37), (0, 2)):
        read_path_error([(level, kind, data), (0, 11, data[1:])])
    sent = SentPayloads(4)
    sent.add(PLACE, data, b"all")
    for length in (1, 8, 12):
        sent.add(PLACE, data[:length] + bytes((length,)), bytes((length,)))
    assert sent.find(PLACE, data) is not None or not data.strip(b"\0")
    sent.find(PLACE, data[:10])
    assert sent.find((1, THERE, 443), data) is None
