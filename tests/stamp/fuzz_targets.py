"""One function per codec and session. Each takes any octets, and asserts what must always hold.

They are plain functions, so that a coverage-guided fuzzer can drive them; `test_stamp_fuzz.py` runs
them with a few hundred inputs each.
"""

import random

from pathbudget.probes.channels import Datagram, DatagramBatch, QueuedError
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import AddressFamily, Metric, Target
from pathbudget.probes.stamp import tlv_answers, tlvs, wire
from pathbudget.probes.stamp.authentication import Key, ReplayWindow
from pathbudget.probes.stamp.events import Outcome
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.sender_session import SenderSession
from pathbudget.probes.stamp.timestamps import decode_error, from_ntp, from_ptp, to_ntp
from pathbudget.probes.stamp.tlv_answers import Seen
from pathbudget.probes.stamp.tlvs import SyncSource
from pathbudget.probes.stamp.trailer import choose_extensions, read_extensions

KEY = Key("fuzz", bytes(range(16)))
UNIX_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000
SECOND_NS = 1_000_000_000
FAR, NEAR, PORT = "192.0.2.1", "192.0.2.100", 8620
TIMEOUT_NS = SECOND_NS
SEEN = Seen(
    sender=NEAR,
    sender_port=40_000,
    local=FAR,
    local_port=PORT,
    traffic_class=0xB8,
    received=1,
    transmitted=2,
    follow_up=(1, 2, 2),
    sync_source=SyncSource.LOCAL,
    permitted_dscps=frozenset({0, 46}),
    reported_location=True,
)


def fuzz_one_wire(data: bytes) -> None:
    """What can be read is written again as it was, but for octets that must be zero."""
    for authenticated in (False, True):
        least = wire.base_octets(authenticated=authenticated)
        try:
            request = wire.decode_request(data, authenticated=authenticated)
            reply = wire.decode_reply(data, authenticated=authenticated)
        except wire.WireError:
            assert len(data) < least
            continue
        padding = bytes(16) if authenticated else b""
        asked = wire.encode_request(request, authenticated=authenticated) + padding
        answered = wire.encode_reply(reply, authenticated=authenticated) + padding
        assert len(asked) == len(answered) == least
        assert wire.decode_request(asked, authenticated=authenticated) == request
        assert wire.decode_reply(answered, authenticated=authenticated) == reply
        assert decode_error(reply.error).encode() == reply.error
        assert abs(from_ntp(reply.timestamp, UNIX_NS) - UNIX_NS) <= SECOND_NS << 31
        assert abs(from_ptp(reply.timestamp, UNIX_NS) - UNIX_NS) <= SECOND_NS << 32
        wire.is_reply(data, authenticated=authenticated)


def fuzz_one_tlvs(data: bytes) -> None:
    """No octet is lost, the answer is as long as the question, and answering twice is stable."""
    found, rest = tlvs.decode(data)
    assert tlvs.encode(found) + rest == data
    tlvs.usable(data, verified=True)
    tlvs.signed_part(data)
    for keys, must_sign in (((), False), ((KEY,), False), ((KEY,), True)):
        answer = tlv_answers.answer(
            data, SEEN, keys=keys, must_sign=must_sign, asked=b"\0\0\0\1", replied=b"\0\0\0\2"
        )
        assert len(answer.region) == len(data)
        assert answer.dscp is None or answer.dscp in (0, 46)
    for key in (None, KEY):
        read_extensions(bytes(wire.base_octets(authenticated=key is not None)) + data, key)


def fuzz_one_authentication(data: bytes) -> None:
    """Nothing is signed but what was signed, and no packet of a session is heard twice."""
    assert KEY.signed_base(data) == (len(data) >= 112 and KEY.sign(data[:96]) == data[96:112])
    window, heard = ReplayWindow(0, 0), {(0, 0)}
    for place in range(0, len(data) - 1, 2):
        packet = (data[place], data[place + 1])
        if window.admit(*packet):
            assert packet not in heard
            heard.add(packet)


def fuzz_one_reflector(data: bytes) -> None:
    """Any packet is answered with one as long, or counted as refused; also after others, and
    signed as it should be.
    """
    for policy in (
        ReflectorPolicy(PORT, max_sessions=2),
        ReflectorPolicy(PORT, stateful=False, ptp=True),
        ReflectorPolicy(PORT, keys=(KEY,), authenticated=False),
        ReflectorPolicy(PORT, keys=(KEY,)),
    ):
        reflector = ReflectorSession(policy)
        signed = data[:96].ljust(96, b"\0")
        packets = [data, data[::-1], signed + KEY.sign(signed) + data[96:]]
        for number, packet in enumerate(packets):
            now = UNIX_NS + number
            answer = reflector.receive(
                packet, NEAR, 40_000, FAR, 64, number, now, now + 5, MONOTONIC_NS
            )
            if answer is None:
                continue
            assert len(answer.payload) == len(packet)
            reflector.sent(answer, number)
            reflector.transmitted(number, now + 9)
            # A reply is no request: two reflectors do not answer each other.
            if len(packet) >= 44:
                again = reflector.receive(
                    answer.payload, NEAR, 40_000, FAR, 64, number, now, now + 5, MONOTONIC_NS
                )
                assert again is None
        assert reflector.answered + sum(reflector.refused.values()) >= len(packets)


def fuzz_one_sender(data: bytes) -> None:
    """Whatever comes as a reply or as an error: one outcome a packet, and no number by accident."""
    for key in (None, KEY):
        extensions = choose_extensions(0, b"", follow_up=True, dscp=46, key=key)
        sender = SenderSession(
            AddressFamily.IPV4, random.Random(1), extensions, default_port=PORT, dscp=46
        )
        now = Reading(MONOTONIC_NS, UNIX_NS, 100)
        target = Target("far", FAR)
        request = b""
        for seq in range(2):
            shot = Shot(0, seq, target, FAR, AddressFamily.IPV4, TIMEOUT_NS)
            number, request = sender.request(shot, now)
            sender.sent(number, 0, seq)
        later = Reading(MONOTONIC_NS + 5_000, UNIX_NS + 5_000, 100)
        ours = _reply_to(request, data, key)
        for payload in (data, ours, ours + data):
            arrival = Datagram(payload, FAR, PORT, NEAR, 64, 0, UNIX_NS + 4_000)
            sender.receive(0, DatagramBatch(arrivals=[arrival]), later)
        for quoted in (data, request[: len(data)]):
            error = QueuedError(data[0] if data else 3, 3, FAR, FAR, quoted, None)
            sender.receive(0, DatagramBatch(errors=[error]), later)
        end = Reading(MONOTONIC_NS + 2 * TIMEOUT_NS, UNIX_NS + 2 * TIMEOUT_NS, 100)
        sender.expire(end)
        sender.finish()
        outcomes = [event for event in sender.events() if isinstance(event, Outcome)]
        assert sorted(one.samples[0].seq for one in outcomes) == [0, 1]
        assert all(one.samples[0].metric == Metric.RTT for one in outcomes)
        assert outcomes[0].samples[0].value_ns is None or len(outcomes[0].samples) == 4
        assert sender.under_way == 0


def _reply_to(request: bytes, data: bytes, key: Key | None) -> bytes:
    """A reply that matches, with whatever stands in `data` for what the reflector says."""
    authenticated = key is not None
    asked = wire.decode_request(request, authenticated=authenticated)
    said = data[:28].ljust(28, b"\xff")
    reply = wire.Reply(
        int.from_bytes(said[:4]),
        int.from_bytes(said[4:12]) if said[26] & 1 else to_ntp(UNIX_NS + 2_000),
        int.from_bytes(said[12:14]),
        asked.ssid,
        int.from_bytes(said[14:22]) if said[26] & 2 else to_ntp(UNIX_NS + 1_000),
        asked.sequence,
        asked.timestamp,
        asked.error,
    )
    base = wire.encode_reply(reply, authenticated=authenticated)
    return base if key is None else base + key.sign(base)
