"""All alerts of a set of rules: signals in, notices out. Its `states` outlast a restart."""

from collections.abc import Iterable

from pathbudget.analysis.alerts.model import AlertState, Kept, Notice, Phase, Signal
from pathbudget.analysis.alerts.rules import BLIND, EveryRule, Rule
from pathbudget.analysis.alerts.states import step


class Alarm:
    """States by key."""

    def __init__(
        self, rules: Iterable[EveryRule], states: dict[str, AlertState] | None = None
    ) -> None:
        """States of rules that are there no more are dropped: nobody would hear of them."""
        self._rules: dict[str, Rule] = {one.name: one for one in rules}
        self._rules.setdefault(BLIND.name, BLIND)
        self.states = {
            key: one for key, one in (states or {}).items() if one.signal.rule in self._rules
        }

    def kept(self) -> Kept:
        """What alerts that are not over keep of the time before them."""
        return {
            key: one.signal.kept
            for key, one in self.states.items()
            if one.phase is not Phase.OVER and one.signal.kept
        }

    def look(self, signals: Iterable[Signal], now_unix_ns: int) -> list[Notice]:
        """One look at all of them; a subject may have several signals, one after the other."""
        notices: list[Notice] = []
        met: set[str] = set()
        for signal in signals:
            met.add(signal.key)
            self._step(signal.key, signal, now_unix_ns, notices)
        for key in [key for key in self.states if key not in met]:
            self._step(key, None, now_unix_ns, notices)
        return notices

    def firing(self) -> list[AlertState]:
        """Those that fire now, by key."""
        return [one for _, one in sorted(self.states.items()) if one.phase is Phase.FIRING]

    def _step(self, key: str, signal: Signal | None, now: int, notices: list[Notice]) -> None:
        state = self.states.get(key)
        rule = signal.rule if signal is not None else state.signal.rule if state else ""
        after = step(state, signal, now, self._rules[rule].timing)
        if after.state is None:
            self.states.pop(key, None)
        else:
            self.states[key] = after.state
        if after.notice is not None:
            notices.append(after.notice)
