"""The sender under forged, damaged and foreign replies and errors: counted, never believed."""

from collections.abc import Callable

import pytest

from pathbudget.probes.channels import DatagramBatch, QueuedError
from pathbudget.probes.record import ClockSource, FailureKind, Metric
from pathbudget.probes.stamp import wire
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.fake_pair import (
    FAR,
    FORWARD_NS,
    REVERSE_NS,
    SEND_CALL_NS,
    FakePair,
)
from pathbudget.probes.stamp.timestamps import to_ntp

MakePair = Callable[..., FakePair]


@pytest.mark.parametrize(
    ("word", "name", "by"),
    [
        ("forged", "sender_timestamp", 1),
        ("forged", "sender_timestamp", 1 << 40),
        ("corrupt", "sender_sequence", 1),
        ("corrupt", "ssid", 1),
    ],
)
def test_what_is_not_quite_ours_is_counted_and_not_believed(
    pair: FakePair, word: str, name: str, by: int
) -> None:
    answer = pair.must_reflect(pair.send())
    reply = wire.decode_reply(answer.payload)
    pair.arrive(wire.encode_reply(reply._replace(**{name: getattr(reply, name) ^ by})))
    assert pair.counts == {word: 1}
    assert not pair.samples
    pair.arrive(answer.payload)
    pair.end()
    assert pair.of(Metric.RTT)[0].failure is None


def test_what_comes_from_elsewhere_is_foreign(pair: FakePair) -> None:
    pair.send()
    pair.arrive(bytes(44), sender="198.51.100.7")
    pair.arrive(b"hello", sender="198.51.100.7")
    assert pair.counts == {"foreign": 2}


def test_a_reflector_that_does_not_know_ssid_is_understood(pair: FakePair) -> None:
    answer = pair.must_reflect(pair.send())
    reply = wire.decode_reply(answer.payload)._replace(ssid=0)
    pair.arrive(wire.encode_reply(reply)[:41])
    pair.end()
    assert pair.of(Metric.RTT)[0].value_ns == FORWARD_NS + REVERSE_NS + SEND_CALL_NS
    assert not pair.counts


def error(pair: FakePair, quoted: bytes, destination: str = FAR) -> None:
    queued = QueuedError(3, 3, FAR, destination, quoted, None)
    pair.sender.receive(0, DatagramBatch(errors=[queued]), pair.reading())
    pair.collect()


def test_an_icmp_error_ends_only_the_packet_that_it_quotes(pair: FakePair) -> None:
    request = pair.send()
    error(pair, request[:11])
    error(pair, bytes(44))
    error(pair, request[:4] + bytes(8) + request[12:])
    error(pair, request, destination="192.0.2.9")
    assert pair.counts == {"unverifiable_error": 1, "forged_error": 3}
    assert not pair.samples
    error(pair, request[:12])
    (sample,) = pair.failures()
    assert sample.failure is not None
    assert sample.failure.kind is FailureKind.UNREACHABLE
    assert (sample.failure.icmp_type, sample.failure.icmp_code) == (3, 3)
    assert sample.responder == FAR


def test_an_unreachable_port_is_no_loss_of_either_way(pair: FakePair) -> None:
    for number in range(10):
        if number == 4:
            error(pair, pair.send())
            pair.pass_time()
        else:
            pair.step(reverse=number != 6)
    pair.end()
    assert (pair.counts["lost_forward"], pair.counts["lost_reverse"]) == (0, 1)


def test_a_reply_with_a_wrong_signature_is_forged(make_pair: MakePair, key: Key) -> None:
    pair = make_pair(key=key)
    answer = pair.must_reflect(pair.send())
    for place in (0, 20, 33, 96, 111):
        octets = bytearray(answer.payload)
        octets[place] ^= 1
        pair.arrive(bytes(octets))
    pair.arrive(answer.payload[:44])
    assert pair.counts == {"forged": 6}
    pair.arrive(answer.payload)
    pair.end()
    assert not pair.failures()


def test_a_follow_up_with_a_wrong_signature_is_not_believed(make_pair: MakePair, key: Key) -> None:
    pair = make_pair(key=key)
    pair.step()
    answer = pair.must_reflect(pair.send())
    octets = bytearray(answer.payload)
    octets[112 + 4 + 10] ^= 1  # in the timestamp of the Follow-Up
    pair.arrive(bytes(octets))
    pair.end()
    assert all(one.clock_source is ClockSource.KERNEL_RECEIVE for one in pair.of(Metric.RTT))


def test_a_follow_up_that_cannot_be_true_is_not_used(pair: FakePair) -> None:
    pair.step()
    answer = pair.must_reflect(pair.send())
    octets = bytearray(answer.payload)
    octets[44 + 8 : 44 + 16] = to_ntp(pair.now_ns + 1_790_000_000_000_000_000).to_bytes(8)
    pair.arrive(bytes(octets))
    pair.end()
    assert pair.of(Metric.RTT)[0].clock_source is ClockSource.KERNEL_RECEIVE
    assert pair.of(Metric.RTT)[0].value_ns == FORWARD_NS + REVERSE_NS + SEND_CALL_NS
