"""A send stamp is told before the answer to what was sent, however late it comes to be read."""

import errno
import select
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.tcp_reactor import TcpReactor
from pathbudget.probes.tcp_socket import StampedTcpSocket

ESTABLISHED = bytes([1]) + bytes(255)
LAST_BYTE = 2
STAMP = (socket.SOL_SOCKET, stamps.SCM_TIMESTAMPING, struct.pack("@ll", 1_700_000_000, 5))
KEY = (
    socket.SOL_IP,
    stamps.IP_RECVERR,
    struct.pack("@IBBBBII", 0, stamps.ORIGIN_TIMESTAMPING, 0, 0, 0, 0, LAST_BYTE),
)


class Socket:
    """The stamp appears in the error queue between a look at it and the read of the answer."""

    def __init__(self) -> None:
        self.stamped = False
        self.answers = [b"answer"]

    def fileno(self) -> int:
        return 99

    def getsockopt(self, *_: int) -> Any:
        return ESTABLISHED

    def setsockopt(self, *_: object) -> None:
        pass

    def send(self, data: bytes, *_: int) -> int:
        return len(data)

    def recvmsg(
        self, _size: int, _control: int, flags: int = 0
    ) -> tuple[bytes, list[Any], int, None]:
        if flags & stamps.MSG_ERRQUEUE:
            if not self.stamped:
                raise BlockingIOError(errno.EAGAIN, "nothing")
            self.stamped = False
            return b"", [STAMP, KEY], 0, None
        if not self.answers:
            raise BlockingIOError(errno.EAGAIN, "nothing")
        self.stamped = True
        return self.answers.pop(), [STAMP], 0, None


class Reactor:
    ready: Callable[[int], None]

    def add(self, _: int, ready: Callable[[int], None]) -> None:
        self.ready = ready

    def watch(self, *_: int) -> None:
        pass


class Listener:
    def __init__(self) -> None:
        self.told: list[str] = []

    def connected(self) -> None:
        self.told.append("connected")

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        raise AssertionError((error, icmp))

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        self.told.append(f"sent {last_byte}")

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        self.told.append(f"received {len(data)}")


def test_the_stamp_is_told_before_the_answer() -> None:
    reactor, listener = Reactor(), Listener()
    channel = StampedTcpSocket(
        cast("socket.socket", Socket()), 0, listener, cast("TcpReactor", reactor), lambda _: None
    )
    reactor.ready(select.EPOLLOUT)
    channel.send(b"ask")
    reactor.ready(select.EPOLLIN)
    assert listener.told == ["connected", f"sent {LAST_BYTE}", "received 6"]
