"""Receives the frames of every interface of a namespace from one memory-mapped ring.

AF_PACKET with TPACKET_V2 (Documentation/networking/packet_mmap.rst in the Linux sources): one
descriptor for any number of interfaces, no system call per frame, and the kernel's own time stamp.
"""

import mmap
import socket
import struct
from collections.abc import Callable, Iterator

_SOL_PACKET = 263
_PACKET_RX_RING = 5
_PACKET_STATISTICS = 6
_PACKET_VERSION = 10
_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_TPACKET_V2 = 1
_ETH_P_ALL = 3

_FRAME = 2048
_FRAMES = 4096
_BLOCK = _FRAME * 32
_STATUS_USER = 1
_ADDRESS = 32
"""Offset of the link-layer address behind the aligned tpacket2_hdr."""


class Ring:
    """Frames as (interface index, kernel stamp in ns of CLOCK_REALTIME, octets)."""

    def __init__(self) -> None:
        """Listens to all interfaces of the namespace that the calling thread is in."""
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self.socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        blocks = _FRAMES * _FRAME // _BLOCK
        request = struct.pack("IIII", _BLOCK, blocks, _FRAME, _FRAMES)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = mmap.mmap(self.socket.fileno(), _FRAME * _FRAMES)
        self._octets = memoryview(self._memory)
        self._words = self._octets.cast("I")
        self._next = 0
        self._drops = 0

    def frames(self, limit: int) -> Iterator[tuple[int, int, bytes]]:
        """Up to `limit` frames that are there now; never waits."""
        header = struct.Struct("4x4xIHHII").unpack_from
        words, octets = self._words, self._octets
        for _ in range(limit):
            start = self._next * _FRAME
            word = start // 4
            if not words[word] & _STATUS_USER:
                return
            length, link, _network, seconds, nanoseconds = header(octets, start)
            interface = words[word + (_ADDRESS + 4) // 4]
            frame = bytes(octets[start + link : start + link + length])
            words[word] = 0
            self._next = (self._next + 1) % _FRAMES
            yield interface, seconds * 1_000_000_000 + nanoseconds, frame

    def drops(self) -> int:
        """Frames so far that found the ring full."""
        statistics = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._drops += struct.unpack("II", statistics)[1]
        return self._drops


def sender(interface: int) -> Callable[[bytes], int]:
    """A function that puts a frame on one interface, past its queue. It raises OSError."""
    sending = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sending.bind((socket.if_indextoname(interface), 0))
    sending.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    sending.setblocking(False)
    return sending.send
