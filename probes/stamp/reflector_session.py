"""The Session-Reflector: one packet in, at most one packet out, never a longer one. No I/O here.

It has no clock: the times of a packet come with it, and what is claimed of the clock is set from
outside (`claim_clock`). Whatever is refused is counted under its reason in `refused`:

    not_allowed       the sender is none that `allows` names; before all else
    too_short         shorter than the reply would be (41 octets, 112 authenticated)
    reply             has the form of a reply: two reflectors must not answer each other for ever
    signed_but_no_key a signed packet, and we have no key
    unsigned          a packet without a signature, and we answer only signed ones
    unauthenticated, replayed, over_junk_rate
                      see `gate.py`

and under the words of `admit`. That one speaks last, so that only what would be answered uses up
what a sender may be answered. A full table refuses nobody: see `reflector_table.py` for who makes
room.
"""

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pathbudget.probes.stamp import tlv_answers
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.gate import Gate
from pathbudget.probes.stamp.reflector_table import Place, Session, SessionTable
from pathbudget.probes.stamp.timestamps import encode_error, to_ntp, to_ptp
from pathbudget.probes.stamp.tlv_answers import Answered, Seen
from pathbudget.probes.stamp.tlvs import FOLLOW_UP, HEADER, Kind, Method, SyncSource
from pathbudget.probes.stamp.wire import (
    AUTHENTICATED_OCTETS,
    BASE_OCTETS,
    OPEN_REPLY,
    OPEN_REQUEST,
    SIGNED_REPLY,
    SIGNED_REQUEST,
    TWAMP_REPLY_OCTETS,
    UNKNOWN_TTL,
    is_reply,
    is_signed_request,
    is_unsigned_request,
)

SECOND_NS = 1_000_000_000
SOFTWARE = int(Method.SOFTWARE_LOCAL)
SEQUENCE_MASK = 0xFFFF_FFFF
UNSTAMPED = 65_536
"""Replies of which the kernel's stamp is still awaited; of more, the oldest are given up."""
_ZEROS = bytes(BASE_OCTETS - 16)
_FOLLOW_UP_OCTETS = 4 + FOLLOW_UP.size
_USUAL_OCTETS = BASE_OCTETS + _FOLLOW_UP_OCTETS
_ANSWERED_FOLLOW_UP = HEADER.pack(0, Kind.FOLLOW_UP, FOLLOW_UP.size)
_ASKED_FOLLOW_UP = _ANSWERED_FOLLOW_UP[1:]
_ASKED_AT = slice(BASE_OCTETS + 1, BASE_OCTETS + 4)
_USUAL_REPLY = struct.Struct(f"{OPEN_REPLY.format}4s{FOLLOW_UP.format[1:]}")
"""What our own sender gets: the base packet and a Follow-Up behind it."""
_NOTHING = (0, 0, 0)
_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end

Admit = Callable[[str, int], str]
"""Given the address of a sender and the monotonic time: empty, or why it is not answered."""
Allows = Callable[[str], bool]
"""Whether an address may be answered at all."""


@dataclass(frozen=True, slots=True)
class ReflectorPolicy:
    """What one reflector does.

    With `keys` only authenticated packets are answered (`authenticated`); set that to false to
    answer all, and sign no more than their extensions. `permitted_dscps` are those that a reply
    may be given; None: all. A session is forgotten when it was silent for `idle_ns`.
    """

    port: int
    stateful: bool = True
    keys: tuple[Key, ...] = ()
    authenticated: bool = True
    max_sessions: int = 10_000
    idle_ns: int = 900 * SECOND_NS
    permitted_dscps: frozenset[int] | None = None
    report_location: bool = True
    ptp: bool = False


class Answer(NamedTuple):
    """A reply to send back to where the request came from. `dscp` None: that of the socket."""

    payload: bytes
    dscp: int | None
    session: Session | None
    sequence: int


_FollowUp = tuple[int, int, int]
"""Sequence, timestamp and method of an earlier reply."""


class ReflectorSession:
    """All sessions of one reflector. See the module for the rules."""

    def __init__(
        self, policy: ReflectorPolicy, admit: Admit | None = None, allows: Allows | None = None
    ) -> None:
        self.refused: Counter[str] = Counter()
        self.answered = 0
        self._policy = policy
        self._admit = admit
        self._allows = allows
        self._signed = bool(policy.keys) and policy.authenticated
        self._stateful = policy.stateful
        self._permitted = policy.permitted_dscps
        self._port = policy.port
        self._shortest = AUTHENTICATED_OCTETS if self._signed else TWAMP_REPLY_OCTETS
        self._encode = to_ptp if policy.ptp else to_ntp
        self._error = encode_error(None, ptp=policy.ptp)
        self._sync_source = SyncSource.LOCAL
        self._table = SessionTable(policy.max_sessions, policy.idle_ns)
        self._sessions = self._table.by_place
        self._gate = Gate(policy.keys)
        self._awaited: dict[int, tuple[Session, int]] = {}

    @property
    def sessions(self) -> int:
        """How many are remembered."""
        return len(self._sessions)

    def claim_clock(self, error_ns: int | None, source: SyncSource | None = None) -> None:
        """Say from now on that our clock is within `error_ns` of UTC; None: nobody vouches."""
        self._error = encode_error(error_ns, ptp=self._policy.ptp)
        disciplined = SyncSource.PTP if self._policy.ptp else SyncSource.NTP
        self._sync_source = source or (SyncSource.LOCAL if error_ns is None else disciplined)

    def receive(
        self,
        payload: bytes,
        sender: str,
        sender_port: int,
        local: str,
        ttl: int | None,
        traffic_class: int | None,
        received_unix_ns: int,
        now_unix_ns: int,
        monotonic_ns: int,
    ) -> Answer | None:
        """Answer one packet, or not. `received_unix_ns` becomes T2 and `now_unix_ns` T3;
        `monotonic_ns` only measures silence and rates.
        """
        reason = ""
        if self._allows is not None and not self._allows(sender):
            reason = "not_allowed"
        elif len(payload) < self._shortest:
            reason = "unsigned" if self._signed and is_unsigned_request(payload) else "too_short"
        if reason:
            self.refused[reason] += 1
            return None
        session: Session | None
        if self._signed:
            fields = SIGNED_REQUEST.unpack_from(payload)
            place = (sender, sender_port, local, fields[3])
            session = self._sessions.get(place)
            reason = self._gate.refusal(
                payload, fields, place, session, received_unix_ns, monotonic_ns
            )
        else:
            if payload[16:BASE_OCTETS] == _ZEROS:
                fields = OPEN_REQUEST.unpack_from(payload)
                place = (sender, sender_port, local, fields[3])
            elif is_reply(payload):
                self.refused["signed_but_no_key" if is_signed_request(payload) else "reply"] += 1
                return None
            else:  # the padding of TWAMP, and no SSID in it
                fields = OPEN_REQUEST.unpack_from(payload.ljust(BASE_OCTETS, b"\0"))
                place = (sender, sender_port, local, 0)
            session = self._sessions.get(place)
        if not reason and self._admit is not None:
            reason = self._admit(sender, monotonic_ns)
        if reason:
            self.refused[reason] += 1
            return None
        if self._signed:
            session = self._gate.enter(session, self._table, monotonic_ns)
        elif session is None and self._stateful:
            session = self._table.begin(place, None, monotonic_ns)
        told = fields[0]
        if session is not None:
            session.last_ns = monotonic_ns
            if self._stateful:
                told = session.transmitted & SEQUENCE_MASK
                session.transmitted += 1
        encode = self._encode
        left = encode(now_unix_ns)
        dscp = traffic_class >> 2 if traffic_class else 0
        reply, asked = self._reply(
            payload, place, session, traffic_class,
            (told, left, self._error, fields[3], encode(received_unix_ns), fields[0], fields[1],
             fields[2], UNKNOWN_TTL if ttl is None else ttl),
        )  # fmt: skip
        if asked is not None:
            dscp = asked
        if session is not None and self._stateful:
            session.reply = (told, left, SOFTWARE)
        if dscp and self._permitted is not None and dscp not in self._permitted:
            dscp = 0
        self.answered += 1
        return _new(Answer, (reply, dscp or None, session, told))

    def sent(self, answer: Answer, key: int) -> bool:
        """An answer was handed to the kernel, which will report its stamp under this key. Whether
        anybody waits for that: its session has asked for a Follow-Up.
        """
        session = answer[2]
        if session is None or not session.asks:
            return False
        awaited = self._awaited
        awaited[key] = (session, answer[3])
        if len(awaited) > UNSTAMPED:
            del awaited[next(iter(awaited))]
        return True

    def transmitted(self, key: int, kernel_unix_ns: int) -> None:
        """The kernel's stamp of an answer: goes into the next reply of its session."""
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            session, sequence = awaited
            session.stamped = (sequence, self._encode(kernel_unix_ns), SOFTWARE)

    def _reply(
        self,
        payload: bytes,
        place: Place,
        session: Session | None,
        traffic_class: int | None,
        fields: tuple[int, ...],
    ) -> tuple[bytes, int | None]:
        """The octets of a reply, and the DSCP that its request asked for."""
        octets = len(payload)
        if not self._policy.keys:
            if octets == BASE_OCTETS:
                return OPEN_REPLY.pack(*fields), None
            if octets == _USUAL_OCTETS and payload[_ASKED_AT] == _ASKED_FOLLOW_UP:
                told = self._follow_up(session)
                return _USUAL_REPLY.pack(*fields, _ANSWERED_FOLLOW_UP, *told), None
        base = (SIGNED_REPLY if self._signed else OPEN_REPLY).pack(*fields)
        if self._signed:
            base += _key_of(session).sign(base)
        if octets <= len(base):
            return base[:octets], None
        region, asked = self._extensions(payload, base, place, session, traffic_class)
        return base + region, asked

    def _follow_up(self, session: Session | None) -> _FollowUp:
        """Tell of a reply before: by the kernel's stamp where one has come since. Once."""
        if session is None or not self._stateful:
            return _NOTHING
        session.asks = True
        stamped, session.stamped = session.stamped, None
        return stamped or session.reply

    def _extensions(
        self,
        payload: bytes,
        base: bytes,
        place: Place,
        session: Session | None,
        traffic_class: int | None,
    ) -> Answered:
        """Answer what stands behind the base packet."""
        region = payload[len(base) :]
        follow_up = self._follow_up(session) if _ASKED_FOLLOW_UP in region else _NOTHING
        if not self._policy.keys:
            usual = _only_follow_up(region, follow_up)
            if usual is not None:
                return Answered(usual)
        sender, sender_port, local, _ = place
        replies = 0 if session is None else session.transmitted & SEQUENCE_MASK
        seen = Seen(
            sender=sender,
            sender_port=sender_port,
            local=local,
            local_port=self._port,
            traffic_class=traffic_class,
            received=replies,
            transmitted=replies,
            follow_up=follow_up,
            sync_source=self._sync_source,
            permitted_dscps=self._permitted,
            reported_location=self._policy.report_location,
        )
        key = session.key if session is not None else None
        return tlv_answers.answer(
            region,
            seen,
            keys=self._policy.keys if key is None else (key,),
            must_sign=self._signed,
            asked=payload[:4],
            replied=base[:4],
        )


def _key_of(session: Session | None) -> Key:
    """The key of a session that has been authenticated."""
    assert session is not None
    assert session.key is not None
    return session.key


def _only_follow_up(region: bytes, follow_up: tuple[int, int, int]) -> bytes | None:
    """The short way for what our own sender sends: a Follow-Up, then at most Extra Padding."""
    if region[1:4] != _ASKED_FOLLOW_UP:
        return None
    answered = _ANSWERED_FOLLOW_UP + FOLLOW_UP.pack(*follow_up)
    rest = len(region) - _FOLLOW_UP_OCTETS
    if rest == 0:
        return answered
    padding = region[_FOLLOW_UP_OCTETS + 1 :]
    if rest < 4 or padding[:3] != HEADER.pack(0, Kind.EXTRA_PADDING, rest - 4)[1:]:
        return None
    return answered + b"\0" + padding
