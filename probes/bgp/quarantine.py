"""What could not be read: counted by reason, the latest kept for people to look at."""

from collections import Counter, deque
from dataclasses import dataclass

MOST_REASONS = 64
KEPT = 16
EXCERPT = 120


class MalformedError(ValueError):
    """Bytes or words that are not what they should be. Stays inside `probes.bgp`."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One piece of news that nobody will see, and why. `excerpt` is how it begins."""

    reason: str
    excerpt: str


class Quarantine:
    """Counts of what was set aside; memory is bounded whatever comes."""

    def __init__(self) -> None:
        self.count = 0
        self.reasons: Counter[str] = Counter()
        self.latest: deque[Unreadable] = deque(maxlen=KEPT)
        self.ignored: Counter[str] = Counter()
        """Well formed, and not about a unicast route or a session: nothing is wrong with it."""

    def add(self, reason: str, content: bytes | str) -> None:
        """Set one aside."""
        self.count += 1
        if reason in self.reasons or len(self.reasons) < MOST_REASONS:
            self.reasons[reason] += 1
        else:
            self.reasons["other reasons"] += 1
        shown = content[:EXCERPT].hex() if isinstance(content, bytes) else content[:EXCERPT]
        self.latest.append(Unreadable(reason, shown))

    def ignore(self, what: str) -> None:
        """Note something that is none of our business. `what` is one of few words."""
        self.ignored[what] += 1
