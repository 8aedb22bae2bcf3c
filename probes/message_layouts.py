"""How packets lie in memory when all control messages come as usual, as precompiled structs.

Order and sizes were seen on Linux (6.18, 64 bit) and follow from how it writes them; a packet that
lies otherwise is noticed by its length or its heads, and is walked message by message instead.
"""

import functools
import socket
import struct
from collections.abc import Callable

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.message_memory import CONTROL_HEADER, LONG_BYTES, NAME_BYTES, aligned

_HEAD = CONTROL_HEADER.size
_STAMP_BYTES = 6 * LONG_BYTES
"""Three struct timespec; the first is the software stamp."""
SHAPES_REMEMBERED = 256

Unpack = Callable[[bytearray, int], "tuple[bytes, ...]"]


def _head(level: int, kind: int, data_bytes: int) -> bytes:
    return CONTROL_HEADER.pack(_HEAD + data_bytes, level, kind)


def _space(data_bytes: int) -> int:
    return aligned(_HEAD + data_bytes)


class ReceivedLayout:
    """Name, stamp, local address, TTL, class, data. Without `headers`, no address and no class.

    `unpack(length)` gives a function from memory and place to
    ``name, head, seconds, nanoseconds, [head, info,] head, ttl, [head, class,] data``; the heads
    have to be `heads`.
    """

    def __init__(self, *, v4: bool, headers: bool, data_at: int) -> None:
        level = socket.SOL_IP if v4 else socket.IPPROTO_IPV6
        info_bytes, class_bytes = (12, 1) if v4 else (20, 4)
        name_bytes = 16 if v4 else 28
        stamp = (socket.SOL_SOCKET, stamps.SCM_TIMESTAMPING, _STAMP_BYTES)
        info = (level, stamps.IP_PKTINFO if v4 else stamps.IPV6_PKTINFO, info_bytes)
        ttl = (level, stamps.IP_TTL if v4 else stamps.IPV6_HOPLIMIT, 4)
        service = (level, stamps.IP_TOS if v4 else stamps.IPV6_TCLASS, class_bytes)
        parts = (stamp, info, ttl, service) if headers else (stamp, ttl)
        self.heads = tuple(_head(*part) for part in parts)
        self.control_bytes = sum(_space(part[2]) for part in parts)
        self._data_at = data_at
        fields = [f"@{name_bytes}s{NAME_BYTES - name_bytes}x", f"{_HEAD}sll{4 * LONG_BYTES}x"]
        for part in parts[1:]:
            content = {info: f"{info_bytes}s", ttl: "i", service: "B" if v4 else "i"}[part]
            padding = _space(part[2]) - _HEAD - part[2]
            fields.append(f"{_HEAD}s{content}{padding}x")
        self._format = "".join(fields)

    @functools.cached_property
    def _before_data(self) -> str:
        gap = self._data_at - struct.calcsize(self._format)
        return f"{self._format}{gap}x"

    def shape(self, length: int) -> struct.Struct:
        """The struct for data of this length."""
        return struct.Struct(f"{self._before_data}{length}s")


class StampLayout:
    """A stamp on the error queue: ``head, seconds, nanoseconds, head, origin, key``."""

    def __init__(self, *, v4: bool) -> None:
        level = socket.SOL_IP if v4 else socket.IPPROTO_IPV6
        kind = stamps.IP_RECVERR if v4 else stamps.IPV6_RECVERR
        error_bytes = 32 if v4 else 44  # struct sock_extended_err, struct sockaddr_in or _in6
        self.heads = (
            _head(socket.SOL_SOCKET, stamps.SCM_TIMESTAMPING, _STAMP_BYTES),
            _head(level, kind, error_bytes),
        )
        self.control_bytes = _space(_STAMP_BYTES) + _space(error_bytes)
        self.struct = struct.Struct(
            f"@{NAME_BYTES}x{_HEAD}sll{4 * LONG_BYTES}x{_HEAD}s4xB3x4xI{error_bytes - 16}x"
        )
