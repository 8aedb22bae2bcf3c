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
    """Hands on results in order of their numbers."""

    def __init__(self) -> None:
        self._waiting: dict[int, Item] = {}
        self._next: int | None = None

    def push(self, seq: int, item: Item) -> list[Numbered[Item]]:
        """Take one; return all that are in order now. A number that has passed is dropped."""
        if self._next is None:
            self._next = seq if seq > LONGEST_WAIT else 0
        if seq < self._next:
            return []
        self._waiting[seq] = item
        ready: list[Numbered[Item]] = []
        gap = False
        if len(self._waiting) > LONGEST_WAIT:
            gap = min(self._waiting) != self._next
            self._next = min(self._waiting)
        while self._next in self._waiting:
            ready.append(Numbered(self._next, self._waiting.pop(self._next), gap))
            self._next += 1
            gap = False
        return ready
