"""WebSocket (RFC 6455) by wsproto, after the upgrade: chunks as text messages; what comes is of no
interest but for pings and the goodbye.
"""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Callable

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from pathbudget.agents.reflector.serving.limits import Patience
from pathbudget.agents.reflector.serving.pages import Asked, Pages
from pathbudget.agents.reflector.serving.reply import Headers
from pathbudget.agents.reflector.serving.wire import Wire

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 section 1.3."""
KEY_BYTES = 16


def rejects(asked: Asked) -> str:
    """Why this upgrade cannot be (RFC 6455 section 4.2.1), as a counter's name; or nothing."""
    tokens = {word.strip().lower() for word in asked.header("connection").split(",")}
    try:
        key = base64.b64decode(asked.header("sec-websocket-key"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    fine = (
        asked.method == "GET"
        and "upgrade" in tokens
        and len(key) == KEY_BYTES
        and asked.header("sec-websocket-version") == "13"
    )
    return "" if fine else "bad_upgrades"


def accepted(asked: Asked, headers: Headers) -> bytes:
    """The answer that switches protocols."""
    key = asked.header("sec-websocket-key").encode("ascii")
    proof = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "upgrade: websocket",
        "connection: Upgrade",
        f"sec-websocket-accept: {proof.decode('ascii')}",
        *(f"{name}: {value}" for name, value in headers if name != "content-type"),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


class WebSocket:
    """One connection after the upgrade."""

    def __init__(self, pages: Pages, wire: Wire) -> None:
        self._pages = pages
        self._wire = wire
        self._frames = Connection(ConnectionType.SERVER)
        self._patience = Patience(wire.now_ns())

    def receive(self, data: bytes) -> None:
        """Answer pings and the goodbye."""
        self._frames.receive_data(data)
        try:
            for event in self._frames.events():
                if self._patience.ends_with(1, self._wire.now_ns()):
                    self._wire.abort("over_patience")
                    return
                if isinstance(event, Ping):
                    self._wire.write(self._frames.send(event.response()))
                elif isinstance(event, CloseConnection):
                    self._answer_goodbye(event)
                    return
        except RemoteProtocolError:
            self._pages.counts["bad_requests"] += 1
            self._wire.finish()

    def send(self, text: bytes, *, end: bool, left: Callable[[int], None] | None) -> None:
        """One text message, and the goodbye after the last."""
        if self._frames.state is not ConnectionState.OPEN:
            return
        self._wire.write(self._frames.send(TextMessage(data=text.decode())), left)
        if end:
            self._wire.write(self._frames.send(CloseConnection(code=1000)))

    def _answer_goodbye(self, event: CloseConnection) -> None:
        with contextlib.suppress(LocalProtocolError):  # where ours was the first goodbye
            self._wire.write(self._frames.send(event.response()))
        self._wire.finish()
