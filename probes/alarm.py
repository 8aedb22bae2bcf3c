"""One call in the future, for whoever waits for many things: it rings for the first of them."""

from collections.abc import Callable

from pathbudget.probes.channels import Cancellable, Network


class Alarm:
    """Calls `ring` at the soonest of the times that were set, and is then off."""

    def __init__(self, network: Network, ring: Callable[[], None]) -> None:
        self._network = network
        self._ring = ring
        self._call: Cancellable | None = None
        self._due_ns = 0

    def set(self, due_ns: int | None) -> None:
        """Ring at this monotonic time, unless it rings no later already; None switches it off."""
        if self._call is not None:
            if due_ns is not None and self._due_ns <= due_ns:
                return
            self.cancel()
        if due_ns is not None:
            self._due_ns = due_ns
            self._call = self._network.call_at(due_ns, self._rung)

    def cancel(self) -> None:
        """Do not ring."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _rung(self) -> None:
        self._call = None
        self._ring()
