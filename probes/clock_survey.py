"""How right the wall clock is, for an event loop: asked in a thread, remembered in between."""

import asyncio
import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pathbudget.probes.clock import Clock, ClockWatcher
from pathbudget.probes.clock_quality import read_clock_quality, survey_clock, with_steps
from pathbudget.probes.record import ClockQuality, SyncState

AGEING_PPM = 15
"""By how much a clock that nobody looks at may drift (RFC 5905, PHI)."""
REFRESH_NS = 16_000_000_000


class _Said(NamedTuple):
    """One survey: what was said, when it was asked, and the steps that had been seen by then."""

    quality: ClockQuality
    asked_ns: int
    steps: int


class ClockSurvey:
    """The last survey. Ask for its `quality` at any time; keep it fresh in one of two ways.

    `now()` starts a survey in a thread of its own whenever the last one is older than `REFRESH_NS`;
    `await refresh()` waits for one. Until the first has ended the kernel's word counts.
    """

    def __init__(
        self,
        clock: Clock,
        watcher: ClockWatcher,
        survey: Callable[[], ClockQuality] = survey_clock,
    ) -> None:
        self._clock = clock
        self._watcher = watcher
        self._survey = survey
        self._said = _Said(read_clock_quality(), clock.monotonic_ns(), watcher.steps)
        self._due_ns = clock.monotonic_ns()
        self._asked_at_steps = watcher.steps

    async def refresh(self) -> ClockQuality:
        """Survey now, in a thread: the loop never waits."""
        await asyncio.to_thread(self._ask, self._clock.monotonic_ns(), self._watcher.steps)
        return self.quality()

    def now(self) -> ClockQuality:
        """`quality`; where that is old, a survey is under way for the next time."""
        now_ns = self._clock.monotonic_ns()
        steps = self._watcher.steps
        if now_ns >= self._due_ns or steps != self._asked_at_steps:
            self._due_ns, self._asked_at_steps = now_ns + REFRESH_NS, steps
            arguments = (now_ns, steps)
            threading.Thread(target=self._ask, args=arguments, daemon=True).start()
        return self.quality()

    def quality(self) -> ClockQuality:
        """What was said last, its errors grown by `AGEING_PPM` of its age; costs microseconds.

        After a step of the clock nobody vouches for it until the next survey.
        """
        said = self._said
        if self._watcher.steps != said.steps:
            doubtful = ClockQuality(sync_state=SyncState.UNKNOWN, source=said.quality.source)
            return with_steps(doubtful, self._watcher)
        age_ns = max(0, self._clock.monotonic_ns() - said.asked_ns)
        return with_steps(_aged(said.quality, age_ns * AGEING_PPM // 1_000_000), self._watcher)

    def _ask(self, asked_ns: int, steps: int) -> None:
        """Runs in a thread; a step that is seen meanwhile makes the answer void."""
        self._said = _Said(self._survey(), asked_ns, steps)


def _aged(quality: ClockQuality, grown_ns: int) -> ClockQuality:
    def grow(error_ns: int | None) -> int | None:
        return None if error_ns is None else error_ns + grown_ns

    return msgspec.structs.replace(
        quality,
        offset_bound_ns=grow(quality.offset_bound_ns),
        estimated_error_ns=grow(quality.estimated_error_ns),
    )
