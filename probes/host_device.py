"""What a network device does to a packet before the kernel can stamp it (ethtool ioctls)."""

import ctypes
import fcntl
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pathbudget.probes.host_cpu import SYS, read_number
from pathbudget.probes.host_route import egress_device

SIOCETHTOOL = 0x8946
ETHTOOL_GCOALESCE = 0x0E
ETHTOOL_GFLAGS = 0x25
ETHTOOL_GGRO = 0x2B
ETHTOOL_GET_TS_INFO = 0x41
FLAG_LRO = 1 << 15
TX_HARDWARE, RX_HARDWARE, RAW_HARDWARE = 1 << 0, 1 << 2, 1 << 6

ANYWHERE = ("192.0.2.1", "2001:db8::1")
"""Addresses of documentation (RFC 5737, RFC 3849): only a default route leads there."""

_COALESCE_WORDS = 23
_TIMESTAMP_WORDS = 11


class Device(msgspec.Struct, frozen=True):
    """One network device; None where its driver does not say."""

    name: str
    coalescing_ns: int | None = None
    """Longest time before it interrupts: `rx-usecs`, or `rx-usecs-high` where adaptive."""
    flush_ns: int | None = None
    """How long the kernel may hold packets back to join them (`gro_flush_timeout`)."""
    receive_offload: bool | None = None
    """Whether it joins packets before the kernel stamps them (GRO or LRO)."""
    hardware_stamps: bool | None = None
    """Whether it can stamp packets itself. We use the kernel's stamps in any case."""

    @property
    def hold_ns(self) -> int | None:
        """Longest time that a packet may wait before the kernel stamps it."""
        if self.coalescing_ns is None and not self.flush_ns:
            return None
        return (self.coalescing_ns or 0) + (self.flush_ns or 0)


def read_devices(destinations: Sequence[str] = ANYWHERE) -> tuple[Device, ...]:
    """The devices through which packets to `destinations` would leave. Sends nothing."""
    found = (egress_device(address) for address in destinations)
    return tuple(read_device(name) for name in dict.fromkeys(found) if name)


def read_device(name: str, sys: Path = SYS) -> Device:
    """Ask the driver of one device. Never raises; takes microseconds."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return Device(
            name=name,
            coalescing_ns=_coalescing_ns(sock, name),
            flush_ns=read_number(sys / "class" / "net" / name / "gro_flush_timeout"),
            receive_offload=_receive_offload(sock, name),
            hardware_stamps=_hardware_stamps(sock, name),
        )


def _ask(sock: socket.socket, name: str, command: int, words: int) -> tuple[int, ...] | None:
    """One ethtool command: a structure of 32-bit words, the first of which is the command."""
    answer = ctypes.create_string_buffer(struct.pack("I", command), words * 4)
    try:
        request = struct.pack("16sP16x", name.encode(), ctypes.addressof(answer))
        fcntl.ioctl(sock, SIOCETHTOOL, request)
    except (OSError, UnicodeError):
        return None
    return struct.unpack(f"{words}I", answer.raw)


def _coalescing_ns(sock: socket.socket, name: str) -> int | None:
    longest = longest_coalescing_us(_ask(sock, name, ETHTOOL_GCOALESCE, _COALESCE_WORDS))
    return None if longest is None else longest * 1_000


def longest_coalescing_us(words: tuple[int, ...] | None) -> int | None:
    """`struct ethtool_coalesce`: rx_coalesce_usecs is word 1, use_adaptive_rx 10, and
    rx_coalesce_usecs_high 18.
    """
    if words is None:
        return None
    return max(words[1], words[18]) if words[10] else words[1]


def _receive_offload(sock: socket.socket, name: str) -> bool | None:
    gro = _ask(sock, name, ETHTOOL_GGRO, 2)
    flags = _ask(sock, name, ETHTOOL_GFLAGS, 2)
    if gro is None and flags is None:
        return None
    return bool(gro and gro[1]) or bool(flags and flags[1] & FLAG_LRO)


def _hardware_stamps(sock: socket.socket, name: str) -> bool | None:
    words = _ask(sock, name, ETHTOOL_GET_TS_INFO, _TIMESTAMP_WORDS)
    needed = TX_HARDWARE | RX_HARDWARE | RAW_HARDWARE
    return None if words is None else words[1] & needed == needed
