"""What a controller and its workers say to each other: JSON lines over the worker's pipes.

controller to worker: one `WorkOrder`, then `Start`, perhaps `Stop`. The end of the pipe means stop:
a worker never outlives its controller by more than the moment it takes to close its journal.
worker to controller: `Ready` or `Refused`, then `Report` twice a second, at last `Done`.
"""

import msgspec

from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.probes.errors import Fault
from pathbudget.probes.scheduling import RealTime


class Message(msgspec.Struct, frozen=True, tag=True):
    """Base of everything that goes over the pipes."""


class WorkOrder(Message, frozen=True):
    """What to measure and where to keep it."""

    plan: VantagePlan
    journal: str
    reserve_bytes: int
    realtime: RealTime = RealTime.AUTO
    alone: bool = False
    """Whether a processor is left for everybody else when this worker has one to itself."""


class Start(Message, frozen=True):
    """Begin at this CLOCK_MONOTONIC reading (the workers share the host, and so the clock)."""

    monotonic_ns: int


class Stop(Message, frozen=True):
    """Send nothing more, close the journal, go."""


class Ready(Message, frozen=True):
    """Everything is open; nothing has been sent."""

    problems: tuple[str, ...] = ()


class Refused(Message, frozen=True):
    """It cannot be measured from here. `kind` is the name of the exception."""

    kind: str
    capability: str
    text: str
    faults: tuple[Fault, ...] = ()
    """Of a `ConfigError`."""


class Report(Message, frozen=True):
    """How far it is."""

    fired: int
    samples: int
    failures: dict[str, int]
    """Probes that failed, by kind of failure."""
    reached_ns: int
    unresolved: dict[str, dict[str, int]] = {}
    """Those of them that were not sent because a name led nowhere: by host, then by kind."""


class Done(Message, frozen=True):
    """The journal is closed. `text` says what ended it before its time, if anything did."""

    report: Report
    text: str = ""
    problems: tuple[str, ...] = ()
    """What went wrong on the way since `Ready`."""


FromController = WorkOrder | Start | Stop
FromWorker = Ready | Refused | Report | Done

_controller_decoder: msgspec.json.Decoder[FromController] = msgspec.json.Decoder(FromController)
_worker_decoder: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)


def encode(message: Message) -> bytes:
    """One line."""
    return msgspec.json.encode(message) + b"\n"


def from_controller(line: bytes) -> FromController:
    """Decode one line; msgspec.DecodeError if it is none."""
    return _controller_decoder.decode(line)


def from_worker(line: bytes) -> FromWorker:
    """Decode one line; msgspec.DecodeError if it is none."""
    return _worker_decoder.decode(line)
