"""What ICMP and UDP sockets have in common: keys of what was sent, and both queues emptied.

An undrained error queue wakes the loop for ever, so every wake-up empties it. Packets are read
before it: the kernel stamps a request before it can be answered, so whatever answers have been
read, the stamps of their requests are there by then.
"""

import asyncio
import socket
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
        self._sent = 0
        self._key_base = 0
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
                self._count_anew()
                refusals += 1
                if refusals >= self._tries:
                    outcomes.append(from_refused_call(error, Stage.SEND, self._family))
                    refusals = 0
            else:
                outcomes.extend(range(self._sent, self._sent + count))
                self._sent += count
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
        # The kernel counts modulo 2**32; the latest send that fits is meant.
        sent, counted = self._sent, self._sent - self._key_base
        self._stamped += [(sent - (counted - key) % _KEYS, stamp) for key, stamp in by_kernel]

    def _count_anew(self) -> None:
        """After a refused send the kernel may or may not have counted it: start its count at 0.

        What it has stamped until now is read first, by the old count.
        """
        self._read_errors()
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS & ~stamps.OPT_ID)
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS)
        self._key_base = self._sent
