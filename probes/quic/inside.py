"""What aioquic knows and does not tell by a public name. All of it is in here, and tested.

Every function takes a `QuicConnection` and reads; `send_again` and `ClientConnection` alone write.
"""

# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from collections.abc import Iterable
from typing import Any, NamedTuple

from aioquic.quic.connection import QuicConnection, QuicConnectionState
from aioquic.quic.packet_builder import QuicDeliveryState, QuicSentPacket
from aioquic.quic.stream import QuicStream, QuicStreamSender
from aioquic.tls import Epoch, Group

from pathbudget.probes.quic.packets import PacketKind

_EPOCHS = {PacketKind.HANDSHAKE: Epoch.HANDSHAKE, PacketKind.ONE_RTT: Epoch.ONE_RTT}


GROUPS = [Group.X25519, Group.SECP256R1, Group.SECP384R1]
"""Key shares to offer, as the tls probe does. aioquic would make one of X448 as well, which
costs processor time and a part of the first datagram, and which servers do not ask for.
"""


class ClientConnection(QuicConnection):
    """One that makes no more keys than it needs."""

    def _initialize(self, peer_cid: bytes) -> None:
        super()._initialize(peer_cid)
        self.tls._supported_groups = list(GROUPS)


class StreamPiece(NamedTuple):
    """Bytes of one stream in one packet; `stop` is the offset behind the last of them.

    The `sender` is finished when all of the stream was acknowledged.
    """

    stream: int
    start: int
    stop: int
    fin: bool
    sender: QuicStreamSender


def next_packet_number(quic: QuicConnection) -> int:
    """The number of the next packet, whatever its kind."""
    return quic._packet_number


def pieces_since(quic: QuicConnection, number: int) -> list[list[StreamPiece]]:
    """What of streams is in each packet made since the next one had this number, in order."""
    sent = quic._spaces[Epoch.ONE_RTT].sent_packets if quic._spaces else {}
    numbers = range(number, quic._packet_number)
    return [_pieces(sent[one]) if one in sent else [] for one in numbers]


def _pieces(packet: QuicSentPacket) -> list[StreamPiece]:
    pieces: list[StreamPiece] = []
    for handler, arguments in packet.delivery_handlers:
        sender: Any = getattr(handler, "__self__", None)
        if isinstance(sender, QuicStreamSender) and len(arguments) == 3:
            stream: int | None = sender._stream_id
            if stream is not None:
                first, stop, fin = arguments
                pieces.append(StreamPiece(stream, first, stop, fin, sender))
    return pieces


def has_keys(quic: QuicConnection, kind: PacketKind) -> bool:
    """Whether packets of this kind can be read by now."""
    epoch = _EPOCHS.get(kind)
    return epoch is None or bool(quic._cryptos and quic._cryptos[epoch].recv.is_valid())


class Closing(NamedTuple):
    """Why a connection is being closed; `ours` is that our side does, `application` that the code
    is one of the protocol above QUIC.
    """

    code: int
    reason: str
    ours: bool
    application: bool


def why_closing(quic: QuicConnection) -> Closing | None:
    """As soon as either side has closed; None while it is open.

    (The event for it comes three probe timeouts later.)
    """
    event = quic._close_event
    if event is None:
        return None
    ours = quic._close_pending or quic._state is not QuicConnectionState.DRAINING
    return Closing(event.error_code, event.reason_phrase, ours, event.frame_type is None)


def stop_stream(quic: QuicConnection, stream: int, code: int = 0x10C) -> None:
    """Ask for no more of a stream, where it is still open."""
    if stream in quic._streams:
        quic.stop_stream(stream, code)


def streams_of(quic: QuicConnection) -> list[int]:
    """The streams that are open now."""
    return list(quic._streams)


def has_unsent(quic: QuicConnection) -> bool:
    """Whether something was written to a stream and has not left."""
    return any(not stream.sender.buffer_is_empty for stream in quic._streams.values())


def is_blocked(quic: QuicConnection) -> bool:
    """Whether the other end's flow control alone keeps us from sending more.

    (RFC 9000, 4: the window of the stream, that of the connection, or the number of streams.)
    """
    return any(
        _is_blocked(quic, stream)
        for stream in quic._streams.values()
        if not stream.sender.buffer_is_empty
    )


def _is_blocked(quic: QuicConnection, found: QuicStream) -> bool:
    pending = found.sender._pending
    if not len(pending) or quic._loss.congestion_window - quic._loss.bytes_in_flight < 1:
        return False
    if found.is_blocked:
        return quic._handshake_complete
    if pending[0].start < found.sender.highest_offset:
        return False  # sent before, and lost: counts once
    allowance = quic._remote_max_data - quic._remote_max_data_used
    limit = min(found.sender.highest_offset + allowance, found.max_stream_data_remote)
    return pending[0].start >= limit


def smoothed_round_trip_ns(quic: QuicConnection) -> int | None:
    """Its own estimate, for the record: of user space, and never below a millisecond."""
    loss = quic._loss
    return round(loss._rtt_smoothed * 1e9) if loss._rtt_initialized else None


def unacknowledged(quic: QuicConnection) -> list[QuicSentPacket]:
    """Packets with application data that nobody has acknowledged (yet)."""
    return list(quic._spaces[Epoch.ONE_RTT].sent_packets.values())


def send_again(packets: Iterable[QuicSentPacket]) -> None:
    """Treat packets as lost, so that what was in them is sent once more.

    After Retry and Version Negotiation aioquic begins a new handshake and forgets early data that
    had left with the first one, though it must be sent again (RFC 9000, 17.2.5.3).
    """
    for packet in packets:
        for handler, arguments in packet.delivery_handlers:
            handler(QuicDeliveryState.LOST, *arguments)


def certificates(quic: QuicConnection) -> tuple[Any, list[Any]] | None:
    """The server's certificate and what it sent to go with it; None where it sent none."""
    leaf = quic.tls._peer_certificate
    return None if leaf is None else (leaf, quic.tls._peer_certificate_chain)


def cipher(quic: QuicConnection) -> str:
    """Name of the cipher suite; empty before it is chosen."""
    schedule = quic.tls.key_schedule
    return "" if schedule is None else "TLS_" + schedule.cipher_suite.name


def version_of(quic: QuicConnection) -> int:
    """The version spoken now."""
    return quic._version or 0


def retry_taken(quic: QuicConnection) -> bool:
    """Whether a Retry packet of the server was believed."""
    return quic._retry_count > 0


def restarted(quic: QuicConnection) -> int:
    """How often the handshake has begun anew: by Retry, by Version Negotiation."""
    return quic._retry_count + quic._version_negotiated_incompatible
