"""Many packets per system call: `packets.Packets` on sendmmsg(2) and recvmmsg(2).

What the kernel writes is read with one precompiled struct per packet, laid out as the control
messages come when all is as usual; anything else is walked message by message. A stamp that is
not there is None.
"""

import ctypes
import functools
import os
import socket
import struct
import threading
from collections.abc import Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.message_layouts import SHAPES_REMEMBERED, ReceivedLayout, StampLayout
from pathbudget.probes.message_memory import (
    MessageMemory,
    multi_calls,
    padded_control,
    walk_control,
)
from pathbudget.probes.packets import (
    AGAIN,
    GONE,
    QUOTED_BYTES,
    READS_PER_WAKE,
    Ancillary,
    Packet,
    Packets,
    Received,
    SinglePackets,
    SocketAddress,
    sort_error,
)

SLOTS = 128
MSG_DONTWAIT = 0x40
NAMES_REMEMBERED = 16_384
_SECOND_NS = 1_000_000_000
_NAME_V4 = struct.Struct("@HH4s8x")
_NAME_V6 = struct.Struct("@HHI16sI")


def open_packets(sock: socket.socket, data_bytes: int, *, headers: bool) -> Packets:
    """Many packets per call where this system can, one per call where it cannot.

    `headers` is whether the socket reports traffic class and local address (`hear_headers`).
    """
    if multi_calls() is None:
        return SinglePackets(sock, data_bytes)
    return BatchedPackets(sock, data_bytes, headers=headers)


class BatchedPackets:
    """See `packets.Packets`. Needs what `message_memory.multi_calls` finds."""

    def __init__(self, sock: socket.socket, data_bytes: int, *, headers: bool) -> None:
        calls = multi_calls()
        assert calls is not None
        self._sendmmsg, self._recvmmsg = calls
        self._socket = sock
        self._one_by_one = SinglePackets(sock, data_bytes)
        self._data_bytes = data_bytes
        self._outbox: _Outbox | None = None
        v4 = sock.family == socket.AF_INET
        self._headers = headers
        data_at = _boxes.of(data_bytes).data_at
        self._layout = ReceivedLayout(v4=v4, headers=headers, data_at=data_at)
        self._stamp_layout = StampLayout(v4=v4)
        self._shapes: dict[int, struct.Struct] = {}

    def send(self, packets: Sequence[Packet], start: int) -> int:
        """See `Packets.send`."""
        count = min(len(packets) - start, SLOTS)
        if count == 1:
            return self._one_by_one.send(packets, start)
        outbox = self._outbox = self._outbox or _Outbox(self._data_bytes)
        count = outbox.fill(packets, start, count)
        if not count:  # longer than any packet: the kernel will say so
            return self._one_by_one.send(packets, start)
        sent = self._sendmmsg(self._socket.fileno(), outbox.memory.address, count, MSG_DONTWAIT)
        if sent > 0:
            return sent
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

    def receive(self, into: list[Received], most: int = READS_PER_WAKE) -> None:
        """See `Packets.receive`."""
        take = self._take_with_headers if self._headers else self._take_plain
        inbox = _boxes.of(self._data_bytes)
        slots = min(most, SLOTS)
        for _ in range(most // slots):
            count = self._read(inbox, 0, slots)
            if count:
                take(inbox, count, into)
                inbox.reset(count)
            if count < slots:
                return

    def receive_errors(self, sent: list[tuple[int, int]], errors: list[QueuedError]) -> None:
        """See `Packets.receive_errors`."""
        box = _boxes.of(QUOTED_BYTES)
        for _ in range(READS_PER_WAKE // SLOTS):
            count = self._read(box, stamps.MSG_ERRQUEUE)
            if count:
                self._take_errors(box, count, sent, errors)
                box.reset(count)
            if count < SLOTS:
                return

    def _read(self, memory: MessageMemory, flags: int, slots: int = SLOTS) -> int:
        """Fill the slots; how many of them were."""
        for _ in range(SLOTS):
            count: int = self._recvmmsg(
                self._socket.fileno(), memory.address, slots, MSG_DONTWAIT | flags, None
            )
            if count >= 0:
                return count
            number = ctypes.get_errno()
            if number in AGAIN or number in GONE:
                return 0
        return 0

    def _take_plain(self, memory: MessageMemory, count: int, into: list[Received]) -> None:
        layout = self._layout
        slots, stride, usual = memory.slots, memory.stride, layout.control_bytes
        stamp_head, ttl_head = layout.heads
        place = 0
        for named, control, length in memory.filled(count):
            if control == usual:
                shape = self._shapes.get(length) or self._shape(length)
                name, first, seconds, rest, second, ttl, data = shape.unpack_from(slots, place)
                if first == stamp_head and second == ttl_head:
                    sender, port = read_name(name)
                    stamp = seconds * _SECOND_NS + rest or None
                    into.append((data, sender, port, "", ttl, None, stamp))
                    place += stride
                    continue
            into.append(_unusual(memory, place, named, control, length))
            place += stride

    def _take_with_headers(self, memory: MessageMemory, count: int, into: list[Received]) -> None:
        layout = self._layout
        slots, stride, usual = memory.slots, memory.stride, layout.control_bytes
        heads = layout.heads
        place = 0
        for named, control, length in memory.filled(count):
            if control == usual:
                shape = self._shapes.get(length) or self._shape(length)
                name, a, seconds, rest, b, info, c, ttl, d, service, data = shape.unpack_from(
                    slots, place
                )
                if (a, b, c, d) == heads:
                    sender, port = read_name(name)
                    stamp = seconds * _SECOND_NS + rest or None
                    into.append((data, sender, port, _read_local(info), ttl, service, stamp))
                    place += stride
                    continue
            into.append(_unusual(memory, place, named, control, length))
            place += stride

    def _take_errors(
        self,
        memory: MessageMemory,
        count: int,
        sent: list[tuple[int, int]],
        errors: list[QueuedError],
    ) -> None:
        layout = self._stamp_layout
        slots, stride, usual = memory.slots, memory.stride, layout.control_bytes
        unpack = layout.struct.unpack_from
        stamp_head, error_head = layout.heads
        place = 0
        for named, control, length in memory.filled(count):
            if control == usual:
                first, seconds, rest, second, origin, key = unpack(slots, place)
                ours = origin == stamps.ORIGIN_TIMESTAMPING
                if ours and first == stamp_head and second == error_head and (seconds or rest):
                    sent.append((key, seconds * _SECOND_NS + rest))
                    place += stride
                    continue
            messages = walk_control(memory.control(place, control))
            destination, _ = read_name(memory.name(place, named))
            quoted = memory.data(place, length)
            sort_error(stamps.read_control(messages), quoted, destination, sent, errors)
            place += stride

    def _shape(self, length: int) -> struct.Struct:
        if len(self._shapes) >= SHAPES_REMEMBERED:
            self._shapes.clear()
        shape = self._shapes[length] = self._layout.shape(length)
        return shape


def _unusual(memory: MessageMemory, place: int, named: int, control: int, length: int) -> Received:
    messages = walk_control(memory.control(place, control))
    stamp, ttl, _, _, service, local = stamps.read_control(messages)
    sender, port = read_name(memory.name(place, named))
    return memory.data(place, length), sender, port, local, ttl, service, stamp


class _Boxes(threading.local):
    """Where packets are read into, by size: one for all sockets of a thread. It is empty again
    before the call that filled it returns, and a socket per connection could not pay for its own.
    """

    def __init__(self) -> None:
        self._made: dict[int, MessageMemory] = {}

    def of(self, data_bytes: int) -> MessageMemory:
        """The slots for packets of up to `data_bytes`."""
        made = self._made.get(data_bytes)
        if made is None:
            made = self._made[data_bytes] = MessageMemory(SLOTS, data_bytes)
        return made


_boxes = _Boxes()


class _Outbox:
    """Packets on their way out."""

    def __init__(self, data_bytes: int) -> None:
        self.memory = MessageMemory(SLOTS, data_bytes)
        self._shapes: list[tuple[int, int, Ancillary]] = [(-1, -1, ())] * SLOTS

    def fill(self, packets: Sequence[Packet], start: int, count: int) -> int:
        """Lay packets into the slots, up to one that is too long; how many."""
        memory, shapes = self.memory, self._shapes
        slots, stride, data_at = memory.slots, memory.stride, memory.data_at
        place = 0
        for slot in range(count):
            payload, destination, ancillary = packets[start + slot]
            length = len(payload)
            if length > memory.data_bytes:
                return slot
            name = write_name(destination)
            slots[place : place + len(name)] = name
            slots[place + data_at : place + data_at + length] = payload
            shape = (len(name), length, ancillary)
            if shape != shapes[slot]:
                shapes[slot] = shape
                self._reshape(slot, place, shape)
            place += stride
        return count

    def _reshape(self, slot: int, place: int, shape: tuple[int, int, Ancillary]) -> None:
        name_bytes, data_bytes, ancillary = shape
        memory = self.memory
        control = padded_control(ancillary)
        start = place + memory.control_at
        memory.slots[start : start + len(control)] = control
        memory.set_header(slot, name_bytes, len(control))
        memory.set_length(slot, data_bytes)


@functools.lru_cache(NAMES_REMEMBERED)
def write_name(address: SocketAddress) -> bytes:
    """A struct sockaddr. Raises OSError for what is no address."""
    port = socket.htons(address[1])
    if ":" not in address[0]:
        return _NAME_V4.pack(socket.AF_INET, port, socket.inet_pton(socket.AF_INET, address[0]))
    host, _, _ = address[0].partition("%")
    flow, scope = (address[2], address[3]) if len(address) == 4 else (0, 0)
    raw = socket.inet_pton(socket.AF_INET6, host)
    return _NAME_V6.pack(socket.AF_INET6, port, socket.htonl(flow), raw, scope)


@functools.lru_cache(NAMES_REMEMBERED)
def read_name(raw: bytes) -> tuple[str, int]:
    """Address and port of a struct sockaddr, as Python's socket module writes them."""
    if len(raw) < _NAME_V4.size:
        return "", 0
    family, port = struct.unpack_from("@HH", raw)
    if family == socket.AF_INET:
        return socket.inet_ntop(family, raw[4:8]), socket.ntohs(port)
    if family != socket.AF_INET6 or len(raw) < _NAME_V6.size:
        return "", 0
    _, _, _, host, scope = _NAME_V6.unpack_from(raw)
    text = socket.inet_ntop(family, host)
    return (f"{text}%{_interface(scope)}" if scope else text), socket.ntohs(port)


def _interface(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return str(index)


@functools.lru_cache(NAMES_REMEMBERED)
def _read_local(info: bytes) -> str:
    return stamps.read_local(info)
