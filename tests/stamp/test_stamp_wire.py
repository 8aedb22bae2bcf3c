"""Octet by octet, against scapy's own layer and vectors that others wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.stamp import (
    ErrorEstimate as ScapyError,
)
from scapy.contrib.stamp import (
    STAMPSessionReflectorTestUnauthenticated as ScapyReply,
)
from scapy.contrib.stamp import (
    STAMPSessionSenderTestUnauthenticated as ScapyRequest,
)

from pathbudget.probes.stamp import wire
from pathbudget.probes.stamp.timestamps import (
    SECOND_NS,
    ErrorEstimate,
    decode_error,
    encode_error,
    from_ntp,
    from_ptp,
    to_ntp,
    to_ptp,
)
from pathbudget.probes.stamp.wire import Reply, Request, WireError

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
REQUESTS = st.builds(Request, U32, U64, U16, U16)
REPLIES = st.builds(Reply, U32, U64, U16, U16, U64, U32, U64, U16, st.integers(0, 255))
UNIX = st.integers(0, 8_000_000_000 * SECOND_NS)


def scapy_error(bits: int) -> object:
    error = decode_error(bits)
    return ScapyError(
        S=error.synchronised, Z=error.ptp, scale=error.scale, multiplier=error.multiplier
    )


@settings(max_examples=30, deadline=None)
@given(REQUESTS)
def test_a_request_is_scapys_byte_for_byte(request: Request) -> None:
    theirs = ScapyRequest(
        seq=request.sequence, err_estimate=scapy_error(request.error), ssid=request.ssid
    )
    octets = bytearray(bytes(theirs))
    octets[4:12] = request.timestamp.to_bytes(8)  # scapy takes a float there: too coarse
    assert wire.encode_request(request) == bytes(octets)


@settings(max_examples=30, deadline=None)
@given(REPLIES)
def test_a_reply_is_scapys_byte_for_byte(reply: Reply) -> None:
    theirs = ScapyReply(
        seq=reply.sequence,
        err_estimate=scapy_error(reply.error),
        ssid=reply.ssid,
        seq_sender=reply.sender_sequence,
        err_estimate_sender=scapy_error(reply.sender_error),
        ttl_sender=reply.sender_ttl,
    )
    octets = bytearray(bytes(theirs))
    octets[4:12] = reply.timestamp.to_bytes(8)
    octets[16:24] = reply.received.to_bytes(8)
    octets[28:36] = reply.sender_timestamp.to_bytes(8)
    assert wire.encode_reply(reply) == bytes(octets)


@settings(max_examples=30, deadline=None)
@given(REPLIES)
def test_scapy_reads_the_fields_that_we_wrote(reply: Reply) -> None:
    read = ScapyReply(wire.encode_reply(reply))
    assert (read.seq, read.seq_sender, read.ssid) == (
        reply.sequence,
        reply.sender_sequence,
        reply.ssid,
    )
    assert read.ttl_sender == reply.sender_ttl
    assert bytes(read.err_estimate) == reply.error.to_bytes(2)
    assert bytes(read.err_estimate_sender) == reply.sender_error.to_bytes(2)


@pytest.fixture
def vectors(shared_data: Path) -> Mapping[str, Any]:
    text = (shared_data / "vectors" / "stamp_unauthenticated.json").read_text()
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


def seconds(timestamp: int) -> float:
    return timestamp / 2**32


def error_of(fields: Mapping[str, int]) -> ErrorEstimate:
    return ErrorEstimate(
        bool(fields["S"]), bool(fields["Z"]), fields["scale"], fields["multiplier"]
    )


@pytest.mark.needs("data")
def test_the_request_of_the_vectors(vectors: Mapping[str, Any]) -> None:
    vector = vectors["session_sender"]
    octets = bytes.fromhex(vector["hex"])
    request = wire.decode_request(octets)
    assert (request.sequence, request.ssid) == (vector["seq"], vector["ssid"])
    assert seconds(request.timestamp) == pytest.approx(vector["ts"], abs=1e-9)
    assert decode_error(request.error) == error_of(vector["err"])
    assert wire.encode_request(request) == octets


@pytest.mark.needs("data")
def test_the_reply_of_the_vectors(vectors: Mapping[str, Any]) -> None:
    vector = vectors["session_reflector"]
    octets = bytes.fromhex(vector["hex"])
    reply = wire.decode_reply(octets)
    assert (reply.sequence, reply.ssid) == (vector["seq"], vector["ssid"])
    assert (reply.sender_sequence, reply.sender_ttl) == (
        vector["seq_sender"],
        vector["ttl_sender"],
    )
    for timestamp, name in (
        (reply.timestamp, "ts"),
        (reply.received, "ts_rx"),
        (reply.sender_timestamp, "ts_sender"),
    ):
        assert seconds(timestamp) == pytest.approx(vector[name], abs=1e-9)
    assert decode_error(reply.error) == error_of(vector["err"])
    assert decode_error(reply.sender_error) == error_of(vector["err_sender"])
    assert wire.encode_reply(reply) == octets


@settings(max_examples=40, deadline=None)
@given(REQUESTS, REPLIES, st.booleans())
def test_round_trip(request: Request, reply: Reply, authenticated: bool) -> None:
    pad = bytes(16) if authenticated else b""
    asked = wire.encode_request(request, authenticated=authenticated) + pad
    answered = wire.encode_reply(reply, authenticated=authenticated) + pad
    assert len(asked) == len(answered) == (112 if authenticated else 44)
    assert wire.decode_request(asked, authenticated=authenticated) == request
    assert wire.decode_reply(answered, authenticated=authenticated) == reply
    assert not wire.is_reply(asked, authenticated=authenticated)
    assert wire.is_reply(answered, authenticated=authenticated) == (reply.received != 0)


def test_the_fields_of_an_authenticated_reply_stand_on_borders_of_16_octets() -> None:
    reply = Reply(
        1, 0x2222222222222222, 0x3333, 0x4444, 0x5555555555555555, 6, 0x7777777777777777, 0x8888, 9
    )
    octets = wire.encode_reply(reply, authenticated=True)
    assert octets[0:4] == b"\0\0\0\x01"
    assert octets[16:24] == b"\x22" * 8
    assert octets[24:28] == b"\x33\x33\x44\x44"
    assert octets[32:40] == b"\x55" * 8
    assert octets[48:52] == b"\0\0\0\x06"
    assert octets[64:72] == b"\x77" * 8
    assert octets[72:74] == b"\x88\x88"
    assert octets[80] == 9
    assert len(octets) == 96
    written = {*range(4), *range(16, 28), *range(32, 40), *range(48, 52), *range(64, 74), 80}
    assert not any(octets[place] for place in set(range(96)) - written)


@settings(max_examples=30, deadline=None)
@given(REPLIES)
def test_the_41_octets_of_an_old_twamp_reflector(reply: Reply) -> None:
    assert wire.decode_reply(wire.encode_reply(reply)[:41]) == reply


def test_the_14_octets_of_a_twamp_sender_without_padding() -> None:
    assert wire.decode_request(bytes(range(14))).ssid == 0


@pytest.mark.parametrize("authenticated", [False, True])
@given(octets=st.binary(max_size=150))
def test_anything_is_read_or_refused(authenticated: bool, octets: bytes) -> None:
    shortest = (112, 112) if authenticated else (14, 41)
    for decode, least in zip((wire.decode_request, wire.decode_reply), shortest, strict=True):
        if len(octets) >= least:
            decode(octets, authenticated=authenticated)
        else:
            with pytest.raises(WireError, match=f"^{len(octets)} octets"):
                decode(octets, authenticated=authenticated)


@settings(max_examples=40, deadline=None)
@given(UNIX, st.integers(-(2**30), 2**30))
def test_no_nanosecond_is_lost_in_either_format(unix_ns: int, off_seconds: int) -> None:
    near = unix_ns + off_seconds * SECOND_NS
    assert from_ntp(to_ntp(unix_ns), near) == unix_ns
    assert from_ptp(to_ptp(unix_ns), near) == unix_ns


def test_the_era_of_ntp_ends_in_february_2036() -> None:
    last = 2_085_978_495 * SECOND_NS
    assert to_ntp(last) >> 32 == 0xFFFF_FFFF
    assert to_ntp(last + SECOND_NS) >> 32 == 0
    assert from_ntp(0, last) == last + SECOND_NS


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**15))
def test_the_error_that_is_stated_is_the_smallest_that_is_not_too_small(error_ns: int) -> None:
    stated = decode_error(encode_error(error_ns))
    assert stated.synchronised
    assert stated.multiplier > 0
    assert stated.error_ns >= error_ns
    # Every estimate that is smaller, by one step of its own scale or of any other, is too small.
    for scale in range(64):
        units = (error_ns << 32) / SECOND_NS
        multiplier = -(-int(units) // 2**scale)
        for candidate in (multiplier, multiplier + 1):
            if 1 <= candidate <= 255 and candidate * 2**scale >= units:
                value = candidate * 2**scale
                assert stated.multiplier * 2**stated.scale <= value


def test_a_clock_that_nobody_vouches_for_states_no_small_error() -> None:
    error = decode_error(encode_error(None))
    assert not error.synchronised
    assert error.multiplier == 255


@settings(max_examples=40, deadline=None)
@given(U16)
def test_an_error_estimate_comes_back_as_it_was(bits: int) -> None:
    assert decode_error(bits).encode() == bits
