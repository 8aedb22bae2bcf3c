"""What a Session-Sender remembers of each of its sessions."""

import random

from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.stamp.follow_ups import FollowUps
from pathbudget.probes.stamp.loss_direction import FIRST_NUMBER, Count, LossDirection

MOST_SSIDS = 60_000


class SenderState:
    """One STAMP session: one address and port, from one of our ports, under one SSID."""

    __slots__ = (
        "address",
        "flow",
        "follow_ups",
        "losses",
        "next_number",
        "port",
        "ssid",
        "stateless_told",
    )

    def __init__(
        self, address: str, port: int, flow: int, ssid: int, *, follow_up: bool, count: Count
    ) -> None:
        self.address = address
        self.port = port
        self.flow = flow
        self.ssid = ssid
        self.next_number = FIRST_NUMBER
        self.follow_ups = FollowUps(known=follow_up)
        self.losses = LossDirection(count)
        self.stateless_told = False


class SenderStates:
    """All sessions of one sender, each with an SSID of its own (RFC 8972 section 3)."""

    def __init__(self, rng: random.Random, count: Count, *, follow_up: bool) -> None:
        self._rng = rng
        self._count = count
        self._follow_up = follow_up
        self._states: dict[tuple[str, int, int], SenderState] = {}
        self._peers: set[tuple[str, int]] = set()
        self._ssids: set[int] = set()

    def of(self, address: str, port: int, channel: int) -> SenderState:
        """The session with this address and port, from this channel."""
        state = self._states.get((address, port, channel))
        return self._begin(address, port, channel) if state is None else state

    def probes(self, address: str, port: int) -> bool:
        """Whether we have sent anything there."""
        return (canonical(address), port) in self._peers

    def begin_again(self) -> None:
        """The next packets belong to new sessions."""
        self.finish()
        self._states.clear()

    def finish(self) -> None:
        """Nothing more will come: losses that wait for a later answer have no direction."""
        for state in self._states.values():
            state.losses.finish()

    def _begin(self, address: str, port: int, channel: int) -> SenderState:
        plain = canonical(address)
        state = self._states[address, port, channel] = SenderState(
            plain,
            port,
            channel,
            self._new_ssid(),
            follow_up=self._follow_up,
            count=self._count,
        )
        self._peers.add((plain, port))
        return state

    def _new_ssid(self) -> int:
        """One that no other session has, as long as there are any left."""
        if len(self._ssids) > MOST_SSIDS:
            self._ssids.clear()
        ssid = self._rng.randrange(1, 0x10000)
        while ssid in self._ssids:
            ssid = self._rng.randrange(1, 0x10000)
        self._ssids.add(ssid)
        return ssid
