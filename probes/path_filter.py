"""Packet filters of the raw sockets that hear the answers of traces, in classic BPF.

Without them each trace socket gets a copy of all TCP and of all pings that come to this host. Here
everything is heard that is meant for our TCP ports, and of echo replies those with one of our
identifiers; ICMP errors always. Where there are too many numbers for one program, neighbours are
heard as well: whoever reads the answers knows his own.
"""

import socket
from collections.abc import Collection

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.segment_filter import attach_program

MOST_RANGES = 60
"""Two instructions each; jumps reach 255."""
TCP_BYTES = 128
"""Enough for the headers, however long; what a connection carries is none of our business."""
WHOLE = 0xFFFF
ECHO_REPLY = {AddressFamily.IPV4: 0, AddressFamily.IPV6: 129}
_FLAGS, _ACK_OR_RST, _PORT, _TYPE, _IDENTIFIER = 13, 0x14, 2, 0, 4
_LOAD_HEADER_LENGTH, _RETURN = 0xB1, 0x06
_JUMP, _EQUAL, _GREATER, _AT_LEAST, _ANY_BIT = 0x05, 0x15, 0x25, 0x35, 0x45
_LOAD_BYTE = {AddressFamily.IPV4: 0x50, AddressFamily.IPV6: 0x30}
_LOAD_HALF = {AddressFamily.IPV4: 0x48, AddressFamily.IPV6: 0x28}

Instruction = tuple[int, int, int, int]


def ranges(numbers: Collection[int]) -> list[tuple[int, int]]:
    """Ascending (first, last) that hold all of them, joined where the gaps are smallest."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    while len(found) > MOST_RANGES:
        gaps = [found[at + 1][0] - found[at][1] for at in range(len(found) - 1)]
        at = gaps.index(min(gaps))
        found[at : at + 2] = [(found[at][0], found[at + 1][1])]
    return found


def tcp_program(family: AddressFamily, ports: Collection[int]) -> list[Instruction]:
    """Segments with ACK or RST to these ports, cut short; without ports nothing."""
    if not ports:
        return [(_RETURN, 0, 0, 0)]
    start = [(_LOAD_HEADER_LENGTH, 0, 0, 0)] if family is AddressFamily.IPV4 else []
    start += [
        (_LOAD_BYTE[family], 0, 0, _FLAGS),
        (_ANY_BIT, 1, 0, _ACK_OR_RST),
        (_RETURN, 0, 0, 0),
        (_LOAD_HALF[family], 0, 0, _PORT),
    ]
    return [*start, *_among(ports, TCP_BYTES)]


def icmp_program(family: AddressFamily, identifiers: Collection[int]) -> list[Instruction]:
    """All but echo replies, and of those the ones with these identifiers."""
    start = [(_LOAD_HEADER_LENGTH, 0, 0, 0)] if family is AddressFamily.IPV4 else []
    start += [
        (_LOAD_BYTE[family], 0, 0, _TYPE),
        (_EQUAL, 1, 0, ECHO_REPLY[family]),
        (_RETURN, 0, 0, WHOLE),
        (_LOAD_HALF[family], 0, 0, _IDENTIFIER),
    ]
    return [*start, *_among(identifiers, WHOLE)]


def _among(numbers: Collection[int], take: int) -> list[Instruction]:
    """Take where the number that was loaded is in a range; the ranges are ascending."""
    held = ranges(numbers)
    code: list[Instruction] = []
    for at, (first, last) in enumerate(held):
        # To "drop" and "take", behind the comparisons that follow this one.
        left = 2 * (len(held) - at - 1)
        code += [(_GREATER, 1, 0, last), (_AT_LEAST, left + 1, left, first)]
    return [*code, (_RETURN, 0, 0, 0), (_RETURN, 0, 0, take)]


class Heard:
    """The numbers that one socket hears, and its filter."""

    def __init__(self, sock: socket.socket, family: AddressFamily, *, tcp: bool) -> None:
        self._socket = sock
        self._family = family
        self._program = tcp_program if tcp else icmp_program
        self._numbers: set[int] = set()
        self._attach()

    def add(self, numbers: Collection[int]) -> None:
        """Hear these as well from now on. Raises OSError."""
        if not self._numbers.issuperset(numbers):
            self._numbers.update(numbers)
            self._attach()

    def _attach(self) -> None:
        attach_program(self._socket, self._program(self._family, self._numbers))
