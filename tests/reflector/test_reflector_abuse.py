"""What a stranger can do to a reflector: be counted under a reason, and nothing else."""

import asyncio
import ipaddress
import random
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.agents.reflector.clocks import HostClock
from pathbudget.agents.reflector.limits import Rates
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.runner import Reflector
from pathbudget.probes.channels import Datagram, DatagramBatch, Outgoing
from pathbudget.probes.errors import ReflectorError
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.stamp import tlvs
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.timestamps import decode_error, from_ntp, to_ntp
from pathbudget.probes.stamp.wire import Request, decode_reply, encode_request

KEY = Key("ours", b"0123456789abcdef")
OTHER_KEY = Key("theirs", b"fedcba9876543210")
FREE = Rates(10_000_000, 10_000_000)
HERE = "192.0.2.7"
LEFT_NS = 1_790_000_000_000_000_000
"""When the first reply left, as the fixture says."""


def plain(number: int = 0, extensions: bytes = b"") -> bytes:
    return encode_request(Request(number, to_ntp(time.time_ns()), 1, 7)) + extensions


def signed(key: Key, number: int = 0, unix_ns: int | None = None) -> bytes:
    told = Request(number, to_ntp(time.time_ns() if unix_ns is None else unix_ns), 1, 7)
    base = encode_request(told, authenticated=True)
    return base + key.sign(base)


def from_source(payload: bytes, address: str = "198.51.100.1", port: int = 50_000) -> Datagram:
    return Datagram(payload, address, port, HERE, 60, 0, time.time_ns())


async def test_a_flood_of_forged_sources_costs_a_bounded_memory_and_rate(wired: Any) -> None:
    """No session that is there is pushed out, and what is over the rate is not answered."""
    options = Options(rates=Rates(per_source=50, total=500), max_sessions=300)
    async with wired(options) as (reflector, wire):
        known = from_source(plain(1))
        wire.deliver(known, known)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        dice = random.Random(7)
        for _ in range(40):
            flood = [
                from_source(plain(), str(ipaddress.IPv4Address(dice.getrandbits(32))), 1000 + at)
                for at in range(100)
            ]
            wire.deliver(*flood)
            wire.sent.clear()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        status = reflector.status()
        assert status.received == 4_002
        assert status.refused["over_total_rate"] > 0
        assert status.reflected + sum(status.refused.values()) == status.received
        assert status.sessions <= 300
        assert grown < 1_000_000
        reflector._limiter._rates = FREE
        (reply,) = wire.deliver(known)
        assert reply.payload[:4] == b"\0\0\0\2"  # the third of its session: it was not forgotten


async def test_one_network_is_never_sent_more_than_its_rate(wired: Any) -> None:
    async with wired(Options(rates=Rates(per_source=20, total=1_000))) as (reflector, wire):
        flood = [from_source(plain(at), f"203.0.113.{at % 256}", 2_000 + at) for at in range(500)]
        sent = wire.deliver(*flood)
        assert len(sent) <= 40  # of one second, or of two where the flood met the border
        assert reflector.status().refused["over_source_rate"] == 500 - len(sent)


async def test_only_who_is_on_the_list_is_answered(wired: Any) -> None:
    networks = (ipaddress.ip_network("198.51.100.0/25"),)
    async with wired(Options(allowed=networks)) as (reflector, wire):
        assert len(wire.deliver(from_source(plain(), "198.51.100.127"))) == 1
        assert not wire.deliver(from_source(plain(), "198.51.100.128"))
        assert not wire.deliver(from_source(plain(), "2001:db8::1"))
        assert reflector.status().refused == {"not_allowed": 2}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "too_short"),
        (b"\0", "too_short"),
        (bytes(40), "too_short"),
        (bytes(111), None),  # padded with zeros
        (b"\xff" * 13, "too_short"),
        (bytes(65_507), None),
    ],
)
async def test_undersized_and_oversized_packets(
    wired: Any, payload: bytes, reason: str | None
) -> None:
    async with wired(Options()) as (reflector, wire):
        sent = wire.deliver(from_source(payload))
        assert [len(one.payload) for one in sent] == ([] if reason else [len(payload)])
        assert reflector.status().refused == ({reason: 1} if reason else {})


async def test_wrong_keys_and_unsigned_packets_are_not_answered(wired: Any) -> None:
    async with wired(Options(keys=(KEY,))) as (reflector, wire):
        spoilt = bytearray(signed(KEY))
        spoilt[7] ^= 1
        for payload in (signed(OTHER_KEY), bytes(spoilt), bytes(112)):
            assert not wire.deliver(from_source(payload))
        assert reflector.status().refused == {"unauthenticated": 3}
        padded = (plain(), plain()[:41], plain() + bytes(68), plain()[:14] + b"\x55" * 98)
        for payload in padded:  # a sender without a key: as STAMP and TWAMP-Light make them
            assert not wire.deliver(from_source(payload))
        assert reflector.status().refused == {"unauthenticated": 3, "unsigned": 4}
        for payload in (b"", plain()[:40], signed(KEY)[:111], bytes(44)):
            assert not wire.deliver(from_source(payload))
        assert reflector.status().refused["too_short"] == 4
        assert len(wire.deliver(from_source(signed(KEY)))) == 1


async def test_a_replayed_authenticated_packet_is_not_answered_again(wired: Any) -> None:
    async with wired(Options(keys=(KEY,))) as (reflector, wire):
        first, second = signed(KEY, 1), signed(KEY, 2)
        assert len(wire.deliver(from_source(first), from_source(second))) == 2
        elsewhere = from_source(first, "203.0.113.9")  # with a forged source, at a victim
        assert not wire.deliver(from_source(first), from_source(second), elsewhere)
        assert reflector.status().refused == {"replayed": 3}
        assert len(wire.deliver(from_source(signed(KEY, 3)))) == 1


async def test_a_full_table_has_room_for_a_newcomer_and_keeps_who_was_there(wired: Any) -> None:
    async with wired(Options(max_sessions=2)) as (reflector, wire):
        one, two, three = (from_source(plain(9), port=port) for port in (1001, 1002, 1003))
        for sender in (one, one, two, three, one):
            last = wire.deliver(sender)[0]
        assert last.payload[:4] == b"\0\0\0\2"
        assert reflector.status().sessions == 2
        assert wire.deliver(three)[0].payload[:4] == b"\0\0\0\1"


async def test_a_silent_session_makes_room(wired: Any) -> None:
    async with wired(Options(max_sessions=1, idle_ns=1_000_000)) as (reflector, wire):
        wire.deliver(from_source(plain(9), port=1001))
        await asyncio.sleep(0.01)
        assert wire.deliver(from_source(plain(9), port=1002))[0].payload[:4] == bytes(4)
        assert reflector.status().sessions == 1


async def test_two_reflectors_do_not_talk_to_each_other(wired: Any) -> None:
    async with wired(Options()) as (reflector, wire):
        (reply,) = wire.deliver(from_source(plain(), port=8620))
        assert not wire.deliver(from_source(reply.payload, port=8620))
        assert reflector.status().refused == {"reply": 1}


async def test_the_follow_up_of_one_batch_tells_of_the_reply_before(wired: Any) -> None:
    """However many packets of a session were read at once."""
    async with wired(Options(rates=FREE)) as (_, wire):
        asked = plain(0, tlvs.request(tlvs.Kind.FOLLOW_UP, 16))
        senders = [from_source(asked, port=port) for _ in range(20) for port in (1001, 1002, 1003)]
        told = [tlvs.read_follow_up(one.payload[48:]) for one in wire.deliver(*senders)]
        assert told[:3] == [(0, 0, 0)] * 3
        for key, follow_up in enumerate(told[3:]):
            assert follow_up.sequence == key // 3
            near = time.time_ns()
            left = from_ntp(follow_up.timestamp, near)
            assert abs(left - (LEFT_NS + 1_000 * key)) <= 1


async def test_what_the_kernel_reports_of_others_is_only_counted(wired: Any) -> None:
    async with wired(Options()) as (reflector, wire):
        wire.listeners[0](DatagramBatch(sent=[(number, 5) for number in range(1000)]))
        assert reflector.status().errors == {}
        assert reflector.status().reflected == 0


BOMBS = [
    tlvs.request(tlvs.Kind.EXTRA_PADDING, 0) * 300,
    tlvs.request(tlvs.Kind.FOLLOW_UP, 16) * 60,
    tlvs.request(tlvs.Kind.LOCATION, 1_000),
    b"\x80\x02\xff\xff" + bytes(8),
    b"\x80\x08\x00\x10" + bytes(16),
    b"\xff" * 1_400,
    bytes(range(256)) * 5,
]


@pytest.mark.parametrize("bomb", range(len(BOMBS)))
async def test_extensions_made_to_hurt_are_answered_in_their_own_length(
    wired: Any, bomb: int
) -> None:
    async with wired(Options(rates=FREE)) as (reflector, wire):
        payload = plain(0, BOMBS[bomb])
        began = time.process_time()
        for _ in range(50):
            for reply in wire.deliver(from_source(payload)):
                assert len(reply.payload) == len(payload)
        assert time.process_time() - began < 5  # 50 of them, on any machine
        assert reflector.status().received == 50


@pytest.mark.parametrize("rest", range(1, 12))
async def test_a_few_octets_behind_a_follow_up_are_no_extension(wired: Any, rest: int) -> None:
    """They are answered as malformed (RFC 8972 section 4), in their own length."""
    async with wired(Options()) as (_, wire):
        asked = plain(0, tlvs.request(tlvs.Kind.FOLLOW_UP, 16) + b"\x80" * rest)
        (reply,) = wire.deliver(from_source(asked))
        assert len(reply.payload) == len(asked)
        assert reply.payload[44] == 0
        assert reply.payload[64] == tlvs.MALFORMED


class CountingWire:
    """What went in and out of one reflector."""

    def __init__(self, reflector: Reflector, wire: Any) -> None:
        self.reflector = reflector
        self.wire = wire

    def amplification(self, payloads: list[bytes]) -> tuple[int, int, list[Outgoing]]:
        datagrams = [from_source(one, port=40_000 + at) for at, one in enumerate(payloads)]
        sent = self.wire.deliver(*datagrams)
        return sum(map(len, payloads)), sum(len(one.payload) for one in sent), sent


START = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=300).map(lambda tail: plain() + tail),
    st.binary(max_size=300).map(lambda tail: signed(KEY) + tail),
    st.lists(st.tuples(st.sampled_from(list(tlvs.Kind)), st.integers(0, 64)), max_size=8).map(
        lambda asked: plain(0, b"".join(tlvs.request(kind, size) for kind, size in asked))
    ),
)


@pytest.mark.parametrize("keys", [(), (KEY,)])
async def test_no_input_makes_more_octets_than_it_has(wired: Any, keys: tuple[Key, ...]) -> None:
    async with wired(Options(rates=FREE, keys=keys)) as (reflector, wire):
        counting = CountingWire(reflector, wire)

        @settings(max_examples=60, deadline=None)
        @given(st.lists(START, min_size=1, max_size=6))
        def law(payloads: list[bytes]) -> None:
            before = reflector.status()
            went_in, came_out, sent = counting.amplification(payloads)
            assert came_out <= went_in
            assert len(sent) <= len(payloads)
            by_port = {40_000 + at: len(one) for at, one in enumerate(payloads)}
            assert all(len(one.payload) <= by_port[one.port] for one in sent)
            after = reflector.status()
            refused = sum(after.refused.values()) - sum(before.refused.values())
            assert refused + len(sent) == len(payloads)

        law()


async def test_a_flood_over_real_sockets_is_answered_up_to_the_rate(
    reflecting: Any, peer: Any, own_address: str, free_port: int
) -> None:
    options = Options((own_address,), free_port, rates=Rates(per_source=30, total=100))
    async with reflecting(options) as reflector:
        block = own_address.rsplit(".", 2)[0]
        clients = [peer(own_address, free_port, f"{block}.{at}.9") for at in range(1, 60)]
        for client in clients:
            for number in range(20):
                client.socket.sendto(plain(number), client.there)
            await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        status = reflector.status()
        assert status.received == 59 * 20
        assert status.refused["over_total_rate"] > 0
        assert status.reflected <= 300


async def test_junk_in_the_name_of_a_neighbour_takes_nothing_from_an_honest_sender(
    wired: Any,
) -> None:
    options = Options(keys=(KEY,), rates=Rates(per_source=50, total=1_000))
    async with wired(options) as (reflector, wire):
        answered = 0
        for number in range(40):
            junk = [b"", plain(), signed(OTHER_KEY, number)] * 10
            wire.deliver(*(from_source(one, f"198.51.100.{number + 2}") for one in junk))
            answered += len(wire.deliver(from_source(signed(KEY, number))))
        assert answered == 40
        assert set(reflector.status().refused) == {"too_short", "unsigned", "unauthenticated"}


async def test_a_reply_after_a_step_of_the_clock_claims_nothing(wired: Any) -> None:
    clock = FakeClock()
    async with wired(Options(), HostClock(clock)) as (reflector, wire):
        reflector._session.claim_clock(5_000)
        before = decode_reply(wire.deliver(from_source(plain(1)))[0].payload)
        clock.step(5_000_000_000)
        after = decode_reply(wire.deliver(from_source(plain(2)))[0].payload)
        claims = [decode_error(one.error).synchronised for one in (before, after)]
        assert claims == [True, False]


async def test_more_addresses_than_keys_of_sends_can_tell_apart_are_refused(wired: Any) -> None:
    most = tuple(f"127.9.8.{at + 1}" for at in range(64))
    async with wired(Options(most)) as (reflector, _):
        assert len(reflector.listening) == 64
    with pytest.raises(ReflectorError, match="65 addresses: at most 64"):
        async with wired(Options((*most, "127.9.9.1"))):
            pass
