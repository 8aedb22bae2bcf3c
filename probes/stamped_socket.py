"""What ICMP and UDP sockets have in common: keys of what was sent, and both queues emptied.

An undrained error queue wakes the loop for ever, so every wake-up empties it. Packets are read
before it: the kernel stamps a request before it can be answered, so whatever answers have been
read, the stamps of their requests are there by then.

The kernel numbers the stamps of a socket by counting its sends. Whether it has counted one that it
refused depends on the error and on the kernel, so after a refusal the count has to begin again. As
long as earlier packets wait in a queue of the device it must not: their stamps would come late,
with small numbers, and would be given to packets that are sent now (see `KeyCount`).
"""

import asyncio
import errno
import socket
import time
from collections.abc import Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.message_batch import open_packets
from pathbudget.probes.packets import READS_PER_WAKE, Packet, Packets, Received
from pathbudget.probes.record import AddressFamily, Failure, Stage

PENDING_ERRORS = 3
BUFFER_BYTES = 4 << 20
_KEYS = 1 << 32
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})
LONGEST_QUEUED_NS = 5_000_000_000
"""A packet that has not left this host by then was dropped, and its stamp will never come."""


class KeyCount:
    """Which of our sends a number of the kernel means. No socket in here; `now_ns` is monotonic.

    `sent` counts what was handed over since the socket was opened; our keys. `stamping` is whether
    the kernel is asked for send stamps now: not while stamps of an older count may still come.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.stamping = True
        self._base = 0
        self._end: int | None = None
        self._stamped = 0
        self._silent_until_ns = 0

    def keys(self, by_kernel: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Our keys for the kernel's numbers. It counts modulo 2**32: the latest that fits."""
        self._stamped += len(by_kernel)
        sent = self.sent if self._end is None else self._end
        counted = sent - self._base
        return [(sent - (counted - number) % _KEYS, stamp) for number, stamp in by_kernel]

    def refused(self, now_ns: int) -> bool:
        """A send was refused and what has been stamped was read. True: let the kernel begin anew.

        False: no send stamps are asked for, until those of the packets before have come or are
        given up. The packets meanwhile go without, and their samples say so.
        """
        if self.stamping:
            self._end = self.sent
            self._silent_until_ns = now_ns + LONGEST_QUEUED_NS
        self.stamping = False
        return self.may_begin(now_ns)

    def may_begin(self, now_ns: int) -> bool:
        """Whether no stamp of the old count can come any more; then a new one has begun."""
        assert self._end is not None
        if self._stamped < self._end - self._base and now_ns < self._silent_until_ns:
            return False
        self.stamping, self._end, self._base, self._stamped = True, None, self.sent, 0
        return True


class StampedSocket:
    """Owns the socket; `wake` is called whenever there is something in either queue.

    `error_queue` is whether ICMP errors about earlier packets come with later calls (IP_RECVERR): a
    call that is refused is then made again, because nothing was sent. `headers` is whether local
    address and traffic class are reported.
    """

    def __init__(
        self,
        sock: socket.socket,
        family: AddressFamily,
        *,
        data_bytes: int,
        error_queue: bool,
        headers: bool,
    ) -> None:
        self._socket = sock
        self._family = family
        self._tries = PENDING_ERRORS if error_queue else 1
        self._count = KeyCount()
        self._stamped: list[tuple[int, int]] = []
        self._errors: list[QueuedError] = []
        sock.setblocking(False)
        stamps.switch_on(sock, stamps.DATAGRAM_STAMPS)
        self._packets: Packets = open_packets(sock, data_bytes, headers=headers)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self.poll)

    def poll(self) -> None:
        """Report now what has come."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the socket back."""
        if self._socket.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _send_packets(self, packets: Sequence[Packet]) -> list[int | Failure]:
        """The key of each, or why it was refused. One that is refused shifts no other's key."""
        outcomes: list[int | Failure] = []
        refusals = 0
        while len(outcomes) < len(packets):
            try:
                count = self._packets.send(packets, len(outcomes))
            except OSError as error:
                self._count_anew(error)
                refusals += 1
                if refusals >= self._tries:
                    outcomes.append(from_refused_call(error, Stage.SEND, self._family))
                    refusals = 0
            else:
                sent = self._count.sent
                outcomes.extend(range(sent, sent + count))
                self._count.sent = sent + count
                refusals = 0
        return outcomes

    def _take_packets(self, most: int = READS_PER_WAKE) -> list[Received]:
        received: list[Received] = []
        if self._socket.fileno() >= 0:
            self._packets.receive(received, most)
        return received

    def _take_errors(self) -> tuple[list[tuple[int, int]], list[QueuedError]]:
        """Stamps of what left by our keys, and ICMP errors."""
        self._read_errors()
        stamped, errors = self._stamped, self._errors
        self._stamped, self._errors = [], []
        return stamped, errors

    def _read_errors(self) -> None:
        if self._socket.fileno() < 0:
            return
        by_kernel: list[tuple[int, int]] = []
        self._packets.receive_errors(by_kernel, self._errors)
        if by_kernel:
            self._stamped += self._count.keys(by_kernel)
        if not self._count.stamping and self._count.may_begin(time.monotonic_ns()):
            self._begin_counting()

    def _count_anew(self, error: OSError) -> None:
        """After a refused send the kernel may or may not have counted it: begin at 0 again.

        What it has stamped until now is read first, by the old count. Without a way there nothing
        is counted: the routing table is asked first. (With an error queue the same word may be an
        ICMP error about an earlier packet, handed over at a later step.)
        """
        if self._tries == 1 and error.errno in _NO_WAY:
            return
        self._read_errors()
        if self._count.refused(time.monotonic_ns()):
            self._begin_counting()
        else:
            # The number of a stamp is written as the packet leaves: OPT_ID has to stay on.
            stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS & ~stamps.TX_SOFTWARE)

    def _begin_counting(self) -> None:
        """The kernel counts from 0 when it is asked for numbers afresh."""
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS & ~stamps.OPT_ID)
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS)
