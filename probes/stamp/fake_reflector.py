"""A STAMP reflector on the fake network: the real session behind delays that a test chooses."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.probes.channels import Datagram
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.stamp.reflector_session import ReflectorPolicy, ReflectorSession

Delay = int | Callable[[int], int]


def _never(number: int) -> bool:
    return number < 0


@dataclass
class FakeReflector:
    """See `fake_datagrams.FakeService`. Requests are numbered from 0 in the order of sending.

    A request takes `forward_ns`, is answered after `residence_ns` and leaves `send_call_ns` later:
    that is what its kernel stamps, unless `stamps` is false. Its clock is `offset_ns` ahead and
    runs `ppm` too fast.
    """

    session: ReflectorSession = field(
        default_factory=lambda: ReflectorSession(ReflectorPolicy(port=8620))
    )
    forward_ns: Delay = 10_000_000
    reverse_ns: Delay = 5_000_000
    lost_forward: Callable[[int], bool] = _never
    lost_reverse: Callable[[int], bool] = _never
    residence_ns: int = 30_000
    send_call_ns: int = 12_000
    copies: int = 1
    ttl: int = 60
    offset_ns: int = 0
    ppm: float = 0.0
    stamps: bool = True
    changes: Callable[[bytes], bytes] | None = None
    """What a bad network or a bad host makes of a reply."""
    taken: int = 0
    _began_ns: int | None = None
    _keys: int = 0

    def take(
        self, datagram: Datagram, clock: FakeClock, reply: Callable[[bytes, int, int], None]
    ) -> None:
        """See `fake_datagrams.FakeService.take`."""
        number, self.taken = self.taken, self.taken + 1
        if not self.lost_forward(number):
            clock.call_in(
                _of(self.forward_ns, number), lambda: self._come(datagram, number, clock, reply)
            )

    def unix_ns(self, clock: FakeClock) -> int:
        """What its own clock shows."""
        now = clock.unix_ns()
        if self._began_ns is None:
            self._began_ns = now
        return now + self.offset_ns + round((now - self._began_ns) * self.ppm / 1e6)

    def _come(
        self,
        datagram: Datagram,
        number: int,
        clock: FakeClock,
        reply: Callable[[bytes, int, int], None],
    ) -> None:
        came = self.unix_ns(clock)
        clock.call_in(self.residence_ns, lambda: self._answer(datagram, number, came, clock, reply))

    def _answer(
        self,
        datagram: Datagram,
        number: int,
        came: int,
        clock: FakeClock,
        reply: Callable[[bytes, int, int], None],
    ) -> None:
        payload, sender, port, local, _, traffic_class, _ = datagram
        now = self.unix_ns(clock)
        answer = self.session.receive(
            payload, sender, port, local, self.ttl, traffic_class, came, now, clock.monotonic_ns()
        )
        if answer is None:
            return
        self._keys += 1
        key = self._keys
        self.session.sent(answer, key)
        content = answer.payload if self.changes is None else self.changes(answer.payload)

        def leave() -> None:
            if self.stamps:
                self.session.transmitted(key, self.unix_ns(clock))
            if not self.lost_reverse(number):
                for _ in range(self.copies):
                    clock.call_in(
                        _of(self.reverse_ns, number),
                        lambda: reply(content, self.ttl, (answer.dscp or 0) << 2),
                    )

        clock.call_in(self.send_call_ns, leave)


def _of(delay: Delay, number: int) -> int:
    return delay if isinstance(delay, int) else delay(number)
