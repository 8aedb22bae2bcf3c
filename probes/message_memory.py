"""Memory that sendmmsg(2) and recvmmsg(2) work on, laid out once and used for ever.

    headers   one struct mmsghdr per slot
    vectors   one struct iovec per slot
    slots     per slot: socket address | control messages | data

Widths and padding are those of this system's C (32 or 64 bit). The kernel overwrites lengths and
flags in the headers, so a template is copied back over those that were used.
"""

import ctypes
import functools
import mmap
import struct
from collections.abc import Callable, Iterator

HEADER = struct.Struct("@PIPNPNi0PI0P")
"""struct msghdr (name, length, vectors, number, control, length, flags), length of the message."""
VECTOR = struct.Struct("@PN")
CONTROL_HEADER = struct.Struct("@Nii")
"""struct cmsghdr: its length with this header, level, type."""
LONG_BYTES = struct.calcsize("@l")
_POINTER_BYTES, _SIZE_BYTES = struct.calcsize("@P"), struct.calcsize("@N")
LENGTHS = struct.Struct(f"@{_POINTER_BYTES}xI0P{2 * _POINTER_BYTES + _SIZE_BYTES}xN4x0PI0P")
"""Of a `HEADER` only the lengths that the kernel writes: of name, control messages and data."""
NAME_BYTES = 32
"""Room for a struct sockaddr_in6 (28 bytes)."""
CONTROL_BYTES = 256

MultiCall = Callable[..., int]


@functools.cache
def multi_calls() -> tuple[MultiCall, MultiCall] | None:
    """sendmmsg and recvmmsg of this system's C library; None where it has none."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        send, receive = libc.sendmmsg, libc.recvmmsg
    except (AttributeError, OSError):
        return None
    send.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
    receive.argtypes = (*send.argtypes, ctypes.c_void_p)
    send.restype = receive.restype = ctypes.c_int
    return send, receive


def aligned(size: int) -> int:
    """As CMSG_ALIGN of C."""
    return (size + LONG_BYTES - 1) & -LONG_BYTES


def padded_control(messages: tuple[tuple[int, int, bytes], ...]) -> bytes:
    """Control messages as the kernel takes them."""
    parts: list[bytes] = []
    for level, kind, data in messages:
        size = CONTROL_HEADER.size + len(data)
        parts += (CONTROL_HEADER.pack(size, level, kind), data, bytes(aligned(size) - size))
    return b"".join(parts)


def walk_control(control: bytes) -> list[tuple[int, int, bytes]]:
    """Control messages as the kernel gives them; what is cut short at the end is left out."""
    messages: list[tuple[int, int, bytes]] = []
    start = 0
    while start + CONTROL_HEADER.size <= len(control):
        size, level, kind = CONTROL_HEADER.unpack_from(control, start)
        if size < CONTROL_HEADER.size or start + size > len(control):
            break
        messages.append((level, kind, control[start + CONTROL_HEADER.size : start + size]))
        start += aligned(size)
    return messages


class MessageMemory:
    """`count` slots for messages of up to `data_bytes`; `address` is that of the first header."""

    def __init__(self, count: int, data_bytes: int, *, control_bytes: int = CONTROL_BYTES) -> None:
        self.count = count
        self.data_bytes = data_bytes
        self.control_at = NAME_BYTES
        self.data_at = NAME_BYTES + aligned(control_bytes)
        self.stride = (self.data_at + data_bytes + 63) & -64
        # Pages of it that no packet has touched take no memory.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.slots = mmap.mmap(-1, count * self.stride, flags=private)
        self.vectors = bytearray(count * VECTOR.size)
        self.headers = bytearray(count * HEADER.size)
        # The exports below keep the addresses valid for as long as this object lives.
        self._exports = [
            ctypes.c_char.from_buffer(each) for each in (self.slots, self.vectors, self.headers)
        ]
        self._slots, self._vectors, self.address = map(ctypes.addressof, self._exports)
        self._lay_out(control_bytes)
        self._template = bytes(self.headers)

    def _lay_out(self, control_bytes: int) -> None:
        """All slots with room for the longest name, control messages and data; at once, because who
        opens a socket per connection pays for it every time.
        """
        places = range(self._slots, self._slots + self.count * self.stride, self.stride)
        self.headers[:] = b"".join(
            HEADER.pack(
                place,
                NAME_BYTES,
                self._vectors + slot * VECTOR.size,
                1,
                place + self.control_at if control_bytes else 0,
                control_bytes,
                0,
                0,
            )
            for slot, place in enumerate(places)
        )
        self.vectors[:] = b"".join(
            VECTOR.pack(place + self.data_at, self.data_bytes) for place in places
        )

    def set_header(self, slot: int, name_bytes: int, control_bytes: int) -> None:
        """How long name and control messages of a slot are."""
        place = self._slots + slot * self.stride
        HEADER.pack_into(
            self.headers,
            slot * HEADER.size,
            place,
            name_bytes,
            self._vectors + slot * VECTOR.size,
            1,
            place + self.control_at if control_bytes else 0,
            control_bytes,
            0,
            0,
        )

    def set_length(self, slot: int, data_bytes: int) -> None:
        """How long the data of a slot are."""
        place = self._slots + slot * self.stride + self.data_at
        VECTOR.pack_into(self.vectors, slot * VECTOR.size, place, data_bytes)

    def reset(self, count: int) -> None:
        """Make the first `count` headers as they were in the beginning."""
        size = count * HEADER.size
        self.headers[:size] = self._template[:size]

    def filled(self, count: int) -> Iterator[tuple[int, ...]]:
        """The `LENGTHS` of the first `count` messages."""
        return LENGTHS.iter_unpack(memoryview(self.headers)[: count * HEADER.size])

    def name(self, place: int, length: int) -> bytes:
        """The socket address of the slot that begins at `place`."""
        return self.slots[place : place + length]

    def control(self, place: int, length: int) -> bytes:
        """The control messages of the slot that begins at `place`."""
        start = place + self.control_at
        return self.slots[start : start + length]

    def data(self, place: int, length: int) -> bytes:
        """The data of the slot that begins at `place`."""
        start = place + self.data_at
        return self.slots[start : start + length]
