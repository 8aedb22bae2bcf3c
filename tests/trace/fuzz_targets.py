"""Fuzz targets of a trace: what comes to its session, and the order in which things come."""

import random

from pathbudget.probes.clock import Reading
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.icmp_session import Outcome
from pathbudget.probes.record import AddressFamily, Metric
from pathbudget.probes.trace.contract import PathArrival, PathBatch, TraceProtocol
from pathbudget.probes.trace.enumeration import Enumeration
from pathbudget.probes.trace.pace import Pace
from pathbudget.probes.trace.rules import Algorithm, Rules
from pathbudget.probes.trace.session import TraceSessions, TraceSettings

HERE, THERE = "192.0.2.254", "192.0.2.1"
START = Reading(10**12, 1_790_000_000 * 10**9, 100)
SECRET_FREE = 16
MOST_EVENTS = 400


def fuzz_one_trace_session(data: bytes) -> None:
    """Any bytes that a raw socket hears, beginning as errors do or not: nothing raises, each packet
    has one sample, the trace ends and has one sample too.
    """
    for protocol in (TraceProtocol.UDP, TraceProtocol.ICMP, TraceProtocol.TCP):
        rules = Rules(algorithm=Algorithm.PARIS, flows=1, max_hops=4, attempts=1)
        settings = TraceSettings(protocol=protocol, rules=rules)
        session = TraceSessions(AddressFamily.IPV4, random.Random(1), settings, Pace(100_000))
        session.begin(shot_at(THERE, port=80), HERE, START, port=80)
        sent = session.packets(START)
        session.all_sent(sent, list(range(len(sent))), START)
        quoted = sent[0].packet.data[: 20 + SECRET_FREE] if sent else b""
        heard = (data, b"\x0b\0\0\0\0\0\0\0" + data, b"\x03\x03\0\0\0\0\0\0" + quoted + data)
        arrivals = [
            PathArrival(number, one, "198.51.100.1", 64, None) for one in heard for number in (1, 6)
        ]
        samples = [event.sample for event in _settle(session, arrivals)]
        hops = [one for one in samples if one.metric == Metric.HOP_RTT]
        assert len(samples) == len(hops) + 1
        assert session.under_way == 0


def fuzz_one_enumeration(data: bytes) -> None:
    """Answers, silence, refusals and surprises in any order: it ends within its packets, and claims
    no link that no flow was told of.
    """
    algorithm = (Algorithm.MDA, Algorithm.MDA_LITE)[len(data) % 2]
    found = Enumeration(Rules(algorithm=algorithm, most_packets=300, max_hops=6, gap=2), "D")
    heard: dict[tuple[int, int], set[str]] = {}
    choices = iter(data * (1 + MOST_EVENTS // max(1, len(data))))
    while wants := found.wanted():
        for flow, limit, asked in wants:
            choice = next(choices, 0)
            if choice & 7 == 0:
                found.silent(flow, limit, for_good=bool(choice & 8))
                continue
            name = "D" if choice & 7 == 1 else f"r{limit}.{choice >> 5}"
            heard.setdefault((flow, limit), set()).add(name)
            found.answered(flow, limit, name, terminal=choice & 7 < 3, asked=asked)
    assert found.done
    assert found.asked <= 300
    for (limit, first, second), link in found.links().items():
        assert first in heard[link.flow, limit]
        assert second in heard[link.flow, limit + 1]


def _settle(session: TraceSessions, arrivals: list[PathArrival]) -> list[Outcome]:
    now = START.later(START.monotonic_ns + 1_000_000)
    session.receive(PathBatch(arrivals=arrivals), now)
    events = session.events()
    while session.under_way:
        due = session.next_ns()
        assert due is not None
        now = START.later(max(due, now.monotonic_ns + 1_000))
        session.expire(now)
        sent = session.packets(now)
        session.all_sent(sent, [-1 - n for n in range(len(sent))], now)
        events += session.events()
    return [event for event in events if isinstance(event, Outcome)]
