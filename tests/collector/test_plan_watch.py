"""Plans out of a bus whose servers may be behind: the later one holds, whatever comes first."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pathbudget.agents.bus import plan_watch
from pathbudget.agents.bus.plan_watch import BusPlans
from pathbudget.agents.daemon.plan_source import Admission
from pathbudget.agents.plans.policy import Policy

NONE_YET = ("404", b"")
POLICY = cast("Policy", None)


class Bus:
    """Answers in order; what stands in `meanwhile` is published before the next answer."""

    def __init__(self, *answers: tuple[str, bytes]) -> None:
        self.answers = list(answers)
        self.meanwhile = b""
        self.used_up = asyncio.Event()
        self._hear: Callable[[Any], Awaitable[None]] | None = None

    @property
    def client(self) -> "Bus":
        return self

    async def subscribe(self, _subject: str, *, cb: Callable[[Any], Awaitable[None]]) -> None:
        self._hear = cb

    async def request(self, _subject: str, _data: bytes, **how: float) -> Any:
        assert how == {"timeout": plan_watch.WAIT_S}
        if self.meanwhile:
            assert self._hear is not None
            await self._hear(SimpleNamespace(data=self.meanwhile, headers=None))
            self.meanwhile = b""
        where, data = self.answers.pop(0)
        if not self.answers:
            self.used_up.set()
        headers = {"Status": where} if where == "404" else {"Nats-Sequence": where}
        return SimpleNamespace(data=data, headers=headers)


class EveryPlan:
    """An admission that lets every plan in."""

    def admitted(self, envelope: bytes, _policy: Policy) -> bytes:
        return envelope


def plans(said: list[str]) -> BusPlans:
    return BusPlans("office", cast("Admission", EveryPlan()), said.append)


async def asked_again(under_test: BusPlans, bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the bus has no answer left."""
    monkeypatch.setattr(plan_watch, "ASK_AGAIN_S", 0.001)
    running = asyncio.create_task(under_test.run(cast("Any", bus)))
    async with asyncio.timeout(10):
        await bus.used_up.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("answers", "latest"),
    [
        ([("7", b"seven")], b"seven"),
        ([NONE_YET, ("7", b"seven")], b"seven"),
        ([("7", b"seven"), NONE_YET], b"seven"),
        ([("7", b"seven"), ("6", b"six")], b"seven"),
        ([("6", b"six"), ("7", b"seven"), ("6", b"six")], b"seven"),
        ([("7", b"seven"), ("\u00b2", b"odd"), ("9" * 30, b"long"), ("-8", b"less")], b"seven"),
    ],
)
async def test_the_later_of_two_answers_holds(
    answers: list[tuple[str, bytes]], latest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    under_test, bus = plans(said), Bus(*answers)
    await under_test.greet(cast("Any", bus))
    assert said == (["the fleet has no plan for office yet"] if answers[0] == NONE_YET else [])
    await asked_again(under_test, bus, monkeypatch)
    assert under_test.changed()
    assert cast("bytes", under_test.read(POLICY)) == latest
    assert not under_test.changed()


async def test_what_is_published_during_a_question_is_not_undone_by_its_answer() -> None:
    under_test, bus = plans([]), Bus(("6", b"six"))
    bus.meanwhile = b"seven"
    await under_test.greet(cast("Any", bus))
    assert cast("bytes", under_test.read(POLICY)) == b"seven"
