"""Looks at a store and at agents again and again, and tells receivers what is news.

Each look: what is new in the store, what agents say, what the rules make of it, which alerts that
begins or ends. Then the memory is written, and only then messages leave: a message may come twice
after a crash (with the same id), never not at all.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.alerts import alertmanager, statuses
from pathbudget.agents.alerts.couriers import Couriers
from pathbudget.agents.alerts.feeding import evidence_of, look_back_ns, pieces, take, wish_of
from pathbudget.agents.alerts.memory import read_memory, write_memory
from pathbudget.agents.alerts.message import Message, message_of
from pathbudget.agents.alerts.receivers import Alertmanager, EveryReceiver
from pathbudget.agents.alerts.rules_file import AlertPlan
from pathbudget.agents.routes.following import GrowingStore, Looks
from pathbudget.agents.units import format_duration
from pathbudget.analysis.alerts.alarm import Alarm
from pathbudget.analysis.alerts.evidence import Sources
from pathbudget.analysis.alerts.hosts import Host
from pathbudget.analysis.alerts.rules import BLIND, Rule
from pathbudget.probes.errors import BusError, PathbudgetError, StoreError

if TYPE_CHECKING:
    from pathbudget.agents.bus.login import Login

ONCE_WAIT_S = 60.0
LAST_WAIT_S = 5.0
STORE = "the store"
BUS = "the bus"
MEMORY = "the memory of alerts"


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look, and where to keep what must outlast a restart."""

    memory: Path
    states: tuple[Path, ...] = ()
    login: "Login | None" = None


class Watcher:
    """One look after another."""

    def __init__(
        self,
        plan: AlertPlan,
        store: GrowingStore,
        places: Places,
        now_unix_ns: int,
        *,
        say: Callable[[str], None],
        tell: Callable[[Message], None],
    ) -> None:
        """`say` hears of trouble, `tell` every message. Raises StoreError and ConfigError."""
        self._plan, self._places = plan, places
        self._say, self._tell = say, tell
        self.memory = read_memory(places.memory)
        self.memory.first_look_unix_ns = self.memory.first_look_unix_ns or now_unix_ns
        self._store = store
        self._read_again(now_unix_ns)
        self._trouble: dict[str, str] = {}
        """What went wrong at the last look, by source."""
        self.alarm = Alarm(plan.rules, self.memory.states)
        self.couriers = Couriers(plan.receivers, self.memory.outboxes, say)
        self._rules: dict[str, Rule] = {one.name: one for one in plan.rules}
        self._rules[BLIND.name] = BLIND
        self._agents: dict[str, Host] = {}

    def look(self, now_unix_ns: int) -> None:
        """One look, and what it makes leave."""
        sources = self._sources(now_unix_ns)
        signals = self._evidence.signals(now_unix_ns, self.alarm.kept(), sources)
        for notice in self.alarm.look(signals, now_unix_ns):
            self.memory.gathered.add(notice)
        self.couriers.settle(now_unix_ns)
        self._put(now_unix_ns)
        self._keep(now_unix_ns)
        self.couriers.dispatch(self._for_alertmanagers(now_unix_ns), now_unix_ns)

    def finish(self, now_unix_ns: int, wait_s: float) -> bool:
        """Wait a little for what is under way. Whether every receiver has all there is."""
        self.couriers.settle(now_unix_ns, wait_s)
        self._keep(now_unix_ns)
        for name, outbox in self.couriers.outboxes.items():
            if outbox.trouble or outbox.waiting:
                waits = f"{len(outbox.waiting)} waiting, " if outbox.waiting else ""
                self._say(f"{name}: {waits}{outbox.trouble or 'not answered yet'}")
        return not any(one.trouble or one.waiting for one in self.couriers.outboxes.values())

    def _read_again(self, now_unix_ns: int) -> None:
        """Begin to read the store, from as far back as rules look."""
        last = self.memory.last_look_unix_ns or now_unix_ns
        back = now_unix_ns - look_back_ns(self._plan)
        wish = wish_of(self._plan, min(last, back, self._oldest_open(now_unix_ns)))
        self._looks = Looks(self._store, wish)
        self._evidence = evidence_of(
            self._plan, wish, self.memory.book, last, self.memory.first_look_unix_ns
        )

    def _oldest_open(self, now_unix_ns: int) -> int:
        """Since when an incident is open, with what the monitor needs before it."""
        since = self.memory.book.open_since()
        return now_unix_ns if since is None else since - look_back_ns(self._plan)

    def _sources(self, now_unix_ns: int) -> Sources:
        """Read everything; what cannot be read is blind, and no reason to end."""
        blind = {name: why for name, why in self._trouble.items() if name == MEMORY}
        sighted = [STORE, MEMORY, *(str(one) for one in self._places.states)]
        try:
            if STORE in self._trouble:  # it broke off in the middle
                self._read_again(now_unix_ns)
            for _, one in pieces(self._looks):
                take(self._evidence, one, now_unix_ns)
        except PathbudgetError as error:
            blind[STORE] = str(error)
        agents, unread = statuses.of_folders(self._places.states)
        blind |= unread
        if self._places.login is not None:
            sighted.append(BUS)
            try:
                agents |= statuses.of_bus(self._places.login)
            except BusError as error:
                blind[BUS] = str(error)
        self._trouble = dict(blind)
        if not blind:
            self._agents = agents
        else:  # those that were known and cannot be asked now are neither silent nor gone
            away = {
                name: replace(one, is_known=False)
                for name, one in self._agents.items()
                if name not in agents
            }
            self._agents = {**away, **agents}
        return Sources(self._agents, blind, tuple(sighted))

    def _put(self, now_unix_ns: int) -> None:
        """Messages of the rules whose turn it is, into the outboxes of their receivers."""
        for name, rule in self._rules.items():
            notices = self.memory.gathered.take(name, now_unix_ns, rule.together_ns)
            if notices:
                message = message_of(name, notices, now_unix_ns)
                self._tell(message)
                for receiver in self._of(rule):
                    if not isinstance(receiver, Alertmanager):
                        self.couriers.outboxes[receiver.name].put(message)

    def _of(self, rule: Rule) -> list[EveryReceiver]:
        return [one for one in self._plan.receivers if not rule.to or one.name in rule.to]

    def _for_alertmanagers(self, now_unix_ns: int) -> Mapping[str, list[alertmanager.Posted]]:
        found: dict[str, list[alertmanager.Posted]] = {}
        for receiver in self._plan.receivers:
            if isinstance(receiver, Alertmanager):
                mine = [
                    state
                    for _, state in sorted(self.alarm.states.items())
                    if receiver in self._of(self._rules[state.signal.rule])
                ]
                found[receiver.name] = alertmanager.payload(receiver, mine, now_unix_ns)
        return found

    def _keep(self, now_unix_ns: int) -> None:
        memory = self.memory
        memory.last_look_unix_ns = max(memory.last_look_unix_ns, now_unix_ns)
        memory.states, memory.outboxes = self.alarm.states, self.couriers.outboxes
        try:
            write_memory(self._places.memory, memory)
        except StoreError as error:  # better told twice after a restart than not at all
            if MEMORY not in self._trouble:
                self._say(str(error))
            self._trouble[MEMORY] = str(error)
        else:
            self._trouble.pop(MEMORY, None)


def watch(watcher: Watcher, every_ns: int, say: Callable[[str], None]) -> None:
    """Look again and again until Ctrl-C."""
    say(f"looks every {format_duration(every_ns)}; ends at Ctrl-C")
    pause = threading.Event()
    try:
        while True:
            began = time.monotonic()
            watcher.look(time.time_ns())
            pause.wait(max(0.1, every_ns / 1e9 - (time.monotonic() - began)))
    except KeyboardInterrupt:
        watcher.finish(time.time_ns(), LAST_WAIT_S)


def look_once(watcher: Watcher) -> bool:
    """One look, and what it sends. Whether every receiver took it."""
    watcher.look(time.time_ns())
    return watcher.finish(time.time_ns(), ONCE_WAIT_S)
