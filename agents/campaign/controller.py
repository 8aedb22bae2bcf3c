"""Runs a campaign: one worker process per vantage, one journal each, then the store."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import (
    Done,
    FromWorker,
    Message,
    Ready,
    Refused,
    Report,
    Start,
    Stop,
    WorkOrder,
    encode,
    from_worker,
)
from pathbudget.agents.campaign.plan import CampaignPlan, VantagePlan
from pathbudget.probes.errors import (
    ConfigError,
    NotOnThisHostError,
    PathbudgetError,
    PrivilegeError,
    SpoolError,
)
from pathbudget.probes.scheduling import RealTime, processors

WORKER = (sys.executable, "-m", "pathbudget.agents.campaign.worker")
BYTES_PER_SAMPLE = 160
"""What a journal line takes, generously."""
SAMPLES_PER_SHOT = 5
"""A TLS handshake to a host name: resolve, connect, TLS, set-up, client compute."""
RESERVE_AT_MOST = 256 << 20
HEAD_START_NS = 200_000_000
"""Between the start message and the first send, so that no worker is late from the beginning."""
KILL_AFTER_S = 5.0

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
    ) -> None:
        self._on_progress = on_progress
        self._realtime = realtime
        self._alone = _leaves_a_processor(plan)
        self._processes: list[asyncio.subprocess.Process] = []
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

    async def run(self) -> None:
        """Start the workers together, follow them to their end."""
        followers = [
            asyncio.create_task(self._follow(worker, ready))
            for worker, ready in zip(self.workers, self._ready, strict=True)
        ]
        starting = asyncio.create_task(self._start_together())
        try:
            await asyncio.gather(*followers)
        finally:
            starting.cancel()
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await asyncio.gather(starting, *followers, return_exceptions=True)

    def stop(self) -> None:
        """First call: tell the workers to stop. Second call: kill them; the journals stay."""
        for process in self._processes:
            if self._stopping:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            else:
                self._send(process, Stop())
        if not self._stopping:
            asyncio.get_running_loop().call_later(KILL_AFTER_S, self._kill_if_stopping)
        self._stopping = True

    def _kill_if_stopping(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _start_together(self) -> None:
        await asyncio.gather(*(ready.wait() for ready in self._ready))
        if any(worker.failed for worker in self.workers) or self._stopping:
            message: Message = Stop()
        else:
            message = Start(time.monotonic_ns() + HEAD_START_NS)
        for process in self._processes:
            self._send(process, message)

    async def _follow(self, worker: WorkerState, ready: asyncio.Event) -> None:
        process = await asyncio.create_subprocess_exec(
            *WORKER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        self._processes.append(process)
        order = WorkOrder(
            worker.plan,
            str(worker.journal),
            _reserve(worker.plan),
            realtime=self._realtime,
            alone=self._alone,
        )
        self._send(process, order)
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        try:
            async for line in process.stdout:
                self._take(worker, from_worker(line), ready)
        except msgspec.DecodeError as error:
            worker.died = f"said something that is no message ({error})"
        finally:
            ready.set()
        code = await process.wait()
        text = (await errors).decode(errors="replace").strip()
        if not worker.done and worker.failed is None:
            last_words = text.splitlines()[-1] if text else "without a word"
            worker.died = worker.died or f"ended with code {code}: {last_words}"
        elif text:
            worker.problems.extend(text.splitlines()[-3:])

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

    @staticmethod
    def _send(process: asyncio.subprocess.Process, message: Message) -> None:
        if process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(encode(message))


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
    return (SpoolError if refused.kind == SpoolError.__name__ else PathbudgetError)(refused.text)
