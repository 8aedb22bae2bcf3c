"""What comes of handing a message over: who took it, or why not."""

from typing import NamedTuple


class Receipt(NamedTuple):
    """It was taken; what the receiver said, in a few words."""

    said: str


class Refusal(NamedTuple):
    """It was not taken. `final`: trying again would change nothing."""

    why: str
    final: bool = False


Answer = Receipt | Refusal
