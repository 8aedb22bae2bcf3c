"""The sockets of the engine on loopback: keys, stamps, options, and what a kernel may lack."""

import asyncio
import errno
import socket
from collections.abc import Callable

import pytest

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes import message_batch
from pathbudget.probes.channels import DatagramBatch, DatagramChannel, Outgoing, PacketOptions
from pathbudget.probes.errors import NotOnThisHostError, PrivilegeError
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.packets import SinglePackets
from pathbudget.probes.record import AddressFamily, Failure, FailureKind
from pathbudget.probes.udp_socket import StampedUdpSocket

both_families = pytest.mark.parametrize("family", list(AddressFamily))
HERE = {AddressFamily.IPV4: "127.0.0.1", AddressFamily.IPV6: "::1"}
NO_WAY = {AddressFamily.IPV4: "255.255.255.255", AddressFamily.IPV6: "ff02::1%nowhere"}


class Heard:
    """Everything that one channel reports."""

    def __init__(self) -> None:
        self.batch = DatagramBatch()
        self.calls = 0

    def __call__(self, batch: DatagramBatch) -> None:
        self.calls += 1
        self.batch.sent += batch.sent
        self.batch.arrivals += batch.arrivals
        self.batch.errors += batch.errors


def open_pair(
    network: SystemNetwork, family: AddressFamily, packet: PacketOptions | None = None
) -> tuple[StampedUdpSocket, Heard, StampedUdpSocket, Heard]:
    near, far = Heard(), Heard()
    one = network.open_datagrams(family, near, packet=packet or PacketOptions())
    other = network.open_datagrams(family, far)
    assert isinstance(one, StampedUdpSocket)
    assert isinstance(other, StampedUdpSocket)
    return one, near, other, far


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@both_families
@pytest.mark.parametrize("single", [False, True], ids=["batched", "single"])
async def test_refused_sends_in_the_middle_shift_no_key(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch, family: AddressFamily, single: bool
) -> None:
    """On loopback a packet is received inside its own send call, so the stamps of packet n lie
    between the receive stamps of n - 1 and n: a key off by one would show.
    """
    if single:
        monkeypatch.setattr(message_batch, "multi_calls", lambda: None)
    near, heard, far, arrived = open_pair(network, family)
    here, port = HERE[family], far.port
    texts: list[bytes | None] = [b"%d" % n if n % 7 and n % 11 else None for n in range(200)]
    keys = near.send_all(
        [
            Outgoing(text, here, port) if text is not None else _refused(family, n, port)
            for n, text in enumerate(texts)
        ]
    )
    await until(lambda: len(arrived.batch.arrivals) == len([t for t in texts if t is not None]))
    near.poll()
    assert isinstance(near._packets, SinglePackets) == single
    assert [isinstance(key, Failure) for key in keys] == [text is None for text in texts]
    stamp_of = dict(heard.batch.sent)
    came = {one.payload: one.kernel_unix_ns or 0 for one in arrived.batch.arrivals}
    before = 0
    for text, key in zip(texts, keys, strict=True):
        if text is None or isinstance(key, Failure):
            continue
        assert before < stamp_of[key] <= came[text]
        before = came[text]
    near.close()
    far.close()


def _refused(family: AddressFamily, number: int, port: int) -> Outgoing:
    """What the kernel refuses at different depths: no permission, too long, no such source."""
    here = HERE[family]
    foreign = "192.0.2.77" if family is AddressFamily.IPV4 else "2001:db8::77"
    return (
        Outgoing(bytes(70_000), here, port),
        Outgoing(b"x", here, port, local=foreign),
        Outgoing(b"x", NO_WAY[family], port),
    )[number % 3]


@both_families
async def test_without_the_calls_for_many_everything_works_the_same(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch, family: AddressFamily
) -> None:
    monkeypatch.setattr(message_batch, "multi_calls", lambda: None)
    near, heard, far, arrived = open_pair(network, family)
    keys = near.send_all([Outgoing(b"%d" % n, HERE[family], far.port) for n in range(100)])
    await until(lambda: len(arrived.batch.arrivals) == 100)
    near.poll()
    assert [one.payload for one in arrived.batch.arrivals] == [b"%d" % n for n in range(100)]
    assert [key for key, _ in heard.batch.sent] == keys == list(range(100))
    near.close()
    far.close()


@both_families
async def test_packet_options_reach_the_wire(network: SystemNetwork, family: AddressFamily) -> None:
    packet = PacketOptions(source=HERE[family], interface="lo", dscp=46, ttl=33)
    near, _, far, arrived = open_pair(network, family, packet)
    near.send_all(
        [Outgoing(b"a", HERE[family], far.port), Outgoing(b"b", HERE[family], far.port, dscp=0)]
    )
    near.send(Outgoing(b"c", HERE[family], far.port, local=HERE[family], dscp=10))
    await until(lambda: len(arrived.batch.arrivals) == 3)
    said = [(one.payload, one.ttl, one.traffic_class) for one in arrived.batch.arrivals]
    assert said == [(b"a", 33, 184), (b"b", 33, 0), (b"c", 33, 40)]
    assert {(one.sender, one.local) for one in arrived.batch.arrivals} == {(HERE[family],) * 2}
    near.close()
    far.close()


@both_families
async def test_what_cannot_be_opened_says_where_and_why(
    network: SystemNetwork, family: AddressFamily
) -> None:
    taken = network.open_datagrams(family, Heard())
    assert taken is not None
    foreign = "192.0.2.77" if family is AddressFamily.IPV4 else "2001:db8::77"
    for port, packet, word in (
        (taken.port, PacketOptions(), f"port {taken.port}"),
        (0, PacketOptions(interface="nowhere"), "nowhere"),
        (0, PacketOptions(source=foreign), foreign),
    ):
        with pytest.raises(PrivilegeError, match=word):
            network.open_datagrams(family, Heard(), port=port, packet=packet)
    taken.close()


async def test_a_name_that_the_kernel_would_cut_to_another_device_is_refused(
    network: SystemNetwork,
) -> None:
    """It keeps 15 octets; what is left of these is the name of a device that exists."""
    longer = PacketOptions(interface="lo" + "\0" * 14)
    with pytest.raises(NotOnThisHostError, match="no interface"):
        network.open_datagrams(AddressFamily.IPV4, Heard(), packet=longer)


async def test_a_family_that_this_kernel_lacks_opens_as_none(
    network: SystemNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "no such family")

    monkeypatch.setattr(socket, "socket", refuse)
    assert network.open_datagrams(AddressFamily.IPV6, Heard()) is None


@both_families
async def test_an_error_about_an_earlier_datagram_is_not_held_against_the_next(
    network: SystemNetwork, family: AddressFamily
) -> None:
    near, heard, far, arrived = open_pair(network, family)
    closed = network.open_datagrams(family, Heard())
    assert closed is not None
    nobody = closed.port
    closed.close()
    for number in range(20):
        near.send(Outgoing(b"to nobody %d" % number, HERE[family], nobody))
        assert isinstance(near.send(Outgoing(b"%d" % number, HERE[family], far.port)), int)
    await until(lambda: len(arrived.batch.arrivals) == 20 and len(heard.batch.errors) == 20)
    quoted = {error.quoted for error in heard.batch.errors}
    assert quoted == {b"to nobody %d" % number for number in range(20)}
    near.close()
    far.close()


async def test_the_error_queue_never_makes_the_loop_spin(network: SystemNetwork) -> None:
    """An undrained error queue is always readable: the loop would turn without end."""
    near, heard, far, _ = open_pair(network, AddressFamily.IPV4)
    for _ in range(20):
        near.send(Outgoing(b"x", "127.0.0.1", far.port))
        near.send(Outgoing(b"x", "127.0.0.1", 9))  # nobody: an ICMP error comes back
        await asyncio.sleep(0.002)
    await until(lambda: len(heard.batch.sent) == 40 and len(heard.batch.errors) == 20)
    polls = 0
    plain = near.poll

    def poll() -> None:
        nonlocal polls
        polls += 1
        plain()

    loop = asyncio.get_running_loop()
    loop.add_reader(near._socket.fileno(), poll)
    await asyncio.sleep(0.2)
    assert polls == 0
    near.close()
    far.close()


async def test_packets_without_a_stamp_are_told_from_those_with_one(
    network: SystemNetwork,
) -> None:
    """The kernel may stamp late after it is asked to; what has no stamp says None."""
    near, heard, far, arrived = open_pair(network, AddressFamily.IPV4)
    stamps.switch_on(far._socket, 0)
    stamps.switch_on(near._socket, 0)
    near.send(Outgoing(b"x", "127.0.0.1", far.port))
    await until(lambda: len(arrived.batch.arrivals) == 1)
    assert arrived.batch.arrivals[0].kernel_unix_ns is None
    near.poll()
    assert heard.batch.sent == []
    near.close()
    far.close()


async def test_a_channel_that_was_closed_is_quiet(network: SystemNetwork) -> None:
    near, heard, far, _ = open_pair(network, AddressFamily.IPV4)
    channel: DatagramChannel = near
    near.close()
    near.close()
    near.poll()
    # The number of its descriptor may be another socket's by now.
    other = network.open_datagrams(AddressFamily.IPV4, heard)
    assert other is not None
    for refused in channel.send_all([Outgoing(b"x", "127.0.0.1", far.port)] * 3):
        assert isinstance(refused, Failure)
        assert refused.kind is FailureKind.OTHER
    other.poll()
    other.close()
    assert heard.calls == 0
    far.close()
