"""Fuzz target of what a raw TCP socket hears. See tests/fuzzing.py."""

import random

from pathbudget.probes.channels import QueuedError, Segment, SegmentBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.icmp_session import Outcome
from pathbudget.probes.record import AddressFamily, Failure
from pathbudget.probes.syn_session import SynSession
from pathbudget.probes.tcp_wire import parse_answer, strip_ip

HERE, THERE, PORT, FLOW = "192.0.2.254", "192.0.2.1", 443, 40_000
SENT = Reading(0, 1_790_000_000 * 10**9, 100)
READ = Reading(20_000_000, SENT.unix_ns + 20_000_000, 100)


def fuzz_one_syn(data: bytes) -> None:
    """Any bytes as a packet, a segment and a quote: nothing raises, and only who acknowledges our
    SYN from the right place ends the probe.
    """
    strip_ip(data)
    session = SynSession(AddressFamily.IPV4, random.Random(1), (FLOW,), HalfOpen(1))
    shot = shot_at(THERE, port=PORT)
    assert not isinstance(session.admit(shot, PORT, SENT, sweep=False), Failure)
    sequence, segment = session.request(shot, PORT, FLOW, HERE, SENT)
    ports = segment[2:4] + segment[0:2]
    for heard in (data, ports + data, ports + bytes(4) + (sequence + 1).to_bytes(4, "big") + data):
        answer = parse_answer(heard)
        arrival = Segment(heard, THERE, HERE, 64, READ.unix_ns)
        session.receive(SegmentBatch(arrivals=[arrival]), READ)
        if any(isinstance(event, Outcome) for event in session.events()):
            assert answer is not None
            assert answer.acknowledged == sequence + 1
            return
    error = QueuedError(3, 1, "198.51.100.1", THERE, data, None)
    session.receive(SegmentBatch(errors=[error]), READ)
    if any(isinstance(event, Outcome) for event in session.events()):
        assert data.startswith(segment[:8])
