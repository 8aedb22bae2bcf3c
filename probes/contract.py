"""What a probe is: the contract between what decides *when* and what knows *how*.

A campaign runner owns the schedule. For each due send it builds a `Shot` and calls `Probe.fire`.
The probe sends at once and returns at once; every result, number or failure, comes back through
`ProbeEnvironment.emit`, whenever it is there. So a slow answer never delays the next send
(open loop, no coordinated omission), and no task per packet is needed.

Adding a probe: write a module with a `ProbeSpec`, add one line to `table.py`, one page in
`docs/probes/`, one scenario in `tests/`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from pathbudget.probes.errors import Fault
from pathbudget.probes.record import AddressFamily, Sample, Target, Transport

if TYPE_CHECKING:
    from pathbudget.probes.clock import Clock
    from pathbudget.probes.network import Network

Option = str | int | float | bool | None
"""Value of one probe option, as TOML gives it."""

Options = Mapping[str, Option]


class Shot(msgspec.Struct, frozen=True, gc=False):
    """One send that is due now.

    `due_ns` is the monotonic time that the schedule wanted, `lateness_ns` how long after it the
    runner came round to it; a probe that stamps its sends works the lateness out again from
    `due_ns`. `series` says which measurement the result belongs to and goes back through `emit`.
    `address` is the one address of that measurement; `resolve` asks a connection probe to time the
    resolution of `target.host` as well (the probe still connects to `address`).
    """

    series: int
    seq: int
    target: Target
    address: str
    family: AddressFamily
    timeout_ns: int
    lateness_ns: int = 0
    resolve: bool = False
    due_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeEnvironment:
    """What a probe may use. It opens no socket, reads no clock and rolls no dice of its own.

    `emit(series, sample)` delivers one result; `count(series, word)` counts something that is no
    sample (``foreign``, ``late``, ``duplicate``, ``corrupt``); series -1 where it is unknown.
    `waited(ns)` says that the samples that follow were read up to so much later because the probe
    wanted it so (packets are gathered); that is no lag of the host.
    """

    network: "Network"
    clock: "Clock"
    rng: random.Random
    emit: Callable[[int, Sample], None]
    count: Callable[[int, str], None]
    waited: Callable[[int], None] = lambda _: None


class Probe(Protocol):
    """One open probe. Lives in one event loop; `fire` is called from that loop only."""

    def fire(self, shot: Shot) -> None:
        """Send now. Never blocks, never raises for what the network does."""
        ...

    async def drain(self) -> None:
        """Return when every shot has been answered or has timed out."""
        ...

    def close(self) -> None:
        """Give the sockets back. Shots under way are dropped without a sample."""
        ...


@runtime_checkable
class BatchProbe(Probe, Protocol):
    """A probe that can send many packets with one system call."""

    def fire_all(self, shots: Sequence[Shot]) -> None:
        """As `fire` for each of them, in this order. Used when several are due at once."""
        ...


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option of a probe: its type, its default, and what a person should know."""

    kind: type
    default: Option
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    file: bool = False
    """Whether a text is the path of a file to read."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one shot puts on the wire at most, both directions together, without loss."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """One line of the probe table.

    `open` may raise `PrivilegeError` or `ConfigError` (could not measure at all). It must be
    called inside the event loop and inside the network namespace that is to be measured from.
    """

    name: str
    summary: str
    version: int
    open: Callable[[ProbeEnvironment, Options], Probe]
    cost: Callable[[Options], Cost]
    options: Mapping[str, OptionSpec] = field(default_factory=dict[str, OptionSpec])
    primary_metric: str = "rtt"
    """The metric of which every shot yields exactly one sample, number or failure."""
    needs_port: bool = False
    default_port: int | None = None
    own_port: bool = False
    """Whether it speaks to something of its own at a target, on `default_port`: the port that a
    catalogue gives is then another service's."""
    transport: Callable[[Options], Transport | None] = lambda _: None
    """What carries its requests; None of a probe that makes none."""
    check: Callable[[Options], Sequence[Fault]] = lambda _: ()
    """Every fault in options that are right one by one, `Fault.where` naming one of them: what does
    not go together, words and files that cannot be used. Opens no socket; what takes a library that
    is not installed is left to `open`."""
