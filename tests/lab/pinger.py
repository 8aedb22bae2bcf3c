"""Sends ICMP echoes to several addresses and prints when each left and came back, as JSON.

``python pinger.py '{"addresses": [...], "count": 100, "interval_s": 0.01}'``: `count` echoes to
each address, one every `interval_s` over all of them, at fixed times with a random start. A tool of
the tests: it shares no code with the product.

Output: {"rtt_ms": {address: [... or null for no answer]}, "unsure": n}. Both stamps are the
kernel's (SO_TIMESTAMPING); an answered echo that lacks one is left out and counted.
"""

import json
import os
import random
import select
import socket
import struct
import sys
import time

SO_TIMESTAMPING = 37
TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, OPT_ID, OPT_TSONLY = 1 << 1, 1 << 3, 1 << 4, 1 << 7, 1 << 11
FLAGS = TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY
RECVERR = {(socket.SOL_IP, 11), (socket.IPPROTO_IPV6, 25)}
LINGER_S = 1.5
HEADER = struct.Struct("!BBHHH")
STAMP = struct.Struct("qq")
NONE = bytes(16)
EXTENDED_ERROR = struct.Struct("IBBBBII")


class Pinger:
    def __init__(self, order: dict[str, object]) -> None:
        self.addresses = [str(address) for address in order["addresses"]]  # type: ignore[attr-defined]
        self.count = int(str(order["count"]))
        self.interval = float(str(order["interval_s"]))
        self.size = int(str(order.get("octets", 56)))
        self.linger = float(str(order.get("linger_s", LINGER_S)))
        six = ":" in self.addresses[0]
        self.kind = 128 if six else 8
        family = socket.AF_INET6 if six else socket.AF_INET
        protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
        self.socket = socket.socket(family, socket.SOCK_DGRAM, protocol)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, FLAGS)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.setblocking(False)
        self.token = os.urandom(8)
        self.sent = 0
        self.came: dict[int, int] = {}
        self.left: dict[int, int] = {}

    def send(self, number: int) -> None:
        data = (self.token + struct.pack("!Q", number)).ljust(self.size, b"\0")
        packet = HEADER.pack(self.kind, 0, 0, 0, number & 0xFFFF) + data
        self.socket.sendto(packet, (self.addresses[number % len(self.addresses)], 0))
        self.sent += 1

    def departures(self) -> None:
        while True:
            try:
                _, ancillary, _, _ = self.socket.recvmsg(64, 256, socket.MSG_ERRQUEUE)
            except BlockingIOError:
                return
            number = stamp = -1
            for level, kind, octets in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
                    seconds, nanoseconds = STAMP.unpack_from(octets)
                    stamp = seconds * 1_000_000_000 + nanoseconds
                elif (level, kind) in RECVERR:
                    number = EXTENDED_ERROR.unpack_from(octets)[6]
            self.left[number] = stamp

    def receive(self) -> None:
        self.departures()
        while True:
            try:
                octets, ancillary, _, _ = self.socket.recvmsg(2048, 256)
            except BlockingIOError:
                return
            if octets[8:16] == self.token:
                (number,) = struct.unpack("!Q", octets[16:24])
                # The first packets after switching stamps on may come without one.
                seconds, nanoseconds = STAMP.unpack_from(ancillary[0][2] if ancillary else NONE)
                self.came.setdefault(number, seconds * 1_000_000_000 + nanoseconds)

    def run(self) -> None:
        total = self.count * len(self.addresses)
        start = time.monotonic() + random.random() * self.interval
        number = 0
        end = start + total * self.interval + self.linger
        while (now := time.monotonic()) < end and len(self.came) < total:
            if number < total and now >= start + number * self.interval:
                self.send(number)
                number += 1
                continue
            until = start + number * self.interval if number < total else end
            if select.select([self.socket], [], [], max(0.0, until - now))[0]:
                self.receive()

    def result(self) -> dict[str, object]:
        self.departures()
        unsure = 0
        rtt: dict[str, list[float | None]] = {address: [] for address in self.addresses}
        for number in range(self.sent):
            left, came = self.left.get(number), self.came.get(number)
            address = self.addresses[number % len(self.addresses)]
            if came is None:
                rtt[address].append(None)
            elif left is None or not came:
                unsure += 1
            else:
                rtt[address].append((came - left) / 1e6)
        return {"rtt_ms": rtt, "unsure": unsure}


if __name__ == "__main__":
    pinger = Pinger(json.loads(sys.argv[1]))
    pinger.run()
    sys.stdout.write(json.dumps(pinger.result()))
