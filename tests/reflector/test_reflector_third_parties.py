"""A reflector is no weapon against somebody else: replies go to the sender alone, and an address
that was not proven gets little, over QUIC too.
"""

import socket
import time
from pathlib import Path
from typing import Any

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathbudget.agents.reflector.launch import ReflectorProcess
from pathbudget.agents.reflector.options import Options
from pathbudget.probes.channels import Datagram
from pathbudget.probes.stamp.timestamps import to_ntp
from pathbudget.probes.stamp.wire import Request, encode_request

VICTIM = "203.0.113.5"
ASKED = encode_request(Request(1, to_ntp(1_790_000_000_000_000_000), 1, 7))
RETURN_ADDRESS = bytes((0x80, 10, 0, 8, 0x80, 2, 0, 4)) + socket.inet_aton(VICTIM)
"""Return Path with a Return Address sub-TLV (RFC 9503 section 4): reply to somebody else."""
CONTROL_CODE = bytes((0x80, 10, 0, 8, 0x80, 1, 0, 4, 0, 0, 0, 1))
NODE_ADDRESS = bytes((0x80, 9, 0, 4)) + socket.inet_aton(VICTIM)


@pytest.mark.parametrize("wish", [RETURN_ADDRESS, CONTROL_CODE, NODE_ADDRESS])
async def test_a_wish_to_reply_to_somebody_else_is_not_followed(wired: Any, wish: bytes) -> None:
    async with wired(Options()) as (_, wire):
        sender = Datagram(ASKED + wish, "198.51.100.1", 50_000, "192.0.2.7", 60, 0, 1)
        sent = wire.deliver(sender)
        assert [(one.address, one.port) for one in sent] == [("198.51.100.1", 50_000)]
        assert VICTIM not in {one.address for one in sent}
        assert len(sent[0].payload) == len(sender.payload)


async def test_whatever_is_asked_the_sender_alone_is_answered(wired: Any) -> None:
    async with wired(Options()) as (_, wire):

        @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.binary(max_size=200), st.integers(1, 65_535))
        def law(tail: bytes, port: int) -> None:
            sender = Datagram(ASKED + tail, "198.51.100.1", port, "192.0.2.7", 60, 0, 1)
            for one in wire.deliver(sender):
                assert (one.address, one.port) == ("198.51.100.1", port)
                assert len(one.payload) <= len(sender.payload)

        law()


def test_quic_sends_no_more_than_three_times_what_an_unproven_address_sent(
    own_address: str, free_port: int, tmp_path: Path
) -> None:
    """RFC 9000 section 8.1. A forged source never answers, so that it gets this much and no more,
    however long the server tries again.
    """
    options = {"port": 8620, "https-port": free_port}
    with (
        ReflectorProcess(tmp_path, [own_address], options),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent,
    ):
        client = QuicConnection(configuration=QuicConfiguration(alpn_protocols=["h3"]))
        client.connect((own_address, free_port), now=time.monotonic())
        hello = b"".join(payload for payload, _ in client.datagrams_to_send(time.monotonic()))
        silent.settimeout(3)
        silent.sendto(hello, (own_address, free_port))
        came = 0
        while True:
            try:
                came += len(silent.recv(65_536))
            except TimeoutError:
                break
        assert 0 < came <= 3 * len(hello)
