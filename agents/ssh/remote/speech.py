"""What the two ends of an SSH connection say to each other: JSON lines, and bytes of a journal.

here to host: one `Attach`, then `Begin`, perhaps `Stop`, again and again `Acknowledge`.
host to here: what the worker says (campaign/messages.py), `Piece` with the bytes behind it, at last
`Ended`; `Gone` when all of it has been acknowledged and nothing is left. `Trouble`: not to be done.
"""

import msgspec

from pathbudget.agents.campaign.messages import (
    Done,
    Message,
    Ready,
    Refused,
    Report,
    Stop,
    WorkOrder,
)


class Attach(Message, frozen=True):
    """Tell of this run from byte `offset` of its journal on. Where there is none and `order` says
    what to do, begin it first.
    """

    run: str
    offset: int
    order: WorkOrder | None = None


class Begin(Message, frozen=True):
    """Start sending in so many nanoseconds: two hosts have no monotonic clock in common. Said
    twice it counts once.
    """

    head_start_ns: int


class Acknowledge(Message, frozen=True):
    """So many bytes of the journal are on the disk here."""

    size: int


class Piece(Message, frozen=True):
    """The next `length` bytes of the journal follow behind this line."""

    offset: int
    length: int


class Ended(Message, frozen=True):
    """The worker is gone and the journal has `size` bytes, all of which have been sent."""

    size: int
    last_words: str = ""


class Gone(Message, frozen=True):
    """Nothing of the run is left on the host."""


class Trouble(Message, frozen=True):
    """The host cannot do it."""

    text: str


class About(msgspec.Struct, frozen=True):
    """What a host is like, as the bundle sees it."""

    software: str
    abilities: dict[str, bool]
    """What `pathbudget capabilities` lists."""
    free_bytes: int
    """Of the disk that journals are kept on."""
    runs: tuple[str, ...]
    """Those that were asked for, oldest first."""
    alive: tuple[str, ...]
    """Those of them that go on."""


FromHost = Ready | Refused | Report | Done | Piece | Ended | Gone | Trouble
ToHost = Attach | Begin | Stop | Acknowledge

from_host: msgspec.json.Decoder[FromHost] = msgspec.json.Decoder(FromHost)
to_host: msgspec.json.Decoder[ToHost] = msgspec.json.Decoder(ToHost)
