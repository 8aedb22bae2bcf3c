"""What all links have in common: whom they tell, and what becomes of their opening."""

from pathbudget.probes.carriers import Opened, Phase
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.dns.links import LinkListener
from pathbudget.probes.record import Failure


class ToldLink:
    """The half of a `links.Link` that is the same whatever carries it. An `OpeningListener`."""

    def __init__(self, watcher: ClockWatcher, listener: LinkListener) -> None:
        self._watcher = watcher
        self._listener: LinkListener | None = listener
        self._opened = False

    def listen(self, listener: LinkListener) -> None:
        """See `links.Link.listen`."""
        if self._listener is not None:
            self._listener = listener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        self._opened = True
        if self._listener is not None:
            self._listener.opened(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if self._opened:
            listener.broke(failure)
        else:
            listener.failed(metric, failure, done)
