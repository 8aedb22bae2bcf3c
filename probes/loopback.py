"""Self-test of the kernel's packet stamps: UDP packets from one local socket to another."""

import asyncio
import socket
import time

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import LoopbackTest

WARM_UP_SECONDS = 0.05
"""The kernel begins to stamp a moment after it is asked to."""
WAIT_SECONDS = 0.05


async def test_loopback(
    sender: socket.socket, receiver: socket.socket, packets: int
) -> LoopbackTest:
    """Send `packets` one at a time; time each span by every clock that the kernel offers."""
    for sock in (sender, receiver):
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        stamps.switch_on(sock, stamps.DATAGRAM_STAMPS)
    sender.connect(receiver.getsockname())
    await asyncio.sleep(WARM_UP_SECONDS)
    both: list[int] = []
    receive: list[int] = []
    user: list[int] = []
    for _ in range(packets):
        before_unix, before = time.time_ns(), time.monotonic_ns()
        sender.send(b"pathbudget")
        messages = await _receive(receiver)
        if messages is None:
            continue
        user.append(time.monotonic_ns() - before)
        received = stamps.read_control(messages).stamp_unix_ns
        sent = _sent_stamp(sender)
        if received is not None:
            receive.append(received - before_unix)
            if sent is not None:
                both.append(received - sent)
    return LoopbackTest(tuple(both), tuple(receive), tuple(user))


async def _receive(receiver: socket.socket) -> stamps.ControlMessages | None:
    """Wait as a probe waits, through the loop. Other users' packets cannot come: 127.0.0.1."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(receiver, readable.set)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await readable.wait()
    except TimeoutError:
        return None
    finally:
        loop.remove_reader(receiver)
    return receiver.recvmsg(64, stamps.CONTROL_BYTES)[1]


def _sent_stamp(sender: socket.socket) -> int | None:
    try:
        messages = sender.recvmsg(64, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE)[1]
    except BlockingIOError:
        return None
    return stamps.read_control(messages).stamp_unix_ns
