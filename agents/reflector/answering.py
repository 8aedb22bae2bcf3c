"""One socket of a reflector: what comes is answered, packet by packet, in the order it came.

A Follow-Up is worth something only where the kernel's stamp of a reply is known before the next
reply of that session is made. So stamps are read as soon as a peer asks again, within the batch,
and not with the next one; what has been read then wakes nobody either.
"""

from collections import Counter

from pathbudget.agents.reflector.clock_error import Claiming
from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.agents.reflector.options import SOCKETS
from pathbudget.probes.channels import DatagramBatch, DatagramChannel, Outgoing
from pathbudget.probes.stamp.reflector_session import ReflectorSession
from pathbudget.probes.stamp.wire import BASE_OCTETS

_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end


class Answering:
    """Hears one channel, which has to be told to it before anything comes.

    `wildcard` is whether the socket has every address of this host: then a reply leaves from the
    one that was asked.
    """

    channel: DatagramChannel

    def __init__(
        self,
        session: ReflectorSession,
        clock: StampClock,
        claiming: Claiming,
        counts: Counter[str],
        number: int,
        *,
        wildcard: bool,
    ) -> None:
        self._session = session
        self._clock = clock
        self._claiming = claiming
        self._counts = counts
        self._number = number
        self._wildcard = wildcard

    def batch(self, batch: DatagramBatch) -> None:
        """Answer what has come."""
        session, counts, number = self._session, self._counts, self._number
        if batch.sent:
            self._tell(batch.sent)
        if batch.errors:
            counts["icmp_errors"] += len(batch.errors)
        if not batch.arrivals:
            return
        self._claiming.look()
        counts["received"] += len(batch.arrivals)
        receive, send, wildcard = session.receive, self.channel.send, self._wildcard
        unix_ns, of_kernel = self._clock.unix_ns, self._clock.of_kernel
        monotonic_ns = self._clock.monotonic_ns()
        waiting: set[tuple[str, int]] = set()
        unread = False
        for payload, sender, port, local, ttl, traffic_class, stamp in batch.arrivals:
            if waiting and (sender, port) in waiting and len(payload) > BASE_OCTETS:
                self._tell(self.channel.sent_stamps())
                waiting.clear()
            now = unix_ns()
            came = now if stamp is None else of_kernel(stamp)
            answer = receive(
                payload, sender, port, local, ttl, traffic_class, came, now, monotonic_ns
            )
            if answer is None:
                continue
            source = local if wildcard else ""
            sent = send(_new(Outgoing, (answer[0], sender, port, source, answer[1])))
            if isinstance(sent, int):
                unread = True
                if session.sent(answer, sent * SOCKETS + number):
                    waiting.add((sender, port))
            else:
                counts["not_sent"] += 1
        if unread:
            self._tell(self.channel.sent_stamps())

    def _tell(self, stamps: list[tuple[int, int]]) -> None:
        """The kernel's stamps of earlier replies."""
        transmitted, of_kernel, number = (
            self._session.transmitted,
            self._clock.of_kernel,
            self._number,
        )
        for key, left in stamps:
            transmitted(key * SOCKETS + number, of_kernel(left))
