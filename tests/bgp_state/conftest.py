"""Peers that say things, in few words."""

import itertools
from typing import Any

import pytest

from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
PREFIX = "203.0.113.0/24"


class Talk:
    """Makes updates; times are seconds after `START`."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def say(self, kind: str, seconds: float, peer: int = 1, **fields: Any) -> RouteUpdate:
        time = START + round(seconds * SECOND)
        known: dict[str, Any] = {
            "feed": "edge",
            "feed_kind": FeedKind.SESSION,
            "peer_address": f"192.0.2.{peer}",
            "peer_asn": 64500 + peer,
            "time_unix_ns": time,
            "arrived_unix_ns": time,
            **fields,
        }
        return RouteUpdate(id=f"{next(self._numbers):08}", kind=UpdateKind(kind), **known)

    def announce(self, seconds: float, path: str, peer: int = 1, **fields: Any) -> RouteUpdate:
        return self.say("announce", seconds, peer, **{"prefix": PREFIX, "as_path": path, **fields})

    def withdraw(self, seconds: float, peer: int = 1, **fields: Any) -> RouteUpdate:
        return self.say("withdraw", seconds, peer, **{"prefix": PREFIX, **fields})

    def rib(self, seconds: float, path: str, peer: int = 1, **fields: Any) -> RouteUpdate:
        return self.say("rib", seconds, peer, **{"prefix": PREFIX, "as_path": path, **fields})


@pytest.fixture
def talk() -> Talk:
    return Talk()
