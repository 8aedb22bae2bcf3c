"""What the kernel knows of a TCP connection: struct tcp_info (linux/tcp.h). Bytes in, record out.

Kernels have made the structure longer over the years, never changed it: a field that this kernel
does not have yet is None.
"""

import struct
from dataclasses import dataclass

from pathbudget.probes.record import Note

TCP_INFO_BYTES = 256
"""More than any kernel fills."""

_UNLIMITED = 0x7FFFFFFF
"""Slow-start threshold that has never been met (TCP_INFINITE_SSTHRESH)."""
_NEVER = 0xFFFFFFFF
"""Smallest round trip while there is none."""
_APP_LIMITED_OFFSET, _APP_LIMITED_BIT = 7, 1
_MICROSECOND = 1_000

_RTO, _MSS, _UNACKNOWLEDGED, _RTT, _RTT_VARIATION = 8, 16, 24, 68, 72
_SSTHRESH, _CWND, _RETRANSMITS, _BYTES_ACKED, _BYTES_RECEIVED = 76, 80, 100, 120, 128
_NOT_SENT, _MIN_RTT, _DELIVERY_RATE, _BUSY, _WINDOW_LIMITED = 144, 148, 160, 168, 176
_BUFFER_LIMITED, _BYTES_SENT, _PEER_WINDOW = 184, 200, 228
_U32, _U64 = struct.Struct("@I"), struct.Struct("@Q")


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """A connection as of one moment. None: this kernel does not say, or has nothing to say yet."""

    mss: int | None = None
    """Bytes of payload in a full segment that we send, TCP options taken out."""
    cwnd: int | None = None
    """Congestion window, in segments."""
    ssthresh: int | None = None
    """Slow-start threshold, in segments; None while no loss has set one."""
    rtt_ns: int | None = None
    """Smoothed round trip (RFC 6298)."""
    rtt_variation_ns: int | None = None
    """Its mean deviation."""
    min_rtt_ns: int | None = None
    """The smallest round trip of late (5 minutes)."""
    retransmission_timeout_ns: int | None = None
    retransmits: int | None = None
    """Segments sent again, of the whole life of the connection."""
    unacknowledged: int | None = None
    """Segments under way."""
    delivery_rate: int | None = None
    """Bytes per second, as the latest acknowledgements show it."""
    application_limited: bool | None = None
    """That rate was bounded by how fast we wrote, not by the path."""
    bytes_acknowledged: int | None = None
    bytes_received: int | None = None
    bytes_sent: int | None = None
    """With what was sent again."""
    bytes_not_sent: int | None = None
    """Written, still in our send queue."""
    busy_ns: int | None = None
    """How long there was something to send or unacknowledged."""
    window_limited_ns: int | None = None
    """Of that, how long the other end's receive window was in the way."""
    buffer_limited_ns: int | None = None
    """Of that, how long our own send buffer was."""
    congestion: str | None = None
    """Name of the congestion control: ``cubic``, ``bbr`` ..."""
    peer_window: int | None = None
    """Receive window that the other end offers, bytes."""

    def notes(self) -> dict[str, Note]:
        """What a sample keeps of it; keys that have nothing to say are left out.

        ``mss_bytes``, ``cwnd_segments``, ``ssthresh_segments``, ``rtt_us``, ``rttvar_us``,
        ``min_rtt_us``, ``retransmits``, ``delivery_rate_bps`` (bits per second),
        ``application_limited``, ``bytes_acknowledged``, ``bytes_sent``, ``busy_us``,
        ``window_limited_us``, ``buffer_limited_us``, ``peer_window_bytes``, ``congestion``.
        """
        rate = self.delivery_rate
        found: dict[str, Note | None] = {
            "mss_bytes": self.mss,
            "cwnd_segments": self.cwnd,
            "ssthresh_segments": self.ssthresh,
            "rtt_us": _us(self.rtt_ns),
            "rttvar_us": _us(self.rtt_variation_ns),
            "min_rtt_us": _us(self.min_rtt_ns),
            "retransmits": self.retransmits,
            "delivery_rate_bps": None if rate is None else rate * 8,
            "application_limited": self.application_limited,
            "bytes_acknowledged": self.bytes_acknowledged,
            "bytes_sent": self.bytes_sent,
            "busy_us": _us(self.busy_ns),
            "window_limited_us": _us(self.window_limited_ns),
            "buffer_limited_us": _us(self.buffer_limited_ns),
            "peer_window_bytes": self.peer_window,
            "congestion": self.congestion,
        }
        return {key: value for key, value in found.items() if value is not None}


def parse_tcp_info(info: bytes) -> TcpInfo | None:
    """Read what this kernel gave; None where it does not reach the fields that all kernels have."""
    if len(info) < _RETRANSMITS + _U32.size:
        return None
    ssthresh, smallest = _u32(info, _SSTHRESH), _u32(info, _MIN_RTT)
    rate = _u64(info, _DELIVERY_RATE)
    return TcpInfo(
        mss=_u32(info, _MSS),
        cwnd=_u32(info, _CWND),
        ssthresh=None if ssthresh is None or ssthresh >= _UNLIMITED else ssthresh,
        rtt_ns=_ns(_u32(info, _RTT)),
        rtt_variation_ns=_ns(_u32(info, _RTT_VARIATION)),
        min_rtt_ns=_ns(None if smallest in (0, _NEVER) else smallest),
        retransmission_timeout_ns=_ns(_u32(info, _RTO)),
        retransmits=_u32(info, _RETRANSMITS),
        unacknowledged=_u32(info, _UNACKNOWLEDGED),
        delivery_rate=rate or None,
        application_limited=bool(info[_APP_LIMITED_OFFSET] & _APP_LIMITED_BIT) if rate else None,
        bytes_acknowledged=_u64(info, _BYTES_ACKED),
        bytes_received=_u64(info, _BYTES_RECEIVED),
        bytes_sent=_u64(info, _BYTES_SENT),
        bytes_not_sent=_u32(info, _NOT_SENT),
        busy_ns=_ns(_u64(info, _BUSY)),
        window_limited_ns=_ns(_u64(info, _WINDOW_LIMITED)),
        buffer_limited_ns=_ns(_u64(info, _BUFFER_LIMITED)),
        peer_window=_u32(info, _PEER_WINDOW),
    )


def _u32(info: bytes, offset: int) -> int | None:
    if len(info) < offset + _U32.size:
        return None
    value: int = _U32.unpack_from(info, offset)[0]
    return value


def _u64(info: bytes, offset: int) -> int | None:
    if len(info) < offset + _U64.size:
        return None
    value: int = _U64.unpack_from(info, offset)[0]
    return value


def _ns(microseconds: int | None) -> int | None:
    return None if microseconds is None else microseconds * _MICROSECOND


def _us(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // _MICROSECOND
