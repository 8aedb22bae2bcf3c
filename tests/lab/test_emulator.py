"""How the emulator charges arrivals: lateness goes back, foreign frames do not, steps are survived.

Frames come from a list instead of a ring; nothing is sent.
"""

import time
from collections.abc import Iterator

import pytest

from pathbudget.agents.lab.control import DirectionSetup
from pathbudget.agents.lab.emulator import Cause, Emulator, Track
from pathbudget.agents.lab.link import DirectionModel

HOUR_NS = 3600 * 10**9
DELAY_NS = 10_000_000
REGION, SITE, OTHER = bytes([10, 16, 0, 1]), bytes([10, 48, 0, 1]), bytes([10, 48, 1, 1])


def frame(
    source: bytes, destination: bytes, kind: int = 0, *, first: int = 2, protocol: int = 1
) -> bytes:
    """An Ethernet frame with an ICMP message of this type, or of another protocol."""
    ip = bytes([0x45]) + bytes(8) + bytes([protocol]) + bytes(2) + source + destination
    return bytes([first]) + bytes(11) + b"\x08\x00" + ip + bytes([kind]) + bytes(7)


class ListRing:
    def __init__(self, frames: list[tuple[int, int, bytes]]) -> None:
        self.waiting = frames

    def frames(self, limit: int) -> Iterator[tuple[int, int, bytes]]:
        while self.waiting and limit:
            limit -= 1
            yield self.waiting.pop(0)


def emulator_with(octets: bytes, age_ns: int, *, from_router: bool) -> Emulator:
    """One frame of node ``here`` that the kernel stamped `age_ns` ago is in the ring."""
    emulator = Emulator.__new__(Emulator)
    setup = DirectionSetup(
        "here", "there", 1, 2, from_router, False, "seed", (DirectionModel(DELAY_NS),)
    )
    emulator.tracks = {1: Track(setup, len)}
    emulator.ring = ListRing([(1, time.time_ns() - age_ns, octets)])  # type: ignore[assignment]
    emulator._heap, emulator._sequence = [], 0
    emulator._unchained = emulator._clock_steps = emulator._kept_back = 0
    emulator.hops, emulator.mutes = {}, {}
    return emulator


def arrival(emulator: Emulator, cause: Cause | None) -> int:
    """When the frame is taken to have come, against now."""
    emulator._take_in(8, cause)
    return emulator._heap[0][0] - DELAY_NS - time.monotonic_ns()


def late_cause(node: str = "here") -> Cause:
    """A delivery that was due 500 ms ago and began 100 ms ago: a busy host cannot matter."""
    now = time.monotonic_ns()
    return Cause(now - 500_000_000, now - 100_000_000, node, (REGION, SITE))


CHARGED = [
    ("forwarded", frame(REGION, SITE, 8), True),
    ("time exceeded", frame(OTHER, REGION, 11), True),
    ("answered", frame(SITE, REGION, 0), False),
]


@pytest.mark.parametrize(("what", "octets", "router"), CHARGED)
def test_consequences_are_charged_as_if_in_time(what: str, octets: bytes, router: bool) -> None:
    emulator = emulator_with(octets, 50_000_000, from_router=router)
    assert arrival(emulator, late_cause()) == pytest.approx(-500_000_000, abs=20_000_000), what
    assert emulator._unchained == 0


FOREIGN = [
    ("from another node", frame(REGION, SITE), 50, True, "elsewhere"),
    ("between other addresses", frame(REGION, OTHER), 50, True, "here"),
    ("from before the delivery", frame(REGION, SITE), 200, True, "here"),
    ("a new request of a program there", frame(SITE, REGION, 8), 50, False, "here"),
    ("a datagram of a program there", frame(SITE, REGION, protocol=17), 50, False, "here"),
]


@pytest.mark.parametrize(("what", "octets", "age_ms", "router", "node"), FOREIGN)
def test_other_frames_keep_their_stamp(
    what: str, octets: bytes, age_ms: int, router: bool, node: str
) -> None:
    emulator = emulator_with(octets, age_ms * 1_000_000, from_router=router)
    came = arrival(emulator, late_cause(node))
    assert came == pytest.approx(-age_ms * 1_000_000, abs=20_000_000), what
    assert emulator._unchained == router


@pytest.mark.parametrize("step", [HOUR_NS, -HOUR_NS])
def test_a_step_of_the_wall_clock_neither_holds_nor_hurries_packets(step: int) -> None:
    emulator = emulator_with(frame(REGION, SITE), step, from_router=False)
    assert arrival(emulator, None) == pytest.approx(0, abs=20_000_000)
    assert emulator._clock_steps == 1


def test_a_stop_between_two_clocks_hurries_no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a hypervisor, 30 ms long, at the first look at the wall clock."""
    emulator = emulator_with(frame(REGION, SITE), 0, from_router=False)
    stops = [0.03]

    def stopped() -> int:
        time.sleep(stops.pop() if stops else 0)
        return time_ns()

    time_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", stopped)
    began = time.monotonic_ns()
    emulator._take_in(8, None)
    came = emulator._heap[0][0] - DELAY_NS
    assert began - 5_000_000 <= came <= began + 5_000_000


def test_links_carry_no_multicast() -> None:
    emulator = emulator_with(frame(REGION, SITE, first=0x33), 0, from_router=False)
    emulator._take_in(8, None)
    assert emulator._heap == []
