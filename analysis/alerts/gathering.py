"""Notices gathered by rule, so that one dead bus does not send a hundred mails.

The first notice of a rule goes at once; what comes within `together_ns` after it waits, and goes
together. An alert that is over before anybody was told of it is told once, as over.
"""

import msgspec

from pathbudget.analysis.alerts.model import News, Notice


class Gathered(msgspec.Struct):
    """What waits, by rule. Kept over restarts."""

    waiting: dict[str, list[Notice]] = {}
    sent_unix_ns: dict[str, int] = {}

    def add(self, notice: Notice) -> None:
        """Let a notice wait for its rule's turn; what it makes old news of goes."""
        rule = notice.state.signal.rule
        old = self.waiting.get(rule, [])
        kept = [one for one in old if not _makes_old(notice, one)]
        self.waiting[rule] = [*kept, notice]

    def take(self, rule: str, now_unix_ns: int, together_ns: int) -> list[Notice]:
        """All that waits of a rule, if it is its turn. In order: firing first, by key."""
        waiting, sent = self.waiting.get(rule), self.sent_unix_ns.get(rule)
        if not waiting or (sent is not None and 0 <= now_unix_ns - sent < together_ns):
            return []
        del self.waiting[rule]
        self.sent_unix_ns[rule] = now_unix_ns
        return sorted(waiting, key=lambda one: (list(News).index(one.news), one.state.key))


def _makes_old(new: Notice, old: Notice) -> bool:
    """Whether the same alert's older notice adds nothing: it is still firing, or over since."""
    return new.state.key == old.state.key and old.news is not News.RESOLVED
