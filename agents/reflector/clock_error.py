"""What a reflector claims of its own clock: a bound on its error, or that nobody vouches for it."""

import asyncio
import contextlib
from collections.abc import Callable

from pathbudget.probes.clock import Clock, ClockWatcher
from pathbudget.probes.clock_quality import survey_clock
from pathbudget.probes.clock_survey import AGEING_PPM
from pathbudget.probes.record import ClockQuality, SyncState

REFRESH_SECONDS = 16.0
AGED_NS = round(REFRESH_SECONDS * 1_000 * AGEING_PPM)
"""How much worse a clock may get until it is asked for again."""

ErrorBound = Callable[[], int | None]
"""Asked again and again: the bound in ns, None where the clock is not known to be synchronised."""


def host_error_ns(survey: Callable[[], ClockQuality] = survey_clock) -> int | None:
    """What time daemon and kernel of this host vouch for, until they are asked again.

    A clock that somebody keeps right, but of which nobody states a bound, is not vouched for.
    """
    quality = survey()
    if quality.sync_state is not SyncState.SYNCHRONISED or quality.offset_bound_ns is None:
        return None
    return quality.offset_bound_ns + AGED_NS


class Claiming:
    """Keeps up what is claimed of the host's clock: what `ask` says, and nothing once it was set,
    until `ask` has been asked again.

    Asking a time daemon may take a while, so that is done in a thread, and not often: while it
    runs, a packet may have to wait. What it said last counts until it has answered again, and where
    asking fails nobody vouches any more.
    """

    def __init__(self, clock: Clock, ask: ErrorBound, claim: Callable[[int | None], None]) -> None:
        self._watcher = ClockWatcher(clock)
        self._steps = self._watcher.steps
        self._ask = ask
        self._claim = claim
        self._stepped = asyncio.Event()

    def look(self) -> None:
        """Notice whether the clock was set; before anything is said in a reply."""
        watcher = self._watcher
        watcher.read()
        if watcher.steps != self._steps:
            self._steps = watcher.steps
            self._claim(None)
            self._stepped.set()

    async def keep(self) -> None:
        """Ask and claim, at once, every few seconds, and when the clock was set, for ever."""
        while True:
            self._stepped.clear()
            error_ns = None
            with contextlib.suppress(OSError):
                error_ns = await asyncio.to_thread(self._ask)
            self.look()
            if not self._stepped.is_set():  # else it was set while it was asked
                self._claim(error_ns)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REFRESH_SECONDS):
                        await self._stepped.wait()
