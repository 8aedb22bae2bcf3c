"""A running lab is a network: kernels forward and answer, TCP and TLS work, v4 and v6 alike."""

import functools
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.lab import session
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.probes.errors import LabError
from pathbudget.probes.record import AddressFamily

pytestmark = pytest.mark.needs("lab")
STARTS_LABS_HERE = True

MS = 1_000_000
QUICK = DirectionModel(delay_ns=1 * MS)


def two_sites() -> World:
    """region - near - far - (answering | silent)."""
    nodes = [
        Node("region", NodeKind.REGION),
        Node("near", NodeKind.ROUTER),
        Node("far", NodeKind.ROUTER),
        Node("answering", NodeKind.SITE),
        Node("silent", NodeKind.SITE, responder=False),
    ]
    ends = [("region", "near"), ("near", "far"), ("far", "answering"), ("far", "silent")]
    return build_world(nodes, [Link(one, other, QUICK, QUICK) for one, other in ends])


def echo_with_ttl(address: str, ttl: int) -> tuple[str, int]:
    """Who answered an echo with this TTL, and with which ICMP type."""
    six = ":" in address
    family, protocol = (socket.AF_INET6, 58) if six else (socket.AF_INET, 1)
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        raw.settimeout(5)
        level, option = (41, 16) if six else (socket.IPPROTO_IP, socket.IP_TTL)
        raw.setsockopt(level, option, ttl)
        body = struct.pack("!HH", 77, ttl) + b"pathbudget"
        head = struct.pack("!BB", 128 if six else 8, 0)
        raw.sendto(head + checksum(head + b"\0\0" + body) + body, (address, 0))
        while True:
            octets, sender = raw.recvfrom(2048)
            kind = octets[0] if six else octets[20]
            if kind in ((3, 129) if six else (11, 0)):
                return sender[0], kind


def checksum(octets: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets[: len(octets) // 2 * 2]))
    total += octets[-1] << 8 if len(octets) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


@pytest.mark.parametrize("family", list(AddressFamily))
def test_each_router_answers_when_the_ttl_ends_there(family: AddressFamily) -> None:
    world = two_sites()
    target = world.address_of("silent", family)
    exceeded, reply = (3, 129) if family is AddressFamily.IPV6 else (11, 0)
    first = world.link_addresses(0, family)[1]  # end of "near" towards the region
    with Lab(world) as lab:
        seen = [
            lab.call("region", functools.partial(echo_with_ttl, target, ttl)) for ttl in (1, 2, 3)
        ]
    assert [kind for _, kind in seen] == [exceeded, exceeded, reply]
    assert seen[2][0] == target
    if family is AddressFamily.IPV4:  # the address of the interface that the packet came in by
        assert seen[0][0] == first
        assert seen[1][0] == world.link_addresses(1, family)[1]
    else:
        assert seen[0][0] != seen[1][0]


@pytest.mark.parametrize("family", list(AddressFamily))
def test_tcp_and_tls_answer_where_a_responder_is(family: AddressFamily) -> None:
    with Lab(two_sites()) as lab, lab.as_session():
        found = session.current()
        assert found is not None
        node = found.nodes["answering"]
        host = node.ipv6 if family is AddressFamily.IPV6 else node.ipv4
        context = ssl.create_default_context(cafile=found.ca_file)

        def handshake() -> str | None:
            with (
                socket.create_connection((host, 8443), timeout=10) as connection,
                context.wrap_socket(connection, server_hostname=host) as secure,
            ):
                return secure.version()

        assert lab.call("region", handshake) == "TLSv1.3"
        lab.call("region", lambda: socket.create_connection((host, 8080), timeout=10).close())
        silent = lab.address_of("silent", family)
        with pytest.raises(ConnectionRefusedError):
            lab.call("region", lambda: socket.create_connection((silent, 8080), timeout=10))
    assert session.current() is None


def test_bulk_tcp_arrives_whole() -> None:
    # Large segments and unfinished checksums must not meet the packet ring.
    sent = bytes(range(256)) * 4000
    with Lab(two_sites()) as lab:
        address = lab.address_of("silent")
        server = lab.call("silent", lambda: socket.create_server((address, 9000)))
        received = bytearray()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while octets := connection.recv(1 << 16):
                    received.extend(octets)

        thread = threading.Thread(target=serve)
        thread.start()
        with server:
            client = lab.call("region", lambda: socket.create_connection((address, 9000)))
            with client:
                client.sendall(sent)
            thread.join(60)
        report = lab.report()
    assert bytes(received) == sent
    assert report.ring_drops == 0
    assert all(one.octets <= 1514 * one.received for one in report.directions)


def test_another_process_enters_a_node_by_its_path() -> None:
    code = (
        "import sys; from pathbudget.agents.lab.namespaces import enter; enter(sys.argv[1]); "
        "print(open('/proc/self/net/fib_trie').read())"
    )
    with Lab(two_sites()) as lab:
        command = [sys.executable, "-c", code, lab.namespace("near")]
        seen = subprocess.run(command, capture_output=True, text=True, check=True)
        assert lab.address_of("near") in seen.stdout
        ran = lab.run("far", ["cat", "/proc/self/net/fib_trie"], timeout=20)
        assert lab.address_of("far") in ran.stdout
        assert ran.returncode == 0


def test_a_link_can_be_changed_while_it_runs(tools: Any) -> None:
    with Lab(two_sites()) as lab:
        address = lab.address_of("silent")
        lab.change("near", "far", DirectionModel(loss=1.0))
        order = {"count": 10, "interval_s": 0.002, "linger_s": 0.5}
        seen = tools.ping(lab, ["region"], [address], **order)["region"]
        assert seen.rtt_ms[address] == [None] * 10
        lab.change("near", "far", QUICK)
        seen = tools.ping(lab, ["region"], [address], **order)["region"]
        assert None not in seen.rtt_ms[address]
        with pytest.raises(LookupError, match="no link from region to far"):
            lab.change("region", "far", QUICK)


def test_the_report_counts_every_packet(tools: Any) -> None:
    with Lab(two_sites()) as lab:
        address = lab.address_of("silent")
        tools.ping(lab, ["region"], [address], count=50, interval_s=0.002)
    report = lab.report()
    assert report.forwarded == 50 * 6
    assert report.n == 50 * 2  # deliveries to the site and back to the region
    assert report.dropped_by_model == report.dropped_by_queue == report.ring_drops == 0
    assert report.unchained < 10
    assert report.scheduler in ("fifo", "other")


def disturb(disturbance: Callable[[Lab], object], *command: str) -> None:
    """Start a lab, do something to it, end it."""
    with Lab(two_sites(), responder_command=command) as lab:
        disturbance(lab)


def kill_emulator(lab: Lab) -> None:
    os.kill(lab._links.process.pid, signal.SIGKILL)
    lab._links.process.wait_briefly()


def confuse_emulator(lab: Lab) -> None:
    lab._links._control.send(b"no json\n")
    lab._links.process.wait_briefly()


def wait_for_responder(lab: Lab) -> None:
    assert lab._services._process is not None
    lab._services._process.wait_briefly()


def kill_one_responder(lab: Lab) -> None:
    pid = lab._services.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(children) == 2  # the responder and the reflector of the one answering site
    os.kill(int(children[0]), signal.SIGKILL)
    wait_for_responder(lab)


def test_a_killed_emulator_is_noticed() -> None:
    with pytest.raises(LabError, match=r"link emulator of the lab died \(SIGKILL\)"):
        disturb(kill_emulator)


def test_an_emulator_that_dies_says_why() -> None:
    with pytest.raises(LabError, match="malformed"):
        disturb(confuse_emulator)


def test_a_dead_responder_is_noticed_with_its_words() -> None:
    code = (
        "import json, os, sys, time; order = json.load(sys.stdin); "
        "started = sum(site['responder'] + site['reflector'] for site in order['sites']); "
        "os.write(order['ready'], b'ready\\n' * started); "
        "time.sleep(0.2); sys.exit('out of beans')"
    )
    with pytest.raises(LabError, match="out of beans"):
        disturb(wait_for_responder, sys.executable, "-c", code)


def test_a_responder_that_never_listens_stops_the_start() -> None:
    with pytest.raises(LabError, match="no beans"):
        disturb(lambda lab: pytest.fail("it started"), sys.executable, "-c", "exit('no beans')")


def test_one_dead_child_ends_all_responders() -> None:
    with pytest.raises(LabError, match="the responder of answering ended"):
        disturb(kill_one_responder)


def test_a_lab_wants_the_main_thread() -> None:
    caught: list[BaseException] = []

    def start() -> None:
        try:
            with Lab(two_sites()):
                pass
        except LabError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])
