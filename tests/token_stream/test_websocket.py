"""The WebSocket client against the server side of wsproto, at every cut."""

from collections.abc import Callable

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Message,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)

from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.websocket import WebSocketClient


def server_for(client: WebSocketClient) -> WSConnection:
    server = WSConnection(ConnectionType.SERVER)
    server.receive_data(client.start())
    (request,) = server.events()
    assert isinstance(request, Request)
    assert request.target == "/stream?chunks=3"
    return server


def client() -> WebSocketClient:
    return WebSocketClient(
        "site.example:8621", "/stream?chunks=3", (("authorization", "Bearer x"),)
    )


def test_messages_come_at_every_cut() -> None:
    for size in (1, 2, 3, 7, 10_000):
        one = client()
        server = server_for(one)
        wire = server.send(AcceptConnection())
        wire += server.send(TextMessage(data='{"n":0}'))
        wire += server.send(Ping(payload=b"?"))
        wire += server.send(Message(data="half ", message_finished=False))
        wire += server.send(Message(data="whole", message_finished=True))
        wire += server.send(CloseConnection(code=1000))
        heard = [one.receive(wire[at : at + size]) for at in range(0, len(wire), size)]
        assert [message for one_heard in heard for message in one_heard.messages] == [
            b'{"n":0}',
            b"half whole",
        ]
        assert sum(part.accepted for part in heard) == 1
        assert heard[-1].closed
        server.receive_data(b"".join(part.answer for part in heard))
        kinds = [type(event).__name__ for event in server.events()]
        assert kinds == ["Pong", "CloseConnection"]


def test_a_refusal_tells_its_status() -> None:
    one = client()
    server = server_for(one)
    heard = one.receive(server.send(RejectConnection(status_code=401)))
    assert heard.status == 401
    assert not heard.accepted


def receive_for_ever(one: WebSocketClient, first: bytes, more: Callable[[], bytes]) -> None:
    one.receive(first)
    for _ in range(10_000):
        one.receive(more())


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n\r\n", b"\0" * 100, b"HTTP/1.1 101 Hm\r\n\r\n"])
def test_what_is_no_websocket_is_told(data: bytes) -> None:
    one = client()
    one.start()
    with pytest.raises(StreamFormatError, match="no WebSocket"):
        one.receive(data)


def test_headers_and_messages_without_end_are_not_kept() -> None:
    one = client()
    one.start()
    with pytest.raises(StreamFormatError):
        receive_for_ever(one, b"HTTP/1.1 101 Switching Protocols\r\n", lambda: b"x: y\r\n" * 10)
    one = WebSocketClient("site.example", "/stream?chunks=3", message_bytes=1_000)
    server = server_for(one)
    piece = Message(data="x" * 100, message_finished=False)
    with pytest.raises(StreamFormatError, match="longer than 1000"):
        receive_for_ever(one, server.send(AcceptConnection()), lambda: server.send(piece))


@pytest.mark.parametrize("name", [b"connection", b"upgrade", b"sec-websocket-accept"])
def test_an_upgrade_that_is_not_ascii_is_no_websocket(name: bytes) -> None:
    one = client()
    one.start()
    fields = {b"connection": b"Upgrade", b"upgrade": b"websocket", b"sec-websocket-accept": b"x"}
    fields[name] = b"Up\xc6rade"
    head = b"".join(b"%s: %s\r\n" % field for field in fields.items())
    with pytest.raises(StreamFormatError, match="no WebSocket"):
        one.receive(b"HTTP/1.1 101 Switching Protocols\r\n" + head + b"\r\n")
    assert one.goodbye() == b""
