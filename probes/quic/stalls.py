"""Pauses in sending that the other end's flow-control windows made (RFC 9000, 4). Sans-IO."""

from pathbudget.probes.carriers import Moment, span_between
from pathbudget.probes.record import Note


class Stalls:
    """How often and how long sending stopped for want of credit, the congestion window allowing."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self._since: Moment | None = None

    def look(self, *, blocked: bool, now: Moment) -> None:
        """Whether it stands still after sending; `now` is when, or what ended it."""
        if blocked and self._since is None:
            self._since = now
            self.count += 1
        elif not blocked and self._since is not None:
            self.total_ns += max(0, span_between(self._since, now).value_ns)
            self._since = None

    def notes(self) -> dict[str, Note]:
        """Empty where there was none."""
        if not self.count:
            return {}
        return {"flow_stalls": self.count, "flow_stall_ns": self.total_ns}
