"""Receipts, bodies, and what is read of TCP_INFO."""

import json
import random
import struct
import zlib

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import Failure, FailureKind
from pathbudget.probes.reflector_http import UploadReceipt
from pathbudget.probes.tcp_info import parse_tcp_info
from pathbudget.probes.upload.body import CLOSING, OPENING, make_body
from pathbudget.probes.upload.probe import UPLOAD
from pathbudget.probes.upload.receipt import parse_receipt, receipt_notes
from pathbudget.probes.upload.settings import MOST_BYTES, upload_bytes, upload_cost

VALID = b'{"bytes":5,"first_unix_ns":10,"last_unix_ns":7,"residence_ns":3}'


def test_a_receipt_is_read() -> None:
    found = parse_receipt(VALID, 5)
    assert isinstance(found, UploadReceipt)
    # The sink's clock was stepped back while it read: told, not hidden.
    assert receipt_notes(found)["sink_span_ns"] == -3


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", FailureKind.PROTOCOL),
        (b"\xff\xfe", FailureKind.PROTOCOL),
        (VALID[:-1], FailureKind.PROTOCOL),
        (VALID.replace(b"3}", b"3.5}"), FailureKind.PROTOCOL),
        (VALID.replace(b"3}", b"-3}"), FailureKind.CORRUPT),
        (VALID.replace(b"3}", b"9" * 40 + b"}"), FailureKind.CORRUPT),
        (VALID.replace(b":5", b":6"), FailureKind.CORRUPT),
    ],
    ids=["empty", "no-utf8", "cut", "float", "negative", "huge", "other-size"],
)
def test_receipts_that_are_none(data: bytes, kind: FailureKind) -> None:
    found = parse_receipt(data, 5)
    assert isinstance(found, Failure)
    assert found.kind is kind


@pytest.mark.parametrize("size", [1, 50, 76, 77, 4_000, 64_001])
def test_a_body_has_its_length_and_cannot_be_compressed_much(size: int) -> None:
    body = make_body(size, random.Random(1))
    assert len(body) == size
    assert body.isascii()
    if size >= len(OPENING) + len(CLOSING):
        assert json.loads(body)["messages"][0]["role"] == "user"
    if size > 4_000:
        assert len(zlib.compress(body, 9)) > 0.74 * size


def test_how_many_bytes_are_asked_for() -> None:
    assert upload_bytes({"tokens": 16_000, "bytes_per_token": 4.0}) == 64_000
    assert upload_bytes({"tokens": 16_000, "bytes": 10}) == 10
    assert upload_bytes({"tokens": 2_000_000, "bytes_per_token": 64.0}) == MOST_BYTES
    assert upload_bytes({"tokens": 1, "bytes_per_token": 0.1}) == 1


def test_what_a_shot_costs() -> None:
    cold, warm = (upload_cost({"bytes": 512_000, "mode": mode}) for mode in ("cold", "warm"))
    assert cold.bytes > 512_000
    assert cold.packets > 512_000 // 1_448
    assert warm.bytes > cold.bytes + 512_000


def test_versions_that_do_not_go_without_tls() -> None:
    from pathbudget.probes.fake_collector import Collector
    from pathbudget.probes.fake_network import FakeClock, FakeNetwork

    network = FakeNetwork(FakeClock())
    with pytest.raises(ConfigError):
        Collector(network, network.clock).open(UPLOAD, {"scheme": "http", "version": "3"})


def tcp_info(size: int) -> bytes:
    """One as Linux lays it out, cut to what an older kernel fills."""
    info = bytearray(256)
    info[7] = 1
    for offset, value in {
        8: 204_000, 16: 1_448, 24: 7, 68: 40_100, 72: 900, 76: 0x7FFFFFFF, 80: 10, 100: 2,
        144: 5, 148: 39_990, 228: 65_535,
    }.items():  # fmt: skip
        struct.pack_into("@I", info, offset, value)
    for offset, value in {120: 99, 128: 98, 160: 1_000, 168: 50, 176: 60, 184: 70, 200: 97}.items():
        struct.pack_into("@Q", info, offset, value)
    return bytes(info[:size])


def test_tcp_info_in_our_units() -> None:
    info = parse_tcp_info(tcp_info(256))
    assert info is not None
    assert (info.mss, info.cwnd, info.ssthresh, info.retransmits) == (1_448, 10, None, 2)
    assert (info.rtt_ns, info.rtt_variation_ns, info.min_rtt_ns) == (
        40_100_000,
        900_000,
        39_990_000,
    )
    assert (info.busy_ns, info.window_limited_ns, info.buffer_limited_ns) == (
        50_000,
        60_000,
        70_000,
    )
    assert (info.delivery_rate, info.application_limited) == (1_000, True)
    assert (info.bytes_acknowledged, info.bytes_received, info.bytes_sent) == (99, 98, 97)
    assert info.notes()["delivery_rate_bps"] == 8_000
    assert "ssthresh_segments" not in info.notes()


@pytest.mark.parametrize("size", [0, 8, 103])
def test_tcp_info_that_is_too_short(size: int) -> None:
    assert parse_tcp_info(tcp_info(size)) is None


@pytest.mark.parametrize(("size", "known"), [(104, 8), (152, 10), (168, 12), (232, 15)])
def test_tcp_info_of_older_kernels_has_fewer_words(size: int, known: int) -> None:
    info = parse_tcp_info(tcp_info(size))
    assert info is not None
    assert info.cwnd == 10
    assert len(info.notes()) <= known
    assert "cwnd_segments" in info.notes()
