"""The client side of a WebSocket (RFC 6455) over bytes of any carrier: no socket, no clock."""

from dataclasses import dataclass, field

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from pathbudget.probes.stream.lines import StreamFormatError

MESSAGE_BYTES = 1 << 20
"""The longest message that is taken."""


@dataclass(slots=True)
class Heard:
    """What bytes have brought. `status` is that of an upgrade the server refused."""

    accepted: bool = False
    status: int | None = None
    messages: list[bytes] = field(default_factory=list[bytes])
    closed: bool = False
    answer: bytes = b""
    """What has to be sent now: a pong, the close frame."""


class WebSocketClient:
    """One connection. `start` gives the upgrade request, `receive` takes what comes."""

    def __init__(
        self,
        authority: str,
        path: str,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        message_bytes: int = MESSAGE_BYTES,
    ) -> None:
        self._connection = WSConnection(ConnectionType.CLIENT)
        extra = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self._request = Request(host=authority, target=path, extra_headers=extra)
        self._message_bytes = message_bytes
        self._parts = bytearray()

    def start(self) -> bytes:
        """The request that asks for the upgrade."""
        return self._connection.send(self._request)

    def receive(self, data: bytes) -> Heard:
        """Take bytes of the server.

        Raises:
            StreamFormatError: they are no WebSocket, or a message is longer than the limit.
        """
        heard = Heard()
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                self._take(event, heard)
                if heard.closed or heard.status is not None:
                    break
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise StreamFormatError(f"no WebSocket: {error}") from error
        except UnicodeDecodeError as error:  # wsproto reads headers of the upgrade as ASCII
            raise StreamFormatError("no WebSocket: a header that is not ASCII") from error
        return heard

    def goodbye(self) -> bytes:
        """A close frame, where one can still be sent."""
        try:
            return self._connection.send(CloseConnection(code=1000))
        except LocalProtocolError:
            return b""

    def _take(self, event: Event, heard: Heard) -> None:
        match event:
            case AcceptConnection():
                heard.accepted = True
            case RejectConnection(status_code=status):
                heard.status = status
            case TextMessage(data=text, message_finished=finished):
                self._join(text.encode(), heard, finished=finished)
            case BytesMessage(data=data, message_finished=finished):
                self._join(bytes(data), heard, finished=finished)
            case Ping() as ping:
                heard.answer += self._connection.send(ping.response())
            case CloseConnection() as close:
                heard.closed = True
                heard.answer += self._connection.send(close.response())
            case _:
                pass

    def _join(self, data: bytes, heard: Heard, *, finished: bool) -> None:
        if len(self._parts) + len(data) > self._message_bytes:
            raise StreamFormatError(f"a message longer than {self._message_bytes} bytes")
        self._parts += data
        if finished:
            heard.messages.append(bytes(self._parts))
            self._parts.clear()
