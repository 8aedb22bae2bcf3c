"""Servers that mean no good, on real sockets: the deadline holds, and nothing is believed."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Generator

import dns.flags
import dns.message
import pytest

from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import FailureKind

HERE = "127.0.0.1"
TIMEOUT_NS = 400_000_000
LONG_NS = 4_000_000_000
"""For what ends by itself, on a busy host too."""
LATEST_SECONDS = 20.0
"""Far beyond any deadline here: the host may be busy."""
Behaviour = Callable[[socket.socket, bytes], None]


def no_answer(question: bytes) -> bytes:
    """A message of a server, with another number."""
    made = dns.message.make_response(dns.message.from_wire(question))
    made.id ^= 1
    return made.to_wire()


def cut(question: bytes) -> bytes:
    """The right answer, cut short."""
    made = dns.message.make_response(dns.message.from_wire(question))
    made.flags |= dns.flags.TC
    return made.to_wire()


def framed(wire: bytes) -> bytes:
    return len(wire).to_bytes(2, "big") + wire


def endless_frames(connection: socket.socket, question: bytes) -> None:
    wire = framed(no_answer(question))
    while True:
        connection.sendall(wire)


def endless_bytes(connection: socket.socket, question: bytes) -> None:
    del question
    while True:
        connection.sendall(b"\xff" * 65_536)


def slowly(connection: socket.socket, question: bytes) -> None:
    """A true answer, an octet at a time, never whole before the deadline."""
    del question
    while True:
        connection.sendall(b"\x40")
        time.sleep(0.02)


def cut_for_ever(connection: socket.socket, question: bytes) -> None:
    connection.sendall(framed(cut(question)))
    connection.recv(100)


def empty_frames(connection: socket.socket, question: bytes) -> None:
    del question
    while True:
        connection.sendall(bytes(2))


def hang_up(connection: socket.socket, question: bytes) -> None:
    """Nothing more is said."""


@contextlib.contextmanager
def serving(behave: Behaviour) -> Generator[int]:
    """Reads one question of each connection, then behaves. Over UDP everything is cut short."""
    with socket.socket() as listener, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        listener.bind((HERE, 0))
        listener.listen()
        port = int(listener.getsockname()[1])
        datagrams.bind((HERE, port))
        over = threading.Event()

        def one(connection: socket.socket) -> None:
            connection.settimeout(1)
            with contextlib.suppress(OSError), connection:
                data = connection.recv(4096)
                if len(data) > 2:
                    behave(connection, data[2:])

        def accept() -> None:
            with contextlib.suppress(OSError):
                while not over.is_set():
                    connection, _ = listener.accept()
                    threading.Thread(target=one, args=(connection,), daemon=True).start()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while not over.is_set():
                    question, place = datagrams.recvfrom(4096)
                    if question:
                        datagrams.sendto(cut(question), place)

        threads = [threading.Thread(target=work, daemon=True) for work in (accept, answer)]
        for thread in threads:
            thread.start()
        try:
            yield port
        finally:
            over.set()
            with contextlib.suppress(OSError), socket.create_connection((HERE, port), 1):
                pass
            with socket.socket(type=socket.SOCK_DGRAM) as last:
                last.sendto(b"", (HERE, port))
            for thread in threads:
                thread.join(5)


@pytest.mark.parametrize(
    ("behave", "kinds"),
    [
        (endless_frames, {FailureKind.PROTOCOL}),
        (endless_bytes, {FailureKind.PROTOCOL, FailureKind.TIMEOUT}),
        (empty_frames, {FailureKind.PROTOCOL}),
        (slowly, {FailureKind.TIMEOUT}),
        (cut_for_ever, {FailureKind.PROTOCOL}),
        (hang_up, {FailureKind.CLOSED, FailureKind.RESET}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_connection_that_is_no_good(
    collector: Collector, behave: Behaviour, kinds: set[FailureKind]
) -> None:
    began = time.monotonic()
    with serving(behave) as port:
        probe = collector.open(DNS, {"transport": "tcp", "name": "www.example.org"})
        probe.fire(shot_at(HERE, port=port, timeout_ns=TIMEOUT_NS if behave is slowly else LONG_NS))
        await probe.drain()
        probe.close()
    failure = collector.only("dns_hit").failure
    assert failure is not None
    assert failure.kind in kinds
    assert len(collector.of("setup")) == 1
    assert time.monotonic() - began < LATEST_SECONDS


@pytest.mark.parametrize("behave", [cut_for_ever, endless_frames, slowly, hang_up])
async def test_truncation_leads_nowhere(collector: Collector, behave: Behaviour) -> None:
    """Each answer over UDP is cut short, and over TCP there is none."""
    began = time.monotonic()
    with serving(behave) as port:
        probe = collector.open(DNS, {"name": "www.example.org", "zone": "example.org"})
        probe.fire(shot_at(HERE, port=port, timeout_ns=TIMEOUT_NS if behave is slowly else LONG_NS))
        await probe.drain()
        probe.close()
    for metric in ("dns_hit", "dns_miss"):
        assert collector.only(metric).failure is not None
    assert time.monotonic() - began < LATEST_SECONDS


async def test_rubbish_over_udp_is_waited_out(collector: Collector) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind((HERE, 0))
        port = int(server.getsockname()[1])

        def babble() -> None:
            question, place = server.recvfrom(4096)
            for size in range(200):
                server.sendto(question[:2] + b"\x80" + bytes(size), place)

        thread = threading.Thread(target=babble)
        thread.start()
        probe = collector.open(DNS, {"name": "www.example.org"})
        probe.fire(shot_at(HERE, port=port, timeout_ns=TIMEOUT_NS))
        await probe.drain()
        probe.close()
        thread.join()
    failure = collector.only("dns_hit").failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    assert collector.counted("corrupt") + collector.counted("forged") == 200
