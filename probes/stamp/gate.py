"""Which signed packets a reflector answers: those of its keys, each once.

A packet is known again by its signature, wherever it comes from: the last ones are remembered. What
is older than that memory is refused in the session that it belongs to, by its number and timestamp
(`authentication.ReplayWindow`), and where that session has been forgotten, by the latest timestamp
that was heard from its place under its key. Senders that share a key, and by chance an SSID, have
places of their own and do not meddle with each other, whatever their clocks show. What remains: a
packet that has been recorded for long may be answered once more to another address. That tells
nothing to anybody, and costs one packet for one packet within the rate of that address.
"""

from collections.abc import Sequence

from pathbudget.probes.stamp.authentication import OVERTAKEN_NS, Key, ReplayWindow
from pathbudget.probes.stamp.reflector_table import Place, Session, SessionTable
from pathbudget.probes.stamp.timestamps import decode_error, from_ntp, from_ptp
from pathbudget.probes.stamp.wire import SIGNED_OCTETS, is_reply, is_unsigned_request

SECOND_NS = 1_000_000_000
SIGNATURES = 65_536
"""At least so many packets are known again by their signature, at most twice as many."""
PLACES = 65_536
"""Places of which the latest timestamp is remembered after their session."""
JUNK_PER_SECOND = 50_000
"""Wrong signatures that are looked at; then only packets of known sessions are."""
_KNOWN_BY = slice(SIGNED_OCTETS, SIGNED_OCTETS + 8)


class Gate:
    """All keys of one reflector, and what it has heard under them."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self._heard: set[bytes] = set()
        self._heard_before: set[bytes] = set()
        self._latest: dict[tuple[str, Place], int] = {}
        self._junk = 0
        self._junk_ends_ns = 0
        self._passing: tuple[Key, Place, int, int, bytes] | None = None

    def refusal(
        self,
        payload: bytes,
        fields: Sequence[int],
        place: Place,
        session: Session | None,
        received_unix_ns: int,
        monotonic_ns: int,
    ) -> str:
        """Why a packet is not answered: `reply`, `unsigned`, `unauthenticated`, `replayed`,
        `over_junk_rate`. Empty where it may be: then `enter` takes it, or it is forgotten.
        """
        if is_reply(payload, authenticated=True):
            return "unsigned" if is_unsigned_request(payload) else "reply"
        if session is None and self._flooded(monotonic_ns):
            return "over_junk_rate"
        key = self._signer(payload, session)
        if key is None:
            self._junk += 1
            return "unsigned" if is_unsigned_request(payload) else "unauthenticated"
        signature = payload[_KNOWN_BY]
        read = from_ptp if decode_error(fields[2]).ptp else from_ntp
        sent_ns = read(fields[1], received_unix_ns)
        if signature in self._heard or signature in self._heard_before:
            return "replayed"
        if session is None:
            latest_ns = self._latest.get((key.name, place))
            if latest_ns is not None and sent_ns < latest_ns - OVERTAKEN_NS:
                return "replayed"
        elif session.replays is None or not session.replays.admit(fields[0], sent_ns):
            return "replayed"
        self._passing = (key, place, fields[0], sent_ns, signature)
        return ""

    def enter(self, session: Session | None, table: SessionTable, monotonic_ns: int) -> Session:
        """The session of the packet that was looked at last, which is going to be answered."""
        assert self._passing is not None
        key, place, sequence, sent_ns, signature = self._passing
        self._passing = None
        if session is None:
            session = table.begin(place, key, monotonic_ns)
            session.replays = ReplayWindow(sequence, sent_ns)
        self._heard.add(signature)
        if len(self._heard) >= SIGNATURES:
            self._heard, self._heard_before = set(), self._heard
        latest, heard_from = self._latest, (key.name, place)
        latest[heard_from] = max(sent_ns, latest.get(heard_from, sent_ns))
        if len(latest) > PLACES:
            del latest[next(iter(latest))]
        return session

    def _signer(self, payload: bytes, session: Session | None) -> Key | None:
        """Whose signature it is; of a session that is known, only its own key is tried."""
        keys = self._keys if session is None or session.key is None else (session.key,)
        return next((key for key in keys if key.signed_base(payload)), None)

    def _flooded(self, monotonic_ns: int) -> bool:
        """Whether this second has had more wrong signatures than are looked at."""
        if monotonic_ns >= self._junk_ends_ns:
            self._junk = 0
            self._junk_ends_ns = monotonic_ns + SECOND_NS
        return self._junk >= JUNK_PER_SECOND
