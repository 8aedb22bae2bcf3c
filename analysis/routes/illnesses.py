"""What a watch has found of sick members, illness by illness: bounded, and no beginning is lost."""

from collections.abc import Container
from dataclasses import dataclass, field

from pathbudget.analysis.routes.model import MemberFinding, Window

MOST = 64
"""So many illnesses are remembered, and so many times of health."""
LATEST = 16
"""So many of the latest findings, whichever illness they are of."""


@dataclass(slots=True)
class Illness:
    """An illness as it was first found, when it was surest, and as it was found last."""

    first: MemberFinding
    surest: MemberFinding
    last: MemberFinding


@dataclass(slots=True)
class Illnesses:
    """All illnesses of one path and kind. A member that is sick for months is found again with
    every look: of those findings only the first, the surest and the latest are kept.
    """

    clean: list[Window] = field(default_factory=list[Window])
    """When the flows of a finding were well again."""
    open: Illness | None = None
    _known: list[Illness] = field(default_factory=list[Illness])
    _latest: list[MemberFinding] = field(default_factory=list[MemberFinding])

    def add(self, finding: MemberFinding) -> None:
        """Its flows are sick, or still sick."""
        self._latest = [*self._latest[1 - LATEST :], finding]
        if self.open is None:
            self.open = Illness(finding, finding, finding)
            self._known = [*self._known[1 - MOST :], self.open]
            return
        self.open.last = finding
        if finding.p_value < self.open.surest.p_value:
            self.open.surest = finding

    def end(self, window: Window) -> None:
        """They were well in this time, or are not asked any more."""
        self.open = None
        self.clean = [*self.clean[1 - MOST :], window]

    def forget(self, gone: Container[object]) -> None:
        """Drop illnesses that are over, of which these were findings."""
        self._known = [one for one in self._known if one is self.open or one.first not in gone]
        self._latest = [one for one in self._latest if one not in gone]

    @property
    def findings(self) -> list[MemberFinding]:
        """What is kept, in order of time."""
        kept = [one for each in self._known for one in (each.first, each.surest, each.last)]
        return sorted(dict.fromkeys([*kept, *self._latest]), key=lambda one: one.window)
