"""What exceeds a bound is turned away at once; the others do not notice."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pathbudget.agents.responder.limits import Admission, Limits, source_of
from pathbudget.agents.responder.server import Responder

Listen = Callable[..., AbstractAsyncContextManager[Responder]]
Shake = Callable[..., ssl.SSLSocket]


async def open_connection(
    address: tuple[str, int], source: str = "127.0.0.1"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*address, local_addr=(source, 0))


async def is_reset(reader: asyncio.StreamReader) -> bool:
    """True for RST, False for an orderly end; fails when nothing happens within 5 s."""
    try:
        async with asyncio.timeout(5):
            return (await reader.read(1)) != b""
    except ConnectionResetError:
        return True


async def lives(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.2):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


async def close_all(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
    for writer in writers:
        try:
            await writer.wait_closed()
        except ConnectionError:
            continue


async def test_the_tcp_port_holds_and_says_nothing(listen: Listen) -> None:
    async with listen() as responder:
        reader, writer = await open_connection(responder.tcp_addresses[0])
        writer.write(b"hello?\r\n")
        assert await lives(reader)
        await close_all(writer)


async def test_one_connection_too_many_is_reset_and_the_others_live(listen: Listen) -> None:
    limits = Limits(connections=3)
    async with listen(limits=limits) as responder:
        address = responder.tcp_addresses[0]
        opened = [await open_connection(address, f"127.0.0.{n + 2}") for n in range(3)]
        extra_reader, extra_writer = await open_connection(address, "127.0.0.9")
        assert await is_reset(extra_reader)
        assert responder.counters["turned away"] == 1
        assert all([await lives(reader) for reader, _ in opened])
        await close_all(opened[0][1], extra_writer)
        await asyncio.sleep(0.05)
        again_reader, again_writer = await open_connection(address, "127.0.0.9")
        assert await lives(again_reader)
        await close_all(again_writer, *(writer for _, writer in opened[1:]))


async def test_one_source_cannot_take_every_place(listen: Listen) -> None:
    async with listen(limits=Limits(connections=10, connections_per_source=2)) as responder:
        tcp, tls = responder.tcp_addresses[0], responder.tls_addresses[0]
        greedy = [await open_connection(tcp), await open_connection(tls)]  # both ports count
        refused_reader, refused_writer = await open_connection(tcp)
        assert await is_reset(refused_reader)
        other_reader, other_writer = await open_connection(tcp, "127.0.0.2")
        assert await lives(other_reader)
        await close_all(refused_writer, other_writer, *(writer for _, writer in greedy))


async def test_a_silent_connection_ends(listen: Listen) -> None:
    limits = Limits(handshake_seconds=0.1, idle_seconds=0.2)
    async with listen(limits=limits) as responder:
        for address in (responder.tcp_addresses[0], responder.tls_addresses[0]):
            reader, writer = await open_connection(address)
            assert await is_reset(reader)
            await close_all(writer)
        assert responder.counters["expired"] == 2


async def test_an_idle_tls_connection_ends_with_a_goodbye(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    def wait_for_the_end(address: tuple[str, int]) -> bytes:
        with shake(client_context, address) as connection:
            return connection.recv(1)  # raises SSLEOFError without close_notify

    async with listen(limits=Limits(idle_seconds=0.2)) as responder:
        assert await asyncio.to_thread(wait_for_the_end, responder.tls_addresses[0]) == b""


async def test_a_flood_on_one_connection_is_cut_off(listen: Listen) -> None:
    async with listen(limits=Limits(bytes_received=1000)) as responder:
        for address in (responder.tcp_addresses[0], responder.tls_addresses[0]):
            reader, writer = await open_connection(address)
            writer.write(b"\x16\x03\x01\x3f\xff" + b"x" * 5000)
            assert await is_reset(reader)
            await close_all(writer)
        assert responder.counters["too many bytes"] == 2


async def test_two_responders_cannot_have_one_port(listen: Listen) -> None:
    from pathbudget.agents.responder.server import Listening, Responder
    from pathbudget.probes.errors import ReflectorError

    async with listen() as responder:
        (host, tls_port), (_, tcp_port) = responder.tls_addresses[0], responder.tcp_addresses[0]
        second = Responder(Listening((host,), tls_port, tcp_port), responder.context)
        with pytest.raises(ReflectorError, match=f"{host} port {tls_port}: another program"):
            await second.__aenter__()


async def test_an_address_of_another_machine_is_named(listen: Listen) -> None:
    from pathbudget.probes.errors import ReflectorError

    with pytest.raises(ReflectorError, match=r"192\.0\.2\.7 port 0: this machine has no"):
        async with listen(binds=("127.0.0.1", "192.0.2.7")):
            pass


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_a_source_is_an_ipv4_address_or_an_ipv6_network(address: str, source: str) -> None:
    assert source_of(address) == source


def test_admission_gives_back_what_it_took() -> None:
    admission = Admission(Limits(connections=2, connections_per_source=1))
    assert admission.enter("a")
    assert not admission.enter("a")
    assert admission.enter("b")
    assert not admission.enter("c")
    admission.leave("a")
    assert admission.enter("c")
    assert admission.open == 2
