"""Exceptions: something could not be measured, read or written at all.

What the network answers is never an exception but data (`record.Failure`).

    PathbudgetError
    |- ConfigError          a user's file is wrong; carries every fault found
    |- PrivilegeError       the kernel refuses a socket; carries the remedy
    |  `- NotOnThisHostError   no such interface or address here: a wrong word, not a lacking right
    |- RecordError          a record file cannot be read
    |- StoreError           the store cannot be read or written
    |- SpoolError           the spool cannot take what was measured
    |- BusError             the bus of a fleet cannot be reached, or refuses us
    |- HostError            a host cannot be reached over SSH, or cannot do what is wanted
    |- ReflectorError       our own responder cannot run
    `- LabError             the lab cannot start, or died
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in one file.

    `where` is a key path in the reader's own terms (``site[2].latitude``, or ``line 7, column
    price`` in a CSV); `problem` says what stands there; `expected` says what would be right.
    """

    file: str
    where: str
    problem: str
    expected: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.where}" if self.where else self.file
        return f"{place}: {self.problem}; expected {self.expected}"


class PathbudgetError(Exception):
    """Base of every exception that this product raises on purpose."""


class ConfigError(PathbudgetError):
    """A file of the user's has faults. All of them are listed, and nothing was loaded."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class PrivilegeError(PathbudgetError):
    """The kernel does not allow what was asked; `remedy` is what a person can do about it."""

    def __init__(self, capability: str, remedy: str) -> None:
        self.capability = capability
        self.remedy = remedy
        super().__init__(f"{capability}: not permitted; {remedy}")


class NotOnThisHostError(PrivilegeError):
    """The interface or the source address that was asked for is none of this host's."""

    def __init__(self, capability: str, what: str) -> None:
        super().__init__(capability, what)
        self.args = (f"{capability}: {what}",)


class RecordError(PathbudgetError):
    """A record cannot be decoded. The message names the line and the field."""


class StoreError(PathbudgetError):
    """The store cannot be read or written. Nothing that was measured is lost by it."""


class SpoolError(PathbudgetError):
    """The spool cannot take samples (disk full, read-only)."""


class BusError(PathbudgetError):
    """The bus of a fleet cannot be reached, or refuses us. What was measured waits."""


class HostError(PathbudgetError):
    """A host cannot be reached over SSH, or cannot do what is wanted. The message names it."""


class ReflectorError(PathbudgetError):
    """A responder of ours cannot run."""


class WatchError(PathbudgetError):
    """Metrics or traces can be neither served nor sent."""


class LabError(PathbudgetError):
    """The lab cannot start here, or one of its parts died."""
