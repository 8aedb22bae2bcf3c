"""The two timestamp formats of STAMP and its error estimate, exactly, both ways.

    NTP     32 bits of seconds since 1900, 32 bits of fraction (RFC 5905); Z = 0, the default
    PTPv2   32 bits of seconds since 1970, 32 bits of nanoseconds (RFC 8186); Z = 1

Both wrap: NTP in 2036, PTPv2 in 2106. So a timestamp is read as the one nearest to a time that is
known (`near_unix_ns`). A PTP clock may count TAI, not UTC; the packet does not say, and what it
says is taken as it is.
"""

from typing import NamedTuple

NTP_UNIX_SECONDS = 2_208_988_800
"""From 1900 to 1970."""
SECOND_NS = 1_000_000_000
_NTP_UNIX = NTP_UNIX_SECONDS << 32
_LOW = 0xFFFF_FFFF
_ALL = 0xFFFF_FFFF_FFFF_FFFF
_HALF_ERA = 1 << 63
_HALF = 1 << 31
_WRAP = 1 << 32
MAX_SCALE = 63
MAX_MULTIPLIER = 255


def to_ntp(unix_ns: int) -> int:
    """As 64 bits of NTP time. One unit is 0.23 ns: no nanosecond is lost."""
    return (unix_ns << 32) // SECOND_NS + _NTP_UNIX & _ALL


def from_ntp(timestamp: int, near_unix_ns: int) -> int:
    """64 bits of NTP time as Unix nanoseconds, in the era that lies nearest; rounded."""
    near = (near_unix_ns << 32) // SECOND_NS
    since_1970 = near - _HALF_ERA + (timestamp - _NTP_UNIX - near + _HALF_ERA & _ALL)
    return since_1970 * SECOND_NS + _HALF >> 32


def ntp_between(earlier: int, later: int) -> int:
    """Nanoseconds from one 64 bits of NTP time to another, signed, the shorter way round."""
    return ((later - earlier + _HALF_ERA & _ALL) - _HALF_ERA) * SECOND_NS + _HALF >> 32


def to_ptp(unix_ns: int) -> int:
    """As 64 bits of truncated PTPv2 time."""
    seconds, nanoseconds = divmod(unix_ns, SECOND_NS)
    return (seconds & _LOW) << 32 | nanoseconds


def from_ptp(timestamp: int, near_unix_ns: int) -> int:
    """64 bits of truncated PTPv2 time as Unix nanoseconds, in the era that lies nearest."""
    near = near_unix_ns // SECOND_NS
    seconds = near + ((timestamp >> 32) - near + _HALF) % _WRAP - _HALF
    return seconds * SECOND_NS + (timestamp & _LOW)


class ErrorEstimate(NamedTuple):
    """How wrong a clock may be (RFC 4656 section 4.1.2, RFC 8186 section 2.3).

    The error is ``multiplier * 2 ** (scale - 32)`` seconds. Only with `synchronised` does it speak
    of the distance to UTC. A multiplier of 0 is not allowed: whoever sends it states no error.
    """

    synchronised: bool
    ptp: bool
    scale: int
    multiplier: int

    @property
    def error_ns(self) -> int:
        """In nanoseconds, rounded up."""
        return -(-(self.multiplier * SECOND_NS << self.scale) >> 32)

    def encode(self) -> int:
        """As the 16 bits of a packet."""
        return self.synchronised << 15 | self.ptp << 14 | self.scale << 8 | self.multiplier


def decode_error(bits: int) -> ErrorEstimate:
    """The 16 bits of a packet."""
    return ErrorEstimate(bool(bits >> 15 & 1), bool(bits >> 14 & 1), bits >> 8 & 63, bits & 255)


def encode_error(error_ns: int | None, *, ptp: bool = False) -> int:
    """The 16 bits that state this error: the smallest that is not below it.

    None: nobody vouches for this clock. S is then 0 and the error the largest there is.
    """
    if error_ns is None:
        return ErrorEstimate(False, ptp, MAX_SCALE, MAX_MULTIPLIER).encode()
    units = -(-(max(error_ns, 0) << 32) // SECOND_NS)
    scale = max(0, units.bit_length() - 8)
    multiplier = -(-units >> scale)
    if multiplier > MAX_MULTIPLIER:  # rounding up has carried into a ninth bit
        scale += 1
        multiplier = -(-units >> scale)
    if scale > MAX_SCALE:
        return ErrorEstimate(True, ptp, MAX_SCALE, MAX_MULTIPLIER).encode()
    return ErrorEstimate(True, ptp, scale, max(1, multiplier)).encode()
