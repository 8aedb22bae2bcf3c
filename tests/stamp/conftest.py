"""A sender and a reflector that talk to each other without a network, and a key for them."""

import random
from collections.abc import Callable

import pytest

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.fake_pair import PORT, SENDER_PORT, FakePair
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession
from pathbudget.probes.stamp.sender_session import SenderSession
from pathbudget.probes.stamp.trailer import choose_extensions


@pytest.fixture
def key() -> Key:
    return Key("one", bytes(range(32)))


MakePair = Callable[..., FakePair]


@pytest.fixture
def make_pair() -> MakePair:
    def make(
        *,
        key: Key | None = None,
        follow_up: bool = True,
        dscp: int = 0,
        size: int = 0,
        policy: ReflectorPolicy | None = None,
    ) -> FakePair:
        extensions = choose_extensions(size, bytes(9000), follow_up=follow_up, dscp=dscp, key=key)
        sender = SenderSession(
            AddressFamily.IPV4,
            random.Random(5),
            extensions,
            default_port=PORT,
            follow_up=follow_up,
            dscp=dscp,
        )
        sender.flows[0] = SENDER_PORT
        keys = () if key is None else (key,)
        return FakePair(sender, ReflectorSession(policy or ReflectorPolicy(PORT, keys=keys)))

    return make


@pytest.fixture
def pair(make_pair: MakePair) -> FakePair:
    return make_pair()
