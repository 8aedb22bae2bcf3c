"""What a lab and its emulator say to each other: JSON lines over a socket pair."""

import socket
from typing import TypeVar

import msgspec

from pathbudget.agents.lab.hop_work import HopSetup
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.report import LabReport
from pathbudget.probes.errors import LabError

Self = TypeVar("Self", bound="Line")


class Line(msgspec.Struct, frozen=True):
    """Anything that is one line of JSON."""

    def encode(self) -> bytes:
        """The line, with its end."""
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def decode(cls: type[Self], line: bytes) -> Self:
        """The value of a line. Raises msgspec.DecodeError."""
        return msgspec.json.decode(line, type=cls)


class DirectionSetup(Line, frozen=True):
    """One direction: interface indices in the emulator's namespace, nodes at its ends.

    `models` are several where the link is a bundle; a packet meets one of them, by its flow.
    """

    source: str
    destination: str
    enters: int
    leaves: int
    from_router: bool
    into_router: bool
    seed: str
    models: tuple[DirectionModel, ...]
    link: int = 0
    """Which of the links of the world."""
    addresses: bytes = b""
    """The first twelve octets of its frames."""


class Setup(Line, frozen=True):
    """The first line to the emulator."""

    directions: tuple[DirectionSetup, ...]
    real_time: bool = True
    hops: tuple[HopSetup, ...] = ()
    """Routers that treat packets in a way of their own."""


class Change(Line, frozen=True):
    """From now on the direction that begins at node `source` of a link behaves like `models`."""

    link: int
    source: str
    models: tuple[DirectionModel, ...]
    over_ns: int = 0
    """The delay goes there from the one before, at an even pace, within so much."""


class Mute(Line, frozen=True):
    """From now on links lose the packets from or to this TCP port of an address, or no longer."""

    address: str
    port: int
    muted: bool


class Question(Line, frozen=True):
    """Every line after the first; each is answered with the report at that moment."""

    change: Change | None = None
    hop: HopSetup | None = None
    """From now on this router does so."""
    mute: Mute | None = None


class Answer(Line, frozen=True):
    """Every line from the emulator."""

    report: LabReport


class LineSocket:
    """Whole lines over a stream socket."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._rest = b""

    def send(self, line: bytes) -> None:
        """All of the line. Raises OSError."""
        self.socket.sendall(line)

    def lines(self) -> list[bytes] | None:
        """Whole lines of what one read gives; None when the other end is closed."""
        octets = self.socket.recv(1 << 16)
        if not octets:
            return None
        *whole, self._rest = (self._rest + octets).split(b"\n")
        return whole

    def line(self) -> bytes:
        """Wait for one line. Raises LabError when the other end is closed, OSError on timeout."""
        while True:
            lines = self.lines()
            if lines is None:
                raise LabError("the other end closed the control socket")
            if lines:
                return lines[0]
