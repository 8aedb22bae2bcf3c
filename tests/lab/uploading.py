"""Uploads one after the other and captures what is on the wire meanwhile, for a test in a lab.

    python uploading.py JSON

The order: ``{"address", "port", "jobs": [{"options", "shots", "gap_ms"}]}``. Prints a list of
``{"samples": [sample, ...], "packets": [[unix_ns, outgoing, sequence, acknowledged, length,
local_port], ...]}``. The capture is a packet socket of its own, which sees what passes the device:
it shares nothing with the stamps of the probe but the clock.
"""

import asyncio
import socket
import struct
import sys
from typing import Any

import msgspec

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.table import probe_table

ALL_PACKETS, IPV4, TCP = 3, 0x0800, 6
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
OUTGOING = 4
HEADERS = 120
TIMEOUT_NS = 4_000_000_000


class Capture:
    """All TCP packets to and from one port, with the time at which they passed the device."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PACKETS))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setblocking(False)

    def read(self) -> list[tuple[int, bool, int, int, int, int]]:
        found: list[tuple[int, bool, int, int, int, int]] = []
        while True:
            try:
                data, messages, _, place = self._socket.recvmsg(HEADERS, 64)
            except BlockingIOError:
                return found
            packet = self._parse(data, place)
            if packet is not None and messages:
                seconds, nanoseconds = struct.unpack("@ll", messages[0][2])
                found.append((seconds * 1_000_000_000 + nanoseconds, *packet))

    def _parse(self, data: bytes, place: Any) -> tuple[bool, int, int, int, int] | None:
        if place[1] != IPV4 or len(data) < 40 or data[9] != TCP:
            return None
        header = (data[0] & 15) * 4
        total = int.from_bytes(data[2:4], "big")
        source, target, sequence, acknowledged, offset = struct.unpack_from("!HHIIB", data, header)
        outgoing = place[2] == OUTGOING
        if (target if outgoing else source) != self._port:
            return None
        length = total - header - (offset >> 4) * 4
        return outgoing, sequence, acknowledged, length, source if outgoing else target


async def upload(
    job: dict[str, Any], order: dict[str, Any], network: SystemNetwork
) -> dict[str, Any]:
    capture = Capture(order["port"])
    collector = Collector(network, SystemClock())
    probe = collector.open(probe_table()["upload"], job["options"])
    for seq in range(job.get("shots", 1)):
        shot = shot_at(order["address"], seq=seq, port=order["port"], timeout_ns=TIMEOUT_NS)
        if seq:
            await asyncio.sleep(job.get("gap_ms", 0) / 1000)
        probe.fire(shot)
        await probe.drain()
    probe.close()
    return {"samples": [sample for _, sample in collector.emitted], "packets": capture.read()}


async def main(order: dict[str, Any]) -> None:
    network = SystemNetwork()
    await asyncio.sleep(0.1)  # the kernel begins to stamp packets a moment after it is asked
    found = [await upload(job, order, network) for job in order["jobs"]]
    network.close()
    sys.stdout.buffer.write(msgspec.json.encode(found))


asyncio.run(main(msgspec.json.decode(sys.argv[1])))
