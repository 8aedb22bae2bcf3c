"""A worker on another host, for the controller: the same messages, over SSH.

The worker there does not know of the connection. When it breaks, the channel makes another one and
goes on from the byte that came last; the worker measures meanwhile, and its host keeps everything.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import (
    Done,
    FromWorker,
    Ready,
    Refused,
    Report,
    WorkOrder,
)
from pathbudget.agents.ssh.attachment import Attached
from pathbudget.agents.ssh.bundle import Bundle
from pathbudget.agents.ssh.connecting import AwayError, connected
from pathbudget.agents.ssh.host_state import Doing, HostState
from pathbudget.agents.ssh.hosts_file import Host
from pathbudget.agents.ssh.mirror import Mirror
from pathbudget.agents.ssh.remote.speech import About
from pathbudget.agents.ssh.remote_host import RemoteHost, looked_at
from pathbudget.probes.errors import HostError, PathbudgetError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
EARLIER = "-earlier"


@dataclass(frozen=True, slots=True)
class SshChannels:
    """See `campaign.channel.Channels`."""

    hosts: dict[str, Host]
    """By vantage."""
    bundle: Bundle
    give_up_ns: int
    on_change: Callable[[HostState], None]
    kill_after_s: float = 30.0
    """What was measured must come over first."""

    def open(self, order: WorkOrder) -> "SshChannel":
        """The way to a worker on the host of its vantage."""
        return SshChannel(order, self.hosts[order.plan.vantage.name], self)


class SshChannel:
    """See `campaign.channel.Channel`."""

    def __init__(self, order: WorkOrder, host: Host, channels: SshChannels) -> None:
        self._order = order
        self._host = host
        self._channels = channels
        self._state = HostState(order.plan.vantage.name, channels.on_change)
        self._queue: asyncio.Queue[FromWorker | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        journal = Path(order.journal)
        self._prefix = journal.stem.rpartition("-")[0] + "-"
        self._spool = journal.parent
        self._run = ""
        """Name of the run on the host; empty until it is known."""
        self._attached: Attached | None = None
        self._before = Report(0, 0, {}, 0)
        """What earlier runs of the same plan did, of which only now is heard."""
        self._ready = False
        self._start_ns: int | None = None
        self._stopping = False
        self._ended = ""
        self._finished = False

    async def messages(self) -> AsyncIterator[FromWorker]:
        """See `Channel.messages`."""
        self._task = asyncio.create_task(self._run_to_the_end())
        try:
            while (message := await self._queue.get()) is not None:
                yield message
            if not self._task.cancelled():
                await self._task  # raises what ended it
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
        finally:
            self._task.cancel()

    def start(self, monotonic_ns: int) -> None:
        """See `Channel.start`."""
        self._start_ns = monotonic_ns
        self._state.now(Doing.MEASURING)
        self._command()

    def stop(self) -> None:
        """See `Channel.stop`."""
        self._stopping = True
        self._command()

    def kill(self) -> None:
        """See `Channel.kill`."""
        if self._task is not None and not self._task.done():
            self._ended = self._ended or self._left_behind("it was not waited for any longer")
            self._task.cancel()

    async def last_words(self) -> tuple[str, list[str]]:
        """See `Channel.last_words`."""
        return self._ended or "ended without a word", []

    def _command(self) -> None:
        """Say to the worker what it should have heard. Saying it again does no harm."""
        if self._attached is None:
            return
        if self._stopping:
            self._attached.stop()
        elif self._start_ns is not None:
            self._attached.begin(max(0, self._start_ns - time.monotonic_ns()))

    async def _run_to_the_end(self) -> None:
        try:
            await self._go_on_until_finished()
        except PathbudgetError as error:
            self._state.now(Doing.FAILED, str(error))
            if not self._ready:
                raise
            self._ended = self._left_behind(str(error))
        else:
            self._state.now(Doing.FAILED if self._ended else Doing.DONE, self._ended)
        finally:
            self._queue.put_nowait(None)

    async def _go_on_until_finished(self) -> None:
        pause_s, lost_ns = FIRST_PAUSE_S, time.monotonic_ns()
        while not self._finished:
            try:
                async with connected(self._host) as connection:
                    bundle = self._channels.bundle
                    remote = await looked_at(connection, self._host, bundle)
                    await self._with(remote)
            except AwayError as error:
                if not self._ready:
                    raise
                if self._attached is not None:  # it had been there
                    self._attached, pause_s, lost_ns = None, FIRST_PAUSE_S, time.monotonic_ns()
                self._state.now(Doing.AWAY, "its host goes on measuring")
                if time.monotonic_ns() > self._deadline_ns(lost_ns):
                    raise HostError(f"{error}; given up") from None
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    def _deadline_ns(self, lost_ns: int) -> int:
        """Until when a host is tried that was lost then."""
        plan = self._order.plan
        left_ns = (plan.duration_ns or 0) - plan.resume_at_ns
        end_ns = lost_ns if self._start_ns is None else self._start_ns + left_ns
        return max(lost_ns, end_ns) + self._channels.give_up_ns

    async def _with(self, remote: RemoteHost) -> None:
        """Over one connection: bring what is needed, then tell of the run."""
        if not remote.found.has_bundle:
            self._state.now(Doing.BRINGING)
            await remote.bring(self._brought)
        if not self._run:
            about = await remote.about(self._prefix)
            self._state.now(Doing.STARTING, _like(remote, about))
            await self._choose_run(remote, about)
        await self._follow(remote)

    def _brought(self, done: int, size: int) -> None:
        self._state.now(Doing.BRINGING, f"{100 * done // size} %")

    async def _choose_run(self, remote: RemoteHost, about: About) -> None:
        """One that still goes on is ours again; those that ended without us are fetched first."""
        for name in about.runs:
            if name in about.alive:
                self._run = name
            else:
                await self._fetch(remote, name)
        if not self._run:
            plan = self._order.plan
            resume_at_ns = max(plan.resume_at_ns, self._before.reached_ns)
            plan = msgspec.structs.replace(plan, resume_at_ns=resume_at_ns)
            self._order = msgspec.structs.replace(self._order, plan=plan)
            self._run = f"{self._prefix}{resume_at_ns}"

    async def _fetch(self, remote: RemoteHost, name: str) -> None:
        self._state.now(Doing.FETCHING, name)
        mirror = Mirror(self._spool / f"{name}{EARLIER}.jsonl")
        try:
            attached = await Attached.to(remote, name, mirror, None)
            async for message in attached.messages():
                if isinstance(message, Report | Done):
                    report = message.report if isinstance(message, Done) else message
                    self._before = _sum(self._before, report)
        finally:
            mirror.close()

    async def _follow(self, remote: RemoteHost) -> None:
        order = None if self._ready else self._order
        mirror = Mirror(self._mirrored())
        try:
            attached = await Attached.to(remote, self._run, mirror, order)
            async for message in attached.messages():
                if self._attached is None:
                    self._attached = attached
                    self._command()
                self._pass_on(message)
        finally:
            mirror.close()
            if not self._ready:  # it has all of it still
                mirror.discard()
        whole, wanted = self._mirrored(), Path(self._order.journal)
        self._ended = attached.last_words
        if attached.was_gone:  # else the last acknowledgement arrived, and its answer did not
            mirror.discard()
            if not whole.exists():
                self._ended = f"nothing is left of the run on {self._host.way.address}"
        if whole != wanted and whole.exists():
            whole.rename(wanted)
        self._finished = True

    def _mirrored(self) -> Path:
        """Under the name that it has on the host, so that it can be gone on with."""
        return self._spool / f"{self._run}.jsonl"

    def _pass_on(self, message: FromWorker) -> None:
        match message:
            case Ready() if self._ready:  # heard before the connection broke
                pass
            case Ready():
                self._ready = True
                self._queue.put_nowait(message)
            case Refused():
                self._queue.put_nowait(_of_host(message, self._host))
            case Report():
                self._state.now(Doing.MEASURING)
                self._queue.put_nowait(_sum(self._before, message))
            case Done():
                self._state.now(Doing.FETCHING)
                report = _sum(self._before, message.report)
                self._queue.put_nowait(msgspec.structs.replace(message, report=report))

    def _left_behind(self, why: str) -> str:
        return f"{why}. What it has measured waits on {self._host.way.address}"


def _like(remote: RemoteHost, about: About) -> str:
    """In a line what a host can do."""
    words = [f"Python {'.'.join(map(str, remote.found.python))}"]
    icmp = [kind for kind in ("raw", "datagram") if about.abilities.get(f"ICMP {kind} IPv4")]
    words.append(f"{icmp[0]} ICMP" if icmp else "no ICMP")
    stamps = ("kernel send stamps", "kernel receive stamps")
    stamped = all(about.abilities.get(one) for one in stamps)
    words.append("kernel stamps" if stamped else "no kernel stamps")
    return ", ".join(words)


def _of_host(refused: Refused, host: Host) -> Refused:
    """With the name of the host before it: there are many."""
    faults = "\n".join(str(fault) for fault in refused.faults)
    text = faults or refused.text
    if refused.capability and not faults:
        text = f"{refused.capability}: not permitted; {text}"
    where = f"{host.vantage} ({host.way.address})"
    return Refused(HostError.__name__, "", f"{where}: {text}")


def _sum(before: Report, report: Report) -> Report:
    failures = dict(before.failures)
    for kind, count in report.failures.items():
        failures[kind] = failures.get(kind, 0) + count
    unresolved = {host: dict(kinds) for host, kinds in before.unresolved.items()}
    for host, kinds in report.unresolved.items():
        mine = unresolved.setdefault(host, {})
        for kind, count in kinds.items():
            mine[kind] = mine.get(kind, 0) + count
    return Report(
        before.fired + report.fired,
        before.samples + report.samples,
        failures,
        max(before.reached_ns, report.reached_ns),
        unresolved,
    )
