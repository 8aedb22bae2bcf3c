"""One packet for one packet, over real sockets: addresses, stamps, TTL, clocks."""

import asyncio
import itertools
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from pathbudget.agents.reflector.clocks import Skew, SkewedClock
from pathbudget.agents.reflector.options import Options
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.stamp import tlvs
from pathbudget.probes.stamp.timestamps import decode_error, from_ntp, to_ntp
from pathbudget.probes.stamp.wire import Reply, Request, decode_reply, encode_request

MS = 1_000_000
SECOND = 1_000_000_000
FOLLOW_UP = tlvs.request(tlvs.Kind.FOLLOW_UP, 16)


def request(number: int, extension: bytes = b"") -> bytes:
    return encode_request(Request(number, to_ntp(time.time_ns()), 0x0001, 7)) + extension


def stamps(reply: Reply) -> tuple[int, int, int]:
    """T1, T2, T3 as Unix nanoseconds."""
    near = time.time_ns()
    three = (reply.sender_timestamp, reply.received, reply.timestamp)
    t1, t2, t3 = (from_ntp(one, near) for one in three)
    return t1, t2, t3


async def test_a_reply_carries_what_came_and_three_times_in_order(
    reflecting: Any, peer: Any, own_address: str, free_port: int
) -> None:
    async with reflecting(Options((own_address,), free_port)) as reflector:
        client = peer(own_address, free_port)
        for number in range(3):
            payload = await asyncio.to_thread(client.ask, request(100 + number))
            reply = decode_reply(payload)
            assert len(payload) == 44
            assert (reply.sequence, reply.sender_sequence) == (number, 100 + number)
            assert (reply.ssid, reply.sender_error) == (7, 1)
            t1, t2, t3 = stamps(reply)
            assert t1 <= t2 <= t3 <= time.time_ns()
        status = reflector.status()
        assert (status.received, status.reflected, status.sessions) == (3, 3, 1)
        assert not status.refused


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_the_ttl_that_came_is_told_and_replies_leave_with_255(
    reflecting: Any, peer: Any, free_port: int, address: str
) -> None:
    async with reflecting(Options((address,), free_port)):
        client = peer(address, free_port)
        if ":" in address:
            client.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 33)
            client.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        else:
            client.socket.setsockopt(socket.SOL_IP, socket.IP_TTL, 33)
            client.socket.setsockopt(socket.SOL_IP, 12, 1)  # IP_RECVTTL
        client.socket.sendto(request(1), client.there)
        payload, messages, _, _ = await asyncio.to_thread(client.socket.recvmsg, 2048, 256)
        assert decode_reply(payload).sender_ttl == 33
        assert [struct.unpack("@i", data)[0] for _, _, data in messages] == [255]


async def test_with_all_addresses_the_reply_leaves_from_the_one_that_was_asked(
    reflecting: Any, peer: Any, free_port: int, own_address: str
) -> None:
    async with reflecting(Options(port=free_port)) as reflector:
        assert reflector.listening == ["0.0.0.0", "::"]
        for address in (own_address, "127.0.0.1", "::1"):
            client = peer(address, free_port)
            client.socket.sendto(request(1), client.there)
            _, sender = await asyncio.to_thread(client.socket.recvfrom, 2048)
            assert sender[:2] == (address, free_port)


async def test_the_follow_up_tells_when_the_reply_before_really_left(
    reflecting: Any, peer: Any, own_address: str, free_port: int
) -> None:
    async with reflecting(Options((own_address,), free_port)):
        client = peer(own_address, free_port)
        replies: list[bytes] = []
        for number in range(6):
            asked = request(number, FOLLOW_UP)
            replies.append(await asyncio.to_thread(client.ask, asked))
            await asyncio.sleep(0.02)  # for the stamp to be read
        first = tlvs.read_follow_up(replies[0][48:])
        assert first == (0, 0, 0)
        for before, after in itertools.pairwise(replies):
            told = tlvs.read_follow_up(after[48:])
            reply = decode_reply(before)
            assert told.sequence == reply.sequence
            assert told.method == tlvs.Method.SOFTWARE_LOCAL
            near = time.time_ns()
            assert from_ntp(told.timestamp, near) > from_ntp(reply.timestamp, near)


async def test_every_stamp_is_that_of_the_clock_it_was_given(
    reflecting: Any, peer: Any, own_address: str, free_port: int
) -> None:
    ahead = SkewedClock(SystemClock(), Skew(offset_ns=3_600 * SECOND), time.time_ns())
    async with reflecting(Options((own_address,), free_port), ahead):
        client = peer(own_address, free_port)
        await asyncio.to_thread(client.ask, request(0, FOLLOW_UP))
        await asyncio.sleep(0.02)
        payload = await asyncio.to_thread(client.ask, request(1, FOLLOW_UP))
        reply = decode_reply(payload)
        t1, t2, t3 = stamps(reply)
        left = from_ntp(tlvs.read_follow_up(payload[48:]).timestamp, t2)
        for shown in (t2, t3, left):
            assert 3_590 * SECOND < shown - t1 < 3_610 * SECOND


@pytest.mark.parametrize(("error_ns", "synchronised"), [(None, False), (5 * MS, True)])
async def test_the_error_estimate_is_claimed_only_where_the_clock_is_synchronised(
    reflecting: Any,
    peer: Any,
    own_address: str,
    free_port: int,
    error_ns: int | None,
    synchronised: bool,
) -> None:
    async with reflecting(Options((own_address,), free_port), None, error_ns):
        await asyncio.sleep(0.1)
        client = peer(own_address, free_port)
        told = decode_error(decode_reply(await asyncio.to_thread(client.ask, request(0))).error)
        assert told.synchronised is synchronised
        assert error_ns is None or error_ns <= told.error_ns <= 1.02 * error_ns


async def test_without_state_the_sequence_number_comes_back(
    reflecting: Any, peer: Any, own_address: str, free_port: int
) -> None:
    async with reflecting(Options((own_address,), free_port, stateless=True)) as reflector:
        client = peer(own_address, free_port)
        reply = decode_reply(await asyncio.to_thread(client.ask, request(4711)))
        assert (reply.sequence, reply.sender_sequence) == (4711, 4711)
        assert reflector.status().sessions == 0


async def test_many_at_once_each_get_their_own_answer(
    reflecting: Callable[..., Any], peer: Any, own_address: str, free_port: int
) -> None:
    async with reflecting(Options((own_address,), free_port)):
        client = peer(own_address, free_port)
        for number in range(200):
            client.socket.sendto(request(number), client.there)

        def collect() -> list[int]:
            return [decode_reply(client.socket.recv(2048)).sender_sequence for _ in range(200)]

        assert await asyncio.to_thread(collect) == list(range(200))
