"""What a reflector claims of its own clock: a bound on its error, or that nobody vouches for it."""

import asyncio
import contextlib
from collections.abc import Callable

from pathbudget.probes.clock_quality import read_clock_quality
from pathbudget.probes.record import SyncState

REFRESH_SECONDS = 4.0

ErrorBound = Callable[[], int | None]
"""Asked again and again: the bound in ns, None where the clock is not known to be synchronised."""


def host_error_ns() -> int | None:
    """What this host knows now."""
    quality = read_clock_quality()
    return quality.offset_bound_ns if quality.sync_state is SyncState.SYNCHRONISED else None


async def keep_claiming(ask: ErrorBound, claim: Callable[[int | None], None]) -> None:
    """Claim what `ask` says, at once and every few seconds, for ever.

    Asking a time daemon may take a while, so that is done in a thread; what it said last counts
    until it has answered again, and where asking fails nobody vouches any more.
    """
    while True:
        error_ns = None
        with contextlib.suppress(OSError):
            error_ns = await asyncio.to_thread(ask)
        claim(error_ns)
        await asyncio.sleep(REFRESH_SECONDS)
