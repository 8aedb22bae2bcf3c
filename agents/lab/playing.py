"""Plays the events of a world in a running lab, and writes down when each really happened."""

import contextlib
import threading
import time
from typing import Protocol

import msgspec

from pathbudget.agents.lab.events import Moment, timeline
from pathbudget.agents.lab.ledger import Entry, Happening, Ledger, planned
from pathbudget.agents.lab.report import LabReport
from pathbudget.agents.lab.world import World
from pathbudget.probes.errors import LabError

LOOK_SECONDS = 0.02
SETTLE_SECONDS = 15.0
"""After that nobody waits for routes any more."""


class Stage(Protocol):
    """A running lab, as far as a play needs one."""

    world: World

    def become(self, world: World, *, over_ns: int = 0) -> None:
        """Be another world from now on."""
        ...

    def report(self) -> LabReport:
        """What the lab says about itself."""
        ...

    def difference(self) -> str:
        """Where kernels forward otherwise than the world says; empty: nowhere."""
        ...


class Play:
    """One run through the events. `stop` ends it early, from another thread."""

    def __init__(self, lab: Stage) -> None:
        self._lab = lab
        self._world = lab.world
        self._moments = timeline(lab.world)
        self._entries: list[Entry] = planned(lab.world, self._moments)
        self._stopped = threading.Event()
        self._began_unix_ns = self._ended_unix_ns = 0

    def stop(self) -> None:
        """Have `run` return soon."""
        self._stopped.set()

    def run(self) -> Ledger:
        """Play to the last event's end. Raises LabError when the lab dies."""
        self._began_unix_ns, began = time.time_ns(), time.monotonic()
        for number, moment in enumerate(self._moments):
            if self._stopped.wait(max(0.0, began + moment.at_ns / 1e9 - time.monotonic())):
                break
            following = self._moments[number + 1 : number + 2]
            until = began + following[0].at_ns / 1e9 if following else float("inf")
            self._note(moment, self._carry_out(moment, until))
        self._ended_unix_ns = time.time_ns()
        return self.ledger()

    def ledger(self) -> Ledger:
        """What has happened so far."""
        report = self._report()
        return Ledger(
            seed=self._world.seed,
            began_unix_ns=self._began_unix_ns,
            ended_unix_ns=self._ended_unix_ns or time.time_ns(),
            entries=tuple(self._entries),
            stalls=report.stalls if report else (),
            error_p99_us=report.p99_us if report else 0.0,
        )

    def _report(self) -> LabReport | None:
        with contextlib.suppress(LabError):  # a lab that died says nothing
            return self._lab.report()
        return None

    def _carry_out(self, moment: Moment, until: float) -> Happening:
        over = max((self._world.events[at].over_ns for at in moment.begins), default=0)
        began = time.time_ns()
        self._lab.become(moment.after, over_ns=over)
        done = time.time_ns()
        settled = None
        if moment.before.forwarding != moment.after.forwarding:
            settled = self._settled(min(until, time.monotonic() + SETTLE_SECONDS))
        return Happening(began, done, settled)

    def _settled(self, until: float) -> int | None:
        """When the kernels forwarded as they should, None where they did not until then."""
        while self._lab.difference():
            if time.monotonic() > until - LOOK_SECONDS or self._stopped.wait(LOOK_SECONDS):
                return None
        return time.time_ns()

    def _note(self, moment: Moment, happening: Happening) -> None:
        for key, numbers in (("start", moment.begins), ("end", moment.ends)):
            for number in numbers:
                entry = self._entries[number]
                self._entries[number] = msgspec.structs.replace(entry, **{key: happening})
