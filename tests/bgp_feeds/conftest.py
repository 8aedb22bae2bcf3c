"""A listener that keeps what it hears, and bytes for feeds to read."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

import pytest

from pathbudget.agents.bgp.hearing import BackOff, Feed
from pathbudget.probes.bgp.record import RouteUpdate

MARKER = b"\xff" * 16


class Kept:
    """A `Listener`."""

    def __init__(self) -> None:
        self.updates: list[RouteUpdate] = []
        self.news: list[tuple[str, str]] = []
        self.bad = 0

    def hear(self, updates: Iterable[RouteUpdate]) -> None:
        self.updates += updates

    def connected(self, feed: str, detail: str = "") -> None:
        self.news.append(("connected", detail))

    def lost(self, feed: str, why: str) -> None:
        self.news.append(("lost", why))

    def set_aside(self, feed: str, count: int, why: str = "") -> None:
        self.bad = count

    async def until(self, done: Callable[[], bool], seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def running() -> Callable[[Feed, Kept], Any]:
    @contextlib.asynccontextmanager
    async def run(feed: Feed, listener: Kept) -> AsyncGenerator[None]:
        task = asyncio.ensure_future(feed.run(listener))
        try:
            yield
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return run


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeds try again at once."""
    monkeypatch.setattr(BackOff, "FIRST_S", 0.01)


class Wire:
    """Bytes of one route from 192.0.2.1, AS 64500."""

    @staticmethod
    def update(prefix: bytes = b"\x18\xcb\x00\x71") -> bytes:
        path = b"\x40\x02\x06\x02\x01" + (64500).to_bytes(4, "big")
        body = b"\x00\x00" + struct.pack(">H", len(path)) + path + prefix
        return MARKER + struct.pack(">HB", 19 + len(body), 2) + body

    @classmethod
    def mrt(cls, seconds: int = 1_700_000_000) -> bytes:
        head = struct.pack(">IIHH", 64500, 65000, 0, 1) + bytes((192, 0, 2, 1, 192, 0, 2, 9))
        body = head + cls.update()
        return struct.pack(">IHHI", seconds, 16, 4, len(body)) + body

    @classmethod
    def bmp(cls) -> bytes:
        peer = bytes(22) + bytes((192, 0, 2, 1)) + struct.pack(">IIII", 64500, 1, 1_700_000_000, 0)
        opened = MARKER + b"\x00\x1d\x01\x04\xfb\xf4\x00\xb4\x01\x01\x01\x01\x00"
        parts = ((3, peer + bytes(20) + opened + opened), (0, peer + cls.update()))
        return b"".join(
            b"\x03" + (6 + len(body)).to_bytes(4, "big") + bytes((kind,)) + body
            for kind, body in parts
        )


@pytest.fixture
def wire() -> type[Wire]:
    return Wire
