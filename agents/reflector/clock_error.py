"""What a reflector claims of its own clock: a bound on its error, or that nobody vouches for it."""

import asyncio
import contextlib
from collections.abc import Callable

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


async def keep_claiming(ask: ErrorBound, claim: Callable[[int | None], None]) -> None:
    """Claim what `ask` says, at once and every few seconds, for ever.

    Asking a time daemon may take a while, so that is done in a thread, and not often: while it
    runs, a packet may have to wait. What it said last counts until it has answered again, and where
    asking fails nobody vouches any more.
    """
    while True:
        error_ns = None
        with contextlib.suppress(OSError):
            error_ns = await asyncio.to_thread(ask)
        claim(error_ns)
        await asyncio.sleep(REFRESH_SECONDS)
