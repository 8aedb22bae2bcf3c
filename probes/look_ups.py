"""Look-ups of names by the system's resolver, each in a thread of its own, and how many at once.

A resolver that hangs holds up no other look-up and never the end of the program, but each one that
hangs is a thread. One that would go beyond the bound fails here and now: it is not delayed (that
would bend the schedule) and not dropped (it is a sample, and no loss of the network).
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from pathbudget.probes.channels import Resolution
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

MOST_LOOK_UPS = 256
Resolve = Callable[[str, AddressFamily], Resolution | Failure]
Done = Callable[[Resolution | Failure], None]


class LookUps:
    """Calls `resolve` in threads, at most `most` at once."""

    def __init__(self, resolve: Resolve, most: int = MOST_LOOK_UPS) -> None:
        self._resolve = resolve
        self._most = most
        self._places = threading.Semaphore(most)

    def begin(self, host: str, family: AddressFamily, done: Done) -> None:
        """Look a name up; `done` is called in the running loop, never before this returns."""
        loop = asyncio.get_running_loop()
        if not self._places.acquire(blocking=False):
            loop.call_soon(done, self._too_many())
            return

        def work() -> None:
            try:
                found = self._resolve(host, family)
            finally:
                self._places.release()
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(done, found)

        threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()

    def _too_many(self) -> Failure:
        detail = f"not asked: {self._most} look-ups are without an answer"
        return Failure(FailureKind.LOCAL, Stage.RESOLVE, detail=detail)
