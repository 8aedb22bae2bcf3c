"""What would have been told over what a store holds: the test mode that sends nothing.

Looks come every `AlertPlan.every_ns` of the time of the evidence, so that the same store and rules
give the same messages, whenever it is done. Of agents only the samples are known then.
"""

from collections.abc import Iterator

from pathbudget.agents.alerts.feeding import evidence_of, pieces, take, wish_of
from pathbudget.agents.alerts.message import Message, message_of
from pathbudget.agents.alerts.rules_file import AlertPlan
from pathbudget.agents.routes.following import GrowingStore, Looks
from pathbudget.analysis.alerts.alarm import Alarm
from pathbudget.analysis.alerts.evidence import AlertEvidence
from pathbudget.analysis.alerts.gathering import Gathered
from pathbudget.analysis.alerts.incidents import IncidentBook


class Replay:
    """`messages` gives them in order of time; `looks` and `alarm` say how it ended."""

    def __init__(
        self,
        plan: AlertPlan,
        store: GrowingStore,
        since_unix_ns: int | None = None,
        until_unix_ns: int | None = None,
    ) -> None:
        self._plan, self._store = plan, store
        self._wish = wish_of(plan, since_unix_ns, until_unix_ns)
        self.alarm = Alarm(plan.rules)
        self._gathered = Gathered()
        self.looks = 0
        self.first_unix_ns: int | None = None
        self.last_unix_ns = 0

    def messages(self) -> Iterator[Message]:
        """Look by look, and once more at the end."""
        evidence: AlertEvidence | None = None
        every, due = self._plan.every_ns, 0
        for at, one in pieces(Looks(self._store, self._wish)):
            if evidence is None:
                self.first_unix_ns = at
                evidence = evidence_of(self._plan, self._wish, IncidentBook(), at, at)
                due = (at // every + 1) * every
            while due <= at:
                yield from self._look(evidence, due)
                due += every
            take(evidence, one, at)
            self.last_unix_ns = at
        if evidence is not None:
            yield from self._look(evidence, due)
            yield from self._take(due, at_once=True)

    def _look(self, evidence: AlertEvidence, now_unix_ns: int) -> Iterator[Message]:
        self.looks += 1
        for notice in self.alarm.look(
            evidence.signals(now_unix_ns, self.alarm.kept()), now_unix_ns
        ):
            self._gathered.add(notice)
        yield from self._take(now_unix_ns)

    def _take(self, now_unix_ns: int, *, at_once: bool = False) -> Iterator[Message]:
        for rule in self._plan.rules:
            together_ns = 0 if at_once else rule.together_ns
            notices = self._gathered.take(rule.name, now_unix_ns, together_ns)
            if notices:
                yield message_of(rule.name, notices, now_unix_ns)
