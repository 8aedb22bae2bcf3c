"""What the host of a vantage is doing, for whoever shows it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Doing(StrEnum):
    """One word a line."""

    CONNECTING = "connecting"
    BRINGING = "bringing the bundle"
    STARTING = "starting"
    MEASURING = "measuring"
    AWAY = "away"
    FETCHING = "fetching the rest"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class HostState:
    """`on_change` is called after each change of what it does, or of the note."""

    vantage: str
    on_change: Callable[["HostState"], None] = lambda _: None
    doing: Doing = Doing.CONNECTING
    note: str = ""
    """More about it: why it is away, what it is like."""
    times_away: int = field(default=0)

    def now(self, doing: Doing, note: str = "") -> None:
        """It does something else."""
        if (doing, note) == (self.doing, self.note):
            return
        if doing is Doing.AWAY and self.doing is not Doing.AWAY:
            self.times_away += 1
        self.doing, self.note = doing, note
        self.on_change(self)
