"""The door to the real network: names, routes, source addresses, control messages."""

import asyncio
import errno
import gc
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.probes import failures, kernel_stamps
from pathbudget.probes import network as network_module
from pathbudget.probes.channels import Resolution
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.tcp import TCP

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
MS = 1_000_000
Found = list[tuple[int, int, int, str, tuple[str, int]]]


async def test_literals_resolve_to_themselves(network: SystemNetwork) -> None:
    for family, text in ((V4, "127.0.0.1"), (V6, "2001:db8::1")):
        found = await network.resolve(text, family)
        assert isinstance(found, Resolution)
        assert found.addresses == (text,)
        assert found.duration_ns > 0


async def test_a_literal_of_the_other_family_has_no_address(network: SystemNetwork) -> None:
    for family, text in ((V6, "127.0.0.1"), (V4, "2001:db8::1")):
        found = await network.resolve(text, family)
        assert isinstance(found, Failure)
        assert (found.kind, found.stage) == (FailureKind.NO_ADDRESS, Stage.RESOLVE)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "..", "x\0y", "", "ü" * 80])
async def test_what_cannot_be_a_name(network: SystemNetwork, host: str) -> None:
    found = await network.resolve(host, V4)
    assert isinstance(found, Failure)
    assert found.stage is Stage.RESOLVE


def fake_resolver(code: int | None, *, other_family: bool = False) -> Callable[..., Found]:
    def getaddrinfo(
        host: str, port: object, family: int = 0, kind: int = 0, **rest: object
    ) -> Found:
        if family == 0 and other_family:
            return [(socket.AF_INET, 1, 6, "", ("192.0.2.1", 0))]
        if code is not None:
            raise socket.gaierror(code, "What the Resolver Says")
        twice = (socket.AF_INET, 1, 6, "", ("192.0.2.1", 0))
        return [twice, (socket.AF_INET, 1, 6, "", ("192.0.2.2", 0)), twice]

    return getaddrinfo


@pytest.mark.parametrize(
    ("code", "other_family", "kind"),
    [
        (socket.EAI_NONAME, False, FailureKind.NAME_NOT_FOUND),
        (socket.EAI_NONAME, True, FailureKind.NO_ADDRESS),
        (socket.EAI_NODATA, False, FailureKind.NO_ADDRESS),
        (socket.EAI_ADDRFAMILY, False, FailureKind.NO_ADDRESS),
        (socket.EAI_AGAIN, False, FailureKind.RESOLVER),
        (socket.EAI_FAIL, False, FailureKind.RESOLVER),
        (socket.EAI_SYSTEM, False, FailureKind.RESOLVER),
    ],
)
async def test_what_the_resolver_says(
    network: SystemNetwork,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    other_family: bool,
    kind: FailureKind,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", fake_resolver(code, other_family=other_family))
    found = await network.resolve("site.example", V6)
    assert isinstance(found, Failure)
    assert (found.kind, found.stage) == (kind, Stage.RESOLVE)
    assert "site.example" in found.detail


async def test_addresses_keep_the_resolvers_order_and_appear_once(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", fake_resolver(None))
    found = await network.resolve("site.example", V4)
    assert isinstance(found, Resolution)
    assert found.addresses == ("192.0.2.1", "192.0.2.2")


async def test_a_resolver_that_hangs_blocks_neither_the_loop_nor_other_names(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = fake_resolver(None)
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def getaddrinfo(host: str, *rest: object, **more: object) -> Found:
        if host == "slow.example":
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(30)
        return quick(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    slow = [asyncio.create_task(network.resolve("slow.example", V4)) for _ in range(40)]
    await asyncio.sleep(0.05)
    assert isinstance(await network.resolve("site.example", V4), Resolution)
    assert not any(task.done() for task in slow)
    release.set()
    assert all(isinstance(found, Resolution) for found in await asyncio.gather(*slow))


def test_an_answer_after_the_end_of_the_loop_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = fake_resolver(None)

    def getaddrinfo(*arguments: object, **options: object) -> Found:
        time.sleep(0.2)
        return quick("")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    network = SystemNetwork()

    async def ask() -> None:
        network.look_up("slow.example", V4, lambda found: None)

    asyncio.run(ask())
    network.close()
    time.sleep(0.3)


async def test_routes(network: SystemNetwork) -> None:
    assert network.has_route("127.0.0.1", V4)
    assert network.has_route("::1", V6)
    assert not network.has_route("no address", V4)


@pytest.mark.parametrize(
    ("family", "source", "there"), [(V4, "127.0.0.5", "127.0.0.1"), (V6, "::1", "::1")]
)
async def test_the_source_address_is_used(
    serve: Callable[..., int], family: AddressFamily, source: str, there: str
) -> None:
    peers: list[str] = []

    def handle(connection: socket.socket) -> None:
        peers.append(connection.getpeername()[0])
        connection.recv(1)

    network = SystemNetwork({family: source})
    collector = Collector(network, SystemClock())
    probe = collector.open(TCP)
    probe.fire(shot_at(there, port=serve(handle, there)))
    await probe.drain()
    async with asyncio.timeout(10):
        while not peers:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    probe.close()
    network.close()
    assert peers == [source]
    assert collector.only("connect").value_ns is not None


async def test_a_source_address_that_is_not_ours_is_a_local_failure() -> None:
    network = SystemNetwork({V4: "192.0.2.77"})
    collector = Collector(network, SystemClock())
    probe = collector.open(TCP)
    probe.fire(shot_at("127.0.0.1", port=9))
    await probe.drain()
    probe.close()
    failure = collector.only("connect").failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.LOCAL, Stage.CONNECT)
    assert not network.has_route("127.0.0.1", V4)
    network.close()


async def test_out_of_sockets_is_a_local_failure(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(*arguments: object) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    probe = collector.open(TCP)
    monkeypatch.setattr(socket, "socket", no_socket)
    probe.fire(shot_at("127.0.0.1", port=9))
    probe.close()
    failure = collector.only("connect").failure
    assert failure == Failure(FailureKind.LOCAL, Stage.CONNECT, "too many open files")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES])
async def test_no_icmp_socket_is_a_privilege_error_with_a_remedy(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(family: AddressFamily, *, privileged: bool) -> socket.socket:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(network_module, "try_icmp", refuse)
    with pytest.raises(PrivilegeError) as told:
        network.open_icmp(V4, lambda batch: None)
    assert "setcap" in told.value.remedy
    assert "ping_group_range" in told.value.remedy


async def test_a_family_that_the_kernel_lacks_opens_as_none(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(family: AddressFamily, *, privileged: bool) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(network_module, "try_icmp", refuse)
    assert network.open_icmp(V6, lambda batch: None) is None


def test_a_network_that_nobody_closes_leaks_nothing() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        SystemNetwork()
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 10


def test_every_errno_has_a_meaning_or_is_other() -> None:
    for code in errno.errorcode:
        failure = failures.from_os_error(OSError(code, "x"), Stage.WAIT)
        assert failure.detail == os.strerror(code).lower()
    assert failures.from_os_error(OSError("odd"), Stage.WAIT).kind is FailureKind.OTHER


@pytest.mark.parametrize("family", list(AddressFamily))
def test_icmp_messages_that_are_no_errors_mean_nothing(family: AddressFamily) -> None:
    harmless = {V4: (0, 5, 8, 13), V6: (128, 129, 133, 137)}[family]
    assert [failures.from_icmp(family, one, 0, Stage.WAIT) for one in harmless] == [None] * 4


@given(
    st.lists(
        st.tuples(
            st.sampled_from([socket.SOL_SOCKET, socket.SOL_IP, socket.IPPROTO_IPV6, 99]),
            st.sampled_from([2, 11, 25, 37, 52, 99]),
            st.binary(max_size=60),
        ),
        max_size=4,
    )
)
def test_control_messages_never_raise(messages: list[tuple[int, int, bytes]]) -> None:
    kernel_stamps.read_control(messages)


def test_control_messages_are_read() -> None:
    stamp = (socket.SOL_SOCKET, 37, struct.pack("qqqqqq", 17, 5, 0, 0, 0, 0))
    no_stamp = (socket.SOL_SOCKET, 37, bytes(48))
    ttl = (socket.SOL_IP, 2, struct.pack("i", 57))
    hops = (socket.IPPROTO_IPV6, 52, struct.pack("i", 58))
    sent = (socket.SOL_IP, 11, struct.pack("IBBBBII", errno.ENOMSG, 4, 0, 0, 0, 0, 99))
    router = struct.pack("HH4s8s", socket.AF_INET, 0, bytes([192, 0, 2, 7]), bytes(8))
    icmp = (
        socket.SOL_IP,
        11,
        struct.pack("IBBBBII", errno.EHOSTUNREACH, 2, 3, 1, 0, 0, 0) + router,
    )
    service = (socket.SOL_IP, 1, b"\xb8")
    service_v6 = (socket.IPPROTO_IPV6, 67, struct.pack("i", 0xB9))
    there = (socket.SOL_IP, 8, struct.pack("i4s4s", 1, bytes(4), bytes([192, 0, 2, 9])))
    there_v6 = (socket.IPPROTO_IPV6, 50, struct.pack("16si", bytes(15) + b"\x01", 1))
    read = kernel_stamps.read_control
    assert read([stamp, ttl]) == (17_000_000_005, 57, None, None, None, "")
    assert read([no_stamp, hops]) == (None, 58, None, None, None, "")
    assert read([stamp, sent]) == (17_000_000_005, None, 99, None, None, "")
    assert read([icmp]) == (None, None, None, (3, 1, "192.0.2.7"), None, "")
    assert read([service, there]) == (None, None, None, None, 0xB8, "192.0.2.9")
    assert read([service_v6, there_v6]) == (None, None, None, None, 0xB9, "::1")
