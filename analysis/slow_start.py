"""How many round trips a request of so many bytes needs before all of it has left.

RFC 6928 lets a new connection send `INITIAL_WINDOW` bytes at once; the window doubles per round
trip. A connection that was idle for longer than its retransmission timer starts there again (RFC
5681 section 4.1; RFC 7661; Linux ``tcp_slow_start_after_idle`` = 1), so a warm connection needs the
same rounds for its next request.
"""

import math

SEGMENT_BYTES = 1460
"""TCP payload of a packet of 1500 bytes over IPv4 without options."""

INITIAL_WINDOW = min(10 * SEGMENT_BYTES, max(2 * SEGMENT_BYTES, 14600))
"""Bytes of the first flight, RFC 6928 section 2."""


def flights(request_bytes: int) -> int:
    """Flights for `request_bytes` of payload: ceil(log2(B / IW + 1)), at least one."""
    return max(1, math.ceil(math.log2(request_bytes / INITIAL_WINDOW + 1)))


def extra_round_trips(request_bytes: int) -> int:
    """Round trips that the bytes cost beyond the one that every request takes."""
    return flights(request_bytes) - 1
