"""ICMP echo: the round trip of one packet (RFC 2681), by kernel stamps.

One socket per address family serves all targets, and no task waits for a packet. Read
`icmp_session.py` for what counts as an answer.
"""

import asyncio

from pathbudget.probes.channels import Cancellable, IcmpBatch, IcmpChannel
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import no_family
from pathbudget.probes.icmp_session import Counted, IcmpSession, Outcome
from pathbudget.probes.record import AddressFamily, Failure, Stage

RETIRED_NS = 10_000_000_000
"""How long a socket whose identifier was given up still hears late answers."""
HEADERS_BYTES = 40 + 8
"""IPv6 and ICMP; an upper bound for IPv4."""

OPTIONS = {
    "payload_bytes": OptionSpec(
        int, 56, "bytes after the ICMP header; 16 carry the secret", minimum=16, maximum=8_972
    ),
    "rotate_after": OptionSpec(
        int, 10, "losses in a row after which a new identifier is used", minimum=1
    ),
}


class _Family:
    """The session of one address family and its socket."""

    def __init__(
        self, environment: ProbeEnvironment, family: AddressFamily, options: Options
    ) -> None:
        self._environment = environment
        self._family = family
        self._watcher = ClockWatcher(environment.clock)
        self._session = IcmpSession(
            family,
            environment.rng,
            payload_bytes=_whole(options, "payload_bytes"),
            rotate_after=_whole(options, "rotate_after"),
        )
        self._alarm: Cancellable | None = None
        self._alarm_ns = 0
        self._retired: list[tuple[IcmpChannel, Cancellable]] = []
        self._channels = 0
        self._channel = self._open()
        self.idle = asyncio.Event()
        self.idle.set()

    def fire(self, shot: Shot) -> None:
        self.idle.clear()
        now = self._watcher.read()
        number, message = self._session.request(shot, now)
        key: int | Failure = (
            no_family(self._family, Stage.SEND)
            if self._channel is None
            else self._channel.send(message, shot.address)
        )
        if isinstance(key, Failure):
            self._session.refused(number, key, self._watcher.read())
            self._report()
        else:
            self._session.sent(number, self._channels, key)
            self._set_alarm(now.monotonic_ns + shot.timeout_ns)

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        for channel, alarm in self._retired:
            alarm.cancel()
            channel.close()
        self._retired.clear()
        if self._channel is not None:
            self._channel.close()

    def _open(self) -> IcmpChannel | None:
        self._channels += 1
        number = self._channels

        def listen(batch: IcmpBatch) -> None:
            self._session.receive(number, batch, self._watcher.read())
            self._report()

        channel = self._environment.network.open_icmp(self._family, listen)
        self._session.identifiers_are_ours = channel is None or channel.privileged
        return channel

    def _report(self) -> None:
        """Hand on what has happened, and be woken for the next timeout."""
        for event in self._session.events():
            if isinstance(event, Outcome):
                self._environment.emit(event.series, event.sample)
            else:
                self._counted(event)
        self._set_alarm(self._session.next_deadline_ns())
        if not self._session.under_way:
            self.idle.set()

    def _counted(self, event: Counted) -> None:
        self._environment.count(event.series, event.word)
        if event.word == "identifier_rotated":
            self._renew()

    def _renew(self) -> None:
        """An unprivileged socket is its identifier: a new one takes a new socket."""
        old = self._channel
        if old is None or old.privileged:
            return
        try:
            self._channel = self._open()
        except PrivilegeError:
            return  # out of sockets: the old one is better than none
        later = self._environment.clock.monotonic_ns() + RETIRED_NS
        self._retired.append((old, self._environment.network.call_at(later, self._retire)))

    def _retire(self) -> None:
        channel, _ = self._retired.pop(0)
        channel.close()

    def _set_alarm(self, due_ns: int | None) -> None:
        """Be woken for a timeout, unless one that comes no later is set."""
        if self._alarm is not None:
            if due_ns is not None and self._alarm_ns <= due_ns:
                return
            self._alarm.cancel()
            self._alarm = None
        if due_ns is not None:
            self._alarm_ns = due_ns
            self._alarm = self._environment.network.call_at(due_ns, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        # What has come meanwhile is not lost, however late this loop is.
        for channel in (self._channel, *(old for old, _ in self._retired)):
            if channel is not None:
                channel.poll()
        self._session.expire(self._watcher.read())
        self._report()


class IcmpProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        self._families: dict[AddressFamily, _Family] = {}
        try:
            for family in AddressFamily:
                self._families[family] = _Family(environment, family, options)
        except BaseException:
            self.close()
            raise

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._families[shot.family].fire(shot)

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        for family in self._families.values():
            await family.idle.wait()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for family in self._families.values():
            family.close()


def _whole(options: Options, name: str) -> int:
    value = options.get(name, OPTIONS[name].default)
    assert isinstance(value, int)
    return value


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return IcmpProbe(environment, options)


def _cost(options: Options) -> Cost:
    return Cost(packets=2, bytes=2 * (HEADERS_BYTES + _whole(options, "payload_bytes")))


ICMP = ProbeSpec(
    name="icmp",
    summary="round trip of an ICMP echo (RFC 792, RFC 4443), kernel stamps",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
)
