"""Answers that real time daemons gave, and fake daemons that give them again."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathbudget.probes.time_daemons import Places

Answer = Callable[[bytes], list[bytes]]
"""What a fake daemon sends back for one request."""


@pytest.fixture(scope="session")
def recorded() -> dict[str, list[bytes]]:
    """Recorded replies by name: chrony (sequence 0xdeadbeef), ntpsec (7), ptp4l (port 0x5151)."""
    raw = json.loads(Path(__file__).with_name("recorded.json").read_text())
    return {name: [bytes.fromhex(one) for one in entry["bytes"]] for name, entry in raw.items()}


@pytest.fixture
def chronyd(recorded: dict[str, list[bytes]]) -> Callable[[str], Answer]:
    """Give a recorded answer of chronyd under the sequence number of the request."""

    def answer_with(name: str) -> Answer:
        reply = recorded[name][0]
        return lambda request: [reply[:16] + request[8:12] + reply[20:]]

    return answer_with


@pytest.fixture
def ntpd(recorded: dict[str, list[bytes]]) -> Callable[[str], Answer]:
    """The same for ntpd."""

    def answer_with(name: str) -> Answer:
        reply = recorded[name][0]
        return lambda request: [reply[:2] + request[2:4] + reply[4:]]

    return answer_with


@pytest.fixture
def ptp4l(recorded: dict[str, list[bytes]]) -> Callable[..., Answer]:
    """The same for ptp4l, which hears only its own domain."""

    def answer_with(name: str, domain: int = 0) -> Answer:
        replies = {struct.unpack_from(">H", one, 52)[0]: one for one in recorded[name]}

        def answer(request: bytes) -> list[bytes]:
            if request[4] != domain:
                return []
            reply = replies[struct.unpack_from(">H", request, 52)[0]]
            return [reply[:4] + bytes([domain]) + reply[5:42] + request[28:30] + reply[44:]]

        return answer

    return answer_with


Serve = Callable[..., int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a fake daemon on a path, or on a port of 127.0.0.1 that is returned."""
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def work(sock: socket.socket, answer: Answer) -> None:
        while True:
            request, sender = sock.recvfrom(2048)
            if request == b"stop":
                return
            with contextlib.suppress(OSError):  # whoever asked has gone
                for reply in answer(request):
                    sock.sendto(reply, sender)

    def start(answer: Answer, path: Path | None = None) -> int:
        sock = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(str(path) if path else ("127.0.0.1", 0))
        sockets.append(sock)
        threads.append(threading.Thread(target=work, args=(sock, answer)))
        threads[-1].start()
        return 0 if path else int(sock.getsockname()[1])

    yield start
    for sock, thread in zip(sockets, threads, strict=True):
        with socket.socket(sock.family, socket.SOCK_DGRAM) as other:
            other.sendto(b"stop", sock.getsockname())
        thread.join()
        sock.close()


@pytest.fixture
def closed_port() -> int:
    """A UDP port of 127.0.0.1 (and ::1) that nobody listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def nowhere(tmp_path: Path, closed_port: int) -> Places:
    """No daemon at all."""
    missing = tmp_path / "missing" / "daemon.sock"
    return Places(missing, closed_port, closed_port, (missing,))
