"""The Session-Reflector: one packet in, at most one packet out, never a longer one. No I/O here.

It has no clock: the times of a packet come with it, and what is claimed of the clock is set from
outside (`claim_clock`). Whatever is refused is counted under its reason in `refused`:

    too_short       shorter than the reply would be (41 octets, 112 authenticated)
    reply           has the form of a reply: two reflectors must not answer each other for ever
    from_our_port   sent from the port that we listen on, as a reflector's replies are
    unauthenticated the signature is none of ours
    replayed        an authenticated packet that has been answered, or is too old to tell
    table_full      authenticated, and no room for one more session

and under the words of `admit`, which speaks first. Without keys a full table refuses nobody:
sessions that find no room are answered without a state (counted in `without_state`), so a flood of
forged addresses cannot push out the sessions that are there.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pathbudget.probes.stamp import tlv_answers
from pathbudget.probes.stamp.authentication import Key, ReplayWindow
from pathbudget.probes.stamp.timestamps import (
    decode_error,
    encode_error,
    from_ntp,
    from_ptp,
    to_ntp,
    to_ptp,
)
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
)

SECOND_NS = 1_000_000_000
SWEEP_NS = SECOND_NS
SOFTWARE = int(Method.SOFTWARE_LOCAL)
SEQUENCE_MASK = 0xFFFF_FFFF
UNSTAMPED = 65_536
"""Replies of which the kernel's stamp is still awaited; of more, the oldest are given up."""
_ZEROS = bytes(BASE_OCTETS - 16)
_FOLLOW_UP_OCTETS = 4 + FOLLOW_UP.size
_ANSWERED_FOLLOW_UP = HEADER.pack(0, Kind.FOLLOW_UP, FOLLOW_UP.size)
_ASKED_FOLLOW_UP = _ANSWERED_FOLLOW_UP[1:]

Admit = Callable[[str, int], str]
"""Given the address of a sender and the monotonic time: empty, or why it is not answered."""


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
    session: "Session | None"
    sequence: int


class Session:
    """What is remembered of one sender: address, port, our address, SSID."""

    __slots__ = ("key", "last_ns", "replays", "reply", "stamped", "transmitted")

    def __init__(self, key: Key | None) -> None:
        self.key = key
        self.replays: ReplayWindow | None = None
        self.last_ns = 0
        self.transmitted = 0
        self.reply: tuple[int, int, int] = (0, 0, 0)
        """Sequence, T3 and method of the reply before; zero before the first."""
        self.stamped: tuple[int, int, int] | None = None
        """The same by the kernel's stamp, until it has been told."""

    def tell(self) -> "_Told":
        """Take the next number, and tell of a reply before: by the kernel's stamp where one has
        come since.
        """
        number = self.transmitted
        self.transmitted = number + 1
        stamped, self.stamped = self.stamped, None
        return number & SEQUENCE_MASK, stamped or self.reply, self.transmitted


_Place = tuple[str, int, str, int]
_Told = tuple[int, tuple[int, int, int], int]
"""Sequence number of the reply, follow-up in it, and how many replies there have been."""


class ReflectorSession:
    """All sessions of one reflector. See the module for the rules."""

    def __init__(self, policy: ReflectorPolicy, admit: Admit | None = None) -> None:
        self.refused: Counter[str] = Counter()
        self.answered = 0
        self.without_state = 0
        self._policy = policy
        self._admit = admit
        self._signed = bool(policy.keys) and policy.authenticated
        self._stateful = policy.stateful
        self._permitted = policy.permitted_dscps
        self._port = policy.port
        self._shortest = AUTHENTICATED_OCTETS if self._signed else TWAMP_REPLY_OCTETS
        self._encode = to_ptp if policy.ptp else to_ntp
        self._error = encode_error(None, ptp=policy.ptp)
        self._sync_source = SyncSource.LOCAL
        self._sessions: dict[_Place, Session] = {}
        self._latest: dict[tuple[str, int], int] = {}
        self._awaited: dict[int, tuple[Session, int]] = {}
        self._swept_ns: int | None = None

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
        reason = self._refusal(payload, sender, sender_port, monotonic_ns)
        if reason:
            self.refused[reason] += 1
            return None
        if self._signed:
            fields = SIGNED_REQUEST.unpack_from(payload)
            place = (sender, sender_port, local, fields[3])
            found = self._authenticate(place, payload, fields, received_unix_ns, monotonic_ns)
            if isinstance(found, str):
                self.refused[found] += 1
                return None
            session: Session | None = found
        else:
            if payload[16:BASE_OCTETS] == _ZEROS:
                fields = OPEN_REQUEST.unpack_from(payload)
                place = (sender, sender_port, local, fields[3])
            else:  # the padding of TWAMP, and no SSID in it
                fields = OPEN_REQUEST.unpack_from(payload.ljust(BASE_OCTETS, b"\0"))
                place = (sender, sender_port, local, 0)
            session = self._sessions.get(place)
            if session is None and self._stateful:
                session = self._begin(place, None, monotonic_ns)
        sequence, sent, error, ssid = fields
        if session is None:
            told: _Told = (sequence, (0, 0, 0), 0)
            self.without_state += 1
        else:
            session.last_ns = monotonic_ns
            told = session.tell() if self._stateful else (sequence, (0, 0, 0), 0)
        encode = self._encode
        left = encode(now_unix_ns)
        base = (SIGNED_REPLY if self._signed else OPEN_REPLY).pack(
            told[0],
            left,
            self._error,
            ssid,
            encode(received_unix_ns),
            sequence,
            sent,
            error,
            UNKNOWN_TTL if ttl is None else ttl,
        )
        if self._signed:
            base += _key_of(session).sign(base)
        dscp = traffic_class >> 2 if traffic_class else 0
        if len(payload) > len(base):
            region, asked = self._extensions(payload, base, place, session, told, traffic_class)
            base += region
            dscp = dscp if asked is None else asked
        elif len(payload) < len(base):
            base = base[: len(payload)]
        if session is not None:
            session.reply = (told[0], left, SOFTWARE)
        if dscp and self._permitted is not None and dscp not in self._permitted:
            dscp = 0
        self.answered += 1
        return Answer(base, dscp or None, session, told[0])

    def sent(self, answer: Answer, key: int) -> None:
        """An answer was handed to the kernel, which will report its stamp under this key."""
        if answer.session is None or not self._stateful:
            return
        self._awaited[key] = (answer.session, answer.sequence)
        if len(self._awaited) > UNSTAMPED:
            del self._awaited[next(iter(self._awaited))]

    def transmitted(self, key: int, kernel_unix_ns: int) -> None:
        """The kernel's stamp of an answer: goes into the next reply of its session."""
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            session, sequence = awaited
            session.stamped = (sequence, self._encode(kernel_unix_ns), SOFTWARE)

    def _refusal(self, payload: bytes, sender: str, sender_port: int, monotonic_ns: int) -> str:
        """Why not, as far as it can be told without effort; empty where nothing speaks against."""
        if self._admit is not None:
            reason = self._admit(sender, monotonic_ns)
            if reason:
                return reason
        if len(payload) < self._shortest:
            return "too_short"
        if sender_port == self._port:
            return "from_our_port"
        return "reply" if is_reply(payload, authenticated=self._signed) else ""

    def _authenticate(
        self,
        place: _Place,
        payload: bytes,
        fields: tuple[int, int, int, int],
        received_unix_ns: int,
        monotonic_ns: int,
    ) -> Session | str:
        """The session of a packet that is signed and new, or why it is not answered."""
        session = self._sessions.get(place)
        key = self._signer(payload, session)
        if key is None:
            return "unauthenticated"
        sequence, timestamp, error, ssid = fields
        read = from_ptp if decode_error(error).ptp else from_ntp
        sent_ns = read(timestamp, received_unix_ns)
        latest = self._latest.get((key.name, ssid))
        if session is None:
            # A packet of an earlier session, or of one with another address, is no beginning.
            if latest is not None and sent_ns <= latest:
                return "replayed"
            session = self._begin(place, key, monotonic_ns)
            if session is None:
                return "table_full"
            session.replays = ReplayWindow(sequence, sent_ns)
        elif session.replays is None or not session.replays.admit(sequence, sent_ns):
            return "replayed"
        if latest is None or sent_ns > latest:
            self._latest[key.name, ssid] = sent_ns
        return session

    def _signer(self, payload: bytes, session: Session | None) -> Key | None:
        """Whose signature it is; of a session that is known, only its own key is tried."""
        keys = self._policy.keys if session is None or session.key is None else (session.key,)
        return next((key for key in keys if key.signed_base(payload)), None)

    def _begin(self, place: _Place, key: Key | None, monotonic_ns: int) -> Session | None:
        """A new session, where there is room or can be made."""
        if len(self._sessions) >= self._policy.max_sessions:
            self._sweep(monotonic_ns)
            if len(self._sessions) >= self._policy.max_sessions:
                return None
        session = self._sessions[place] = Session(key)
        return session

    def _sweep(self, monotonic_ns: int) -> None:
        """Forget the silent ones; not more often than once a second."""
        if self._swept_ns is not None and monotonic_ns - self._swept_ns < SWEEP_NS:
            return
        self._swept_ns = monotonic_ns
        oldest = monotonic_ns - self._policy.idle_ns
        for place in [one for one, session in self._sessions.items() if session.last_ns < oldest]:
            del self._sessions[place]

    def _extensions(
        self,
        payload: bytes,
        base: bytes,
        place: _Place,
        session: Session | None,
        told: _Told,
        traffic_class: int | None,
    ) -> Answered:
        """Answer what stands behind the base packet."""
        region = payload[len(base) :]
        if not self._policy.keys:
            usual = _only_follow_up(region, told[1])
            if usual is not None:
                return Answered(usual)
        sender, sender_port, local, _ = place
        seen = Seen(
            sender=sender,
            sender_port=sender_port,
            local=local,
            local_port=self._port,
            traffic_class=traffic_class,
            received=told[2] & SEQUENCE_MASK,
            transmitted=told[2] & SEQUENCE_MASK,
            follow_up=told[1],
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
