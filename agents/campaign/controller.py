"""Runs a campaign: one worker process per vantage, one journal each, then the store."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.channel import Channel, Channels, Processes
from pathbudget.agents.campaign.messages import (
    Done,
    FromWorker,
    Ready,
    Refused,
    Report,
    WorkOrder,
)
from pathbudget.agents.campaign.plan import CampaignPlan, VantagePlan
from pathbudget.probes.errors import (
    ConfigError,
    HostError,
    NotOnThisHostError,
    PathbudgetError,
    PrivilegeError,
    SpoolError,
)
from pathbudget.probes.scheduling import RealTime, processors

BYTES_PER_SAMPLE = 160
"""What a journal line takes, generously."""
SAMPLES_PER_SHOT = 5
"""A TLS handshake to a host name: resolve, connect, TLS, set-up, client compute."""
RESERVE_AT_MOST = 256 << 20
HEAD_START_NS = 200_000_000
"""Between the start message and the first send, so that no worker is late from the beginning."""

OnProgress = Callable[[Sequence["WorkerState"]], None]


@dataclass(slots=True)
class WorkerState:
    """What the controller knows of one worker."""

    plan: VantagePlan
    journal: Path
    report: Report
    problems: list[str] = field(default_factory=list[str])
    failed: PathbudgetError | None = None
    """Could not measure from here at all."""
    died: str = ""
    done: bool = False


class Controller:
    """One campaign. `run` returns the workers' last states; their journals are on disk."""

    def __init__(
        self,
        plan: CampaignPlan,
        spool: Path,
        on_progress: OnProgress,
        realtime: RealTime = RealTime.AUTO,
        channels: Channels | None = None,
    ) -> None:
        channels = channels or Processes()
        self._on_progress = on_progress
        self._kill_after_s = channels.kill_after_s
        self._stopping = False
        self._ready = [asyncio.Event() for _ in plan.vantages]
        self.workers = [
            WorkerState(
                plan=vantage,
                journal=spool / f"{plan.run_id}-{index:03}-{vantage.resume_at_ns}.jsonl",
                report=Report(0, 0, {}, vantage.resume_at_ns),
            )
            for index, vantage in enumerate(plan.vantages)
        ]
        alone = _leaves_a_processor(plan)
        orders = [
            WorkOrder(
                worker.plan,
                str(worker.journal),
                _reserve(worker.plan),
                realtime=realtime,
                alone=alone,
            )
            for worker in self.workers
        ]
        self._channels = [channels.open(order) for order in orders]

    async def run(self) -> None:
        """Start the workers together, follow them to their end."""
        followers = [
            asyncio.create_task(self._follow(*one))
            for one in zip(self.workers, self._channels, self._ready, strict=True)
        ]
        starting = asyncio.create_task(self._start_together())
        try:
            await asyncio.gather(*followers)
        finally:
            starting.cancel()
            self._kill()
            await asyncio.gather(starting, *followers, return_exceptions=True)

    def stop(self) -> None:
        """First call: tell the workers to stop. Second call: kill them; the journals stay."""
        if self._stopping:
            self._kill()
            return
        self._stopping = True
        for channel in self._channels:
            channel.stop()
        asyncio.get_running_loop().call_later(self._kill_after_s, self._kill)

    def _kill(self) -> None:
        for channel in self._channels:
            channel.kill()

    async def _start_together(self) -> None:
        await asyncio.gather(*(ready.wait() for ready in self._ready))
        begins = not self._stopping and not any(worker.failed for worker in self.workers)
        start_ns = time.monotonic_ns() + HEAD_START_NS
        for channel in self._channels:
            if begins:
                channel.start(start_ns)
            else:
                channel.stop()

    async def _follow(self, worker: WorkerState, channel: Channel, ready: asyncio.Event) -> None:
        try:
            async for message in channel.messages():
                self._take(worker, message, ready)
        except msgspec.DecodeError as error:
            worker.died = f"said something that is no message ({error})"
        except PathbudgetError as error:
            worker.failed = error
        finally:
            ready.set()
        if worker.failed is not None:
            return
        ended, complaints = await channel.last_words()
        if worker.done:
            worker.problems.extend(complaints)
        else:
            worker.died = worker.died or ended

    def _take(self, worker: WorkerState, message: FromWorker, ready: asyncio.Event) -> None:
        match message:
            case Ready(problems=problems):
                worker.problems.extend(problems)
                ready.set()
            case Refused():
                worker.failed = _exception(message)
                ready.set()
            case Report():
                worker.report = message
                self._on_progress(self.workers)
            case Done(report=report, text=text, problems=problems):
                worker.report, worker.done = report, True
                worker.problems.extend(problems)
                if text:
                    worker.died = text
                self._on_progress(self.workers)


def _leaves_a_processor(plan: CampaignPlan) -> bool:
    """Whether real-time workers leave something to others. In namespaces, as those of the lab, what
    emulates the network runs on this host too, and would be measured if it had to wait.
    """
    apart = any(vantage.namespace for vantage in plan.vantages)
    return len(plan.vantages) < processors() and not apart


def _reserve(plan: VantagePlan) -> int:
    left_ns = None if plan.duration_ns is None else plan.duration_ns - plan.resume_at_ns
    shots = sum(series.expected_shots(left_ns) for series in plan.series)
    return int(min(RESERVE_AT_MOST, shots * SAMPLES_PER_SHOT * BYTES_PER_SAMPLE + 65_536))


def _exception(refused: Refused) -> PathbudgetError:
    if refused.faults:
        return ConfigError(refused.faults)
    for one in (PrivilegeError, NotOnThisHostError):
        if refused.kind == one.__name__:
            return one(refused.capability, refused.text)
    for other in (SpoolError, HostError):
        if refused.kind == other.__name__:
            return other(refused.text)
    return PathbudgetError(refused.text)
