"""A packet filter for a raw TCP socket: the kernel drops what is no answer to a SYN.

Without it a raw socket gets a copy of every segment that this host receives. Classic BPF
(Linux Documentation/networking/filter.rst); a raw IPv4 socket shows the filter the IP header too.
"""

import ctypes
import socket
import struct
from collections.abc import Sequence

from pathbudget.probes.record import AddressFamily

SO_ATTACH_FILTER = 26
MOST_PORTS = 120
"""Jumps reach 255 instructions; more ports are not told apart here but above."""
FLAGS_OFFSET, PORT_OFFSET = 13, 2
SYN_ACK, RST_ACK, ASKED = 0x12, 0x14, 0x16
_LOAD_HEADER_LENGTH, _AND, _EQUAL, _RETURN = 0xB1, 0x54, 0x15, 0x06
_LOAD_BYTE = {AddressFamily.IPV4: 0x50, AddressFamily.IPV6: 0x30}
_LOAD_HALF = {AddressFamily.IPV4: 0x48, AddressFamily.IPV6: 0x28}
_WHOLE = 0xFFFF
_INSTRUCTION = struct.Struct("@HBBI")


def program(family: AddressFamily, ports: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The filter: SYN-ACK or RST-ACK to one of these ports; without ports, every RST-ACK."""
    told_apart = list(ports)[:MOST_PORTS] if len(ports) <= MOST_PORTS else []
    check = [(_LOAD_HALF[family], 0, 0, PORT_OFFSET)] if told_apart else []
    # From behind: what follows the last comparison is "drop", then "take".
    compare = [
        (_EQUAL, len(told_apart) - number, 0, port) for number, port in enumerate(told_apart)
    ]
    rest = [*check, *compare]
    if told_apart:
        rest += [(_RETURN, 0, 0, 0), (_RETURN, 0, 0, _WHOLE)]
    else:
        rest += [(_RETURN, 0, 0, _WHOLE), (_RETURN, 0, 0, 0)]
    to_drop = len(rest) - (2 if told_apart else 1)
    start = [(_LOAD_HEADER_LENGTH, 0, 0, 0)] if family is AddressFamily.IPV4 else []
    start += [(_LOAD_BYTE[family], 0, 0, FLAGS_OFFSET), (_AND, 0, 0, ASKED)]
    if ports:
        return [*start, (_EQUAL, 1, 0, SYN_ACK), (_EQUAL, 0, to_drop, RST_ACK), *rest]
    return [*start, (_EQUAL, 0, to_drop, RST_ACK), *rest]


def attach_filter(sock: socket.socket, family: AddressFamily, ports: Sequence[int]) -> None:
    """Filter what this socket receives from now on. Raises OSError."""
    attach_program(sock, program(family, ports))


def attach_program(
    sock: socket.socket, filter_program: Sequence[tuple[int, int, int, int]]
) -> None:
    """Give a socket this classic BPF program in place of an earlier one. Raises OSError."""
    code = b"".join(_INSTRUCTION.pack(*one) for one in filter_program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filter_)
