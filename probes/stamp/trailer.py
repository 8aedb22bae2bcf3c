"""What our sender puts behind the base packet, and reads there in a reply."""

from typing import NamedTuple

from pathbudget.probes.stamp import tlvs
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.tlvs import FOLLOW_UP, HEADER, HEADER_OCTETS, FollowUp, Kind
from pathbudget.probes.stamp.wire import AUTHENTICATED_OCTETS, BASE_OCTETS, HMAC_OCTETS, base_octets

_ANSWERED_FOLLOW_UP = HEADER.pack(0, Kind.FOLLOW_UP, FOLLOW_UP.size)
_VALUE = BASE_OCTETS + HEADER_OCTETS
_HMAC_HEADER = HEADER.pack(tlvs.UNRECOGNISED, Kind.HMAC, HMAC_OCTETS)


class Extensions(NamedTuple):
    """The extensions of every request of a sender: those to be signed, and padding behind them."""

    asked: bytes
    padding: bytes
    key: Key | None

    def build(self, sequence: bytes) -> bytes:
        """The octets behind the base packet; `sequence` as on the wire."""
        if self.key is None or not self.asked:
            return self.asked + self.padding
        return self.asked + _HMAC_HEADER + self.key.sign(sequence + self.asked) + self.padding

    @property
    def octets(self) -> int:
        """How long they are."""
        signature = HEADER_OCTETS + HMAC_OCTETS if self.key is not None and self.asked else 0
        return len(self.asked) + signature + len(self.padding)


def choose_extensions(
    octets: int, content: bytes, *, follow_up: bool, dscp: int, key: Key | None
) -> Extensions:
    """What to send in a packet of `octets`, 0 for as few as possible. `content` fills it up.

    Raises:
        ValueError: it cannot have that size; the message says which it can have.
    """
    asked = tlvs.request(Kind.FOLLOW_UP, FOLLOW_UP.size) if follow_up else b""
    if dscp:
        asked += tlvs.class_of_service(dscp)
    bare = Extensions(asked, b"", key)
    least = base_octets(authenticated=key is not None) + bare.octets
    missing = octets - least
    if octets == 0 or missing == 0:
        return bare
    if missing < HEADER_OCTETS:
        raise ValueError(f"{least}, or {least + HEADER_OCTETS} and more")
    return bare._replace(padding=tlvs.extra_padding(content[: missing - HEADER_OCTETS]))


class Read(NamedTuple):
    """What a reply says in its extensions; None where it says nothing, or nothing to be trusted."""

    follow_up: FollowUp | None
    class_of_service: tlvs.ClassOfService | None


def read_extensions(payload: bytes, key: Key | None) -> Read:
    """Read what stands behind the base packet of a reply."""
    if key is None:
        if payload[BASE_OCTETS:_VALUE] == _ANSWERED_FOLLOW_UP and len(payload) == _VALUE + 16:
            return Read(FollowUp(*FOLLOW_UP.unpack_from(payload, _VALUE)), None)  # the usual one
        region = payload[BASE_OCTETS:]
        found = tlvs.usable(region, verified=False)
    else:
        region = payload[AUTHENTICATED_OCTETS:]
        place = tlvs.signed_part(region)
        if place is None:
            return Read(None, None)
        covered = payload[:4] + region[: place.start]
        found = tlvs.usable(region, verified=key.verify(covered, region[place.value]))
    follow_up, service = found.get(Kind.FOLLOW_UP), found.get(Kind.CLASS_OF_SERVICE)
    return Read(
        None if follow_up is None else tlvs.read_follow_up(follow_up),
        None if service is None else tlvs.read_class_of_service(service),
    )
