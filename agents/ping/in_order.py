"""Results come when they come, a loss last of all; packets are wanted in order of sending."""

from typing import Generic, NamedTuple, TypeVar

LONGEST_WAIT = 4_096
"""Results that wait for an earlier one at most; then the gap is taken for good."""

Item = TypeVar("Item")


class Numbered(NamedTuple, Generic[Item]):
    """One result with the number of its packet; `gap` where earlier ones are missing."""

    seq: int
    item: Item
    gap: bool


class InOrder(Generic[Item]):
    """Hands on results in order of their numbers.

    Number 0 is the first one. A series that begins later (its name did not resolve before, or has
    moved) begins with the least number of those sent up to the one that was heard of first: all of
    them are known once one that was sent `longest_ns` (the timeout) later is.
    """

    def __init__(self, longest_ns: int) -> None:
        self._longest_ns = longest_ns
        self._waiting: dict[int, Item] = {}
        self._next: int | None = None
        self._heard_first_ns: int | None = None

    def push(self, seq: int, item: Item, sent_ns: int) -> list[Numbered[Item]]:
        """Take one; return all that are in order now. A number that has passed is dropped."""
        if self._next is not None and seq < self._next:
            return []
        self._waiting[seq] = item
        if self._next is None and not self._begins(seq, sent_ns):
            return []
        return self._ready()

    def rest(self) -> list[Numbered[Item]]:
        """What still waits when nothing more will come."""
        ready: list[Numbered[Item]] = []
        while self._waiting:
            least = min(self._waiting)
            missing = self._next is not None and least != self._next
            self._next = least
            ready += self._run(gap=missing)
        return ready

    def _begins(self, seq: int, sent_ns: int) -> bool:
        if self._heard_first_ns is None:
            self._heard_first_ns = sent_ns
        # A clock that was stepped may be any time away, on either side.
        known = abs(sent_ns - self._heard_first_ns) > self._longest_ns
        if seq and not known and len(self._waiting) <= LONGEST_WAIT:
            return False
        self._next = min(self._waiting)
        return True

    def _ready(self) -> list[Numbered[Item]]:
        gap = False
        if len(self._waiting) > LONGEST_WAIT:
            least = min(self._waiting)
            gap = least != self._next
            self._next = least
        return self._run(gap=gap)

    def _run(self, *, gap: bool) -> list[Numbered[Item]]:
        """All that follow each other from the next one on."""
        assert self._next is not None
        ready: list[Numbered[Item]] = []
        while self._next in self._waiting:
            ready.append(Numbered(self._next, self._waiting.pop(self._next), gap))
            self._next += 1
            gap = False
        return ready
