"""Processor time per packet of the two STAMP sessions, without sockets.

    python benchmarks/stamp_sessions.py [--packets 10000]

Sender: request, send, stamp, reply and the four samples. Reflector: receive, reply, stamp. What a
socket costs comes on top of it. Numbers of one machine and minute; run it on an idle one.
"""

import argparse
import random
import time

from pathbudget.probes.channels import Datagram, DatagramBatch
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import AddressFamily, Target
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.events import Counted, Event
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.sender_session import SenderSession
from pathbudget.probes.stamp.trailer import choose_extensions

UNIX_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000
FAR, NEAR, PORT = "192.0.2.1", "192.0.2.100", 8620
INTERVAL_NS = 20_000
AT_ONCE = 50
RUNS = 7
"""The best of so many counts: what disturbs a run only ever makes it slower."""


def measure(packets: int, *, follow_up: bool, key: Key | None, peers: int) -> tuple[float, float]:
    """Microseconds a packet of the sender and of the reflector."""
    extensions = choose_extensions(0, b"", follow_up=follow_up, dscp=0, key=key)
    sender = SenderSession(
        AddressFamily.IPV4, random.Random(1), extensions, default_port=PORT, follow_up=follow_up
    )
    sender.flows[0] = 40_000
    reflector = ReflectorSession(ReflectorPolicy(PORT, keys=() if key is None else (key,)))
    targets = [(f"192.0.2.{1 + one}", PORT) for one in range(peers)]
    shots = [
        Shot(
            number,
            number // peers,
            Target("far", targets[number % peers][0], port=targets[number % peers][1]),
            targets[number % peers][0],
            AddressFamily.IPV4,
            1_000_000_000,
            due_ns=MONOTONIC_NS + number * INTERVAL_NS,
        )
        for number in range(packets)
    ]
    clock = time.process_time
    sending = reflecting = 0.0
    events: list[Event] = []
    for first in range(0, packets, AT_ONCE):
        some = shots[first : first + AT_ONCE]
        at = first * INTERVAL_NS
        began = clock()
        now = Reading(MONOTONIC_NS + at, UNIX_NS + at, 100)
        begun = [sender.request(shot, now) for shot in some]
        for number, (packet, _) in enumerate(begun):
            sender.sent(packet, 0, first + number)
        sending += clock() - began
        stamps = [(first + number, UNIX_NS + at + 500 + number) for number in range(len(some))]
        began = clock()
        arrivals: list[Datagram] = []
        for number, (shot, (_, payload)) in enumerate(zip(some, begun, strict=True)):
            came = UNIX_NS + at + 3_000 + number * 10
            answer = reflector.receive(
                payload, NEAR, 40_000, shot.address, 64, 0, came, came + 5, MONOTONIC_NS + at
            )
            assert answer is not None
            reflector.sent(answer, first + number)
            reflector.transmitted(first + number, came + 9)
            assert shot.target.port is not None
            arrivals.append(
                Datagram(answer.payload, shot.address, shot.target.port, NEAR, 64, 0, came + 6_000)
            )
        reflecting += clock() - began
        batch = DatagramBatch(sent=stamps, arrivals=arrivals)
        later = at + len(some) * INTERVAL_NS
        began = clock()
        sender.receive(0, batch, Reading(MONOTONIC_NS + later, UNIX_NS + later, 100))
        events += sender.events()
        sending += clock() - began
    sender.expire(Reading(MONOTONIC_NS * 2, UNIX_NS + MONOTONIC_NS, 100))
    events += sender.events()
    others = [event for event in events if isinstance(event, Counted)]
    assert len(events) - len(others) == packets
    assert not others, others[:5]
    assert not reflector.refused
    return sending / packets * 1e6, reflecting / packets * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=10_000)
    packets = parser.parse_args().packets
    key = Key("benchmark", bytes(range(32)))
    print(f"{'':34} {'sender us':>10} {'reflector us':>13}")
    for name, follow_up, with_key, peers in (
        ("open", False, None, 100),
        ("open, follow-up", True, None, 100),
        ("authenticated", False, key, 100),
        ("authenticated, follow-up", True, key, 100),
    ):
        runs = [
            measure(packets, follow_up=follow_up, key=with_key, peers=peers) for _ in range(RUNS)
        ]
        sending, reflecting = (min(column) for column in zip(*runs, strict=True))
        print(f"{name:34} {sending:10.1f} {reflecting:13.1f}")


if __name__ == "__main__":
    main()
