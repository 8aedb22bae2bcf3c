"""What was on the wire, by somebody else: tcpdump with nanosecond stamps, and a reader of it."""

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from path import DEVICE, inside

NANOSECOND_MAGIC = 0xA1B23C4D
RAW_IP, ETHERNET, LINUX_COOKED_2 = 101, 1, 276


class Packet(NamedTuple):
    """One IP packet of a capture: when, between whom, what is behind the IP header."""

    unix_ns: int
    source: str
    destination: str
    protocol: int
    payload: bytes


class Capture:
    """Everything on the device of a namespace while the block runs."""

    def __init__(self, namespace: str, file: Path) -> None:
        self._namespace, self._file = namespace, file
        self.dropped = 0

    def __enter__(self) -> Self:
        command = ["tcpdump", "-i", DEVICE, "-w", str(self._file), "-s", "192", "-B", "65536",
                   "--time-stamp-precision=nano", "-n", "-U", "-Z", "root"]  # fmt: skip
        self._process = subprocess.Popen(
            inside(self._namespace, *command), stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "listening on" in line:
                break
        time.sleep(0.3)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        time.sleep(1.5)  # a block of the ring is handed over after a second at the latest
        self._process.terminate()
        _, said = self._process.communicate()
        for line in said.splitlines():
            if "dropped by kernel" in line:
                self.dropped = int(line.split()[0])

    def packets(self) -> Iterator[Packet]:
        """In the order of the file."""
        data = self._file.read_bytes()
        order = "<" if data[:4] == struct.pack("<I", NANOSECOND_MAGIC) else ">"
        (magic,) = struct.unpack_from(order + "I", data)
        if magic != NANOSECOND_MAGIC:
            raise ValueError(f"{self._file}: no nanosecond capture")
        (link,) = struct.unpack_from(order + "I", data, 20)
        skip = {RAW_IP: 0, ETHERNET: 14, LINUX_COOKED_2: 20}[link & 0xFFFF]
        header = struct.Struct(order + "IIII")
        at = 24
        while at + 16 <= len(data):
            seconds, nanoseconds, kept, _ = header.unpack_from(data, at)
            at += 16
            packet = _ip(seconds * 1_000_000_000 + nanoseconds, data[at + skip : at + kept])
            at += kept
            if packet is not None:
                yield packet


def _ip(unix_ns: int, data: bytes) -> Packet | None:
    if len(data) >= 20 and data[0] >> 4 == 4:
        start = (data[0] & 15) * 4
        there = (data[12:16], data[16:20])
        source, destination = (socket.inet_ntop(socket.AF_INET, one) for one in there)
        return Packet(unix_ns, source, destination, data[9], data[start:])
    if len(data) >= 40 and data[0] >> 4 == 6:
        there = (data[8:24], data[24:40])
        source, destination = (socket.inet_ntop(socket.AF_INET6, one) for one in there)
        return Packet(unix_ns, source, destination, data[6], data[40:])
    return None
