"""How right the wall clock is, for an event loop: asked in a thread, remembered in between."""

import asyncio
from collections.abc import Callable

import msgspec

from pathbudget.probes.clock import Clock, ClockWatcher
from pathbudget.probes.clock_quality import read_clock_quality, survey_clock, with_steps
from pathbudget.probes.record import ClockQuality, SyncState

AGEING_PPM = 15
"""By how much a clock that nobody looks at may drift (RFC 5905, PHI)."""


class ClockSurvey:
    """The last survey: `refresh` it now and then, ask for its `quality` whenever needed."""

    def __init__(
        self,
        clock: Clock,
        watcher: ClockWatcher,
        survey: Callable[[], ClockQuality] = survey_clock,
    ) -> None:
        self._clock = clock
        self._watcher = watcher
        self._survey = survey
        self._last = read_clock_quality()
        self._taken_ns = clock.monotonic_ns()
        self._steps = watcher.steps

    async def refresh(self) -> ClockQuality:
        """Survey again, in a thread: the loop never waits."""
        steps, taken_ns = self._watcher.steps, self._clock.monotonic_ns()
        self._last = await asyncio.to_thread(self._survey)
        self._steps, self._taken_ns = steps, taken_ns
        return self.quality()

    def quality(self) -> ClockQuality:
        """What was said last, its errors grown by `AGEING_PPM` of its age; costs microseconds.

        After a step of the clock nobody vouches for it until the next `refresh`.
        """
        if self._watcher.steps != self._steps:
            doubtful = ClockQuality(sync_state=SyncState.UNKNOWN, source=self._last.source)
            return with_steps(doubtful, self._watcher)
        age_ns = max(0, self._clock.monotonic_ns() - self._taken_ns)
        grown_ns = age_ns * AGEING_PPM // 1_000_000
        return with_steps(_aged(self._last, grown_ns), self._watcher)


def _aged(quality: ClockQuality, grown_ns: int) -> ClockQuality:
    def grow(error_ns: int | None) -> int | None:
        return None if error_ns is None else error_ns + grown_ns

    return msgspec.structs.replace(
        quality,
        offset_bound_ns=grow(quality.offset_bound_ns),
        estimated_error_ns=grow(quality.estimated_error_ns),
    )
