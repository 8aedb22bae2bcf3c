"""Look-ups in threads: none holds up another, and there is an end to how many."""

import asyncio
import threading

from pathbudget.probes.channels import Resolution
from pathbudget.probes.look_ups import LookUps
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

V4 = AddressFamily.IPV4
FOUND = Resolution(("192.0.2.1",), 1)


async def test_beyond_the_bound_a_look_up_fails_at_once_and_as_ours() -> None:
    """A dead resolver: what hangs is bounded, and one more is no loss of the network."""
    hanging = threading.Event()

    def resolve(host: str, family: AddressFamily) -> Resolution | Failure:
        hanging.wait(30)
        return FOUND

    ups = LookUps(resolve, most=3)
    heard: list[Resolution | Failure] = []
    before = threading.active_count()
    for number in range(10):
        ups.begin(f"host-{number}", V4, heard.append)
    assert heard == []  # never before `begin` returns
    await asyncio.sleep(0)
    assert threading.active_count() - before <= 3
    assert [(one.kind, one.stage) for one in heard if isinstance(one, Failure)] == [
        (FailureKind.LOCAL, Stage.RESOLVE)
    ] * 7
    hanging.set()
    answered = asyncio.Event()
    while not answered.is_set():  # as soon as one has ended there is a place again
        ups.begin("one-more", V4, lambda found: answered.set() if found == FOUND else None)
        await asyncio.sleep(0.001)
