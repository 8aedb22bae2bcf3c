"""Traces without CAP_NET_RAW: UDP sockets that everybody may have. See `PathChannel.privileged`.

The hop limit is set per packet, and the kernel says on the error queue who dropped it (IP_RECVERR,
ip(7)), when, and what was quoted of the payload. It keeps the quoted headers to itself. So a probe
is known by its payload, which therefore has to differ from packet to packet, and an error that
quotes none of it (a router that sends 8 octets behind the IP header, RFC 792) is about nobody: such
a hop looks silent. The errors that come out of here are rebuilt from what was sent.

There is one socket for each source port that probes leave from: one for each flow.
"""

import socket
import time
from collections.abc import Callable, Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import PacketOptions, QueuedError
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.icmp_wire import checksum
from pathbudget.probes.packets import AGAIN, GONE, Packet, SinglePackets, socket_address
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.sent_payloads import SentPayloads
from pathbudget.probes.socket_setup import IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, open_udp
from pathbudget.probes.stamped_socket import StampedSocket
from pathbudget.probes.trace.contract import FlowPacket, PathArrival, PathBatch, PathListener

IP_RECVERR_RFC4884, IPV6_RECVERR_RFC4884 = 26, 31
PMTUDISC_PROBE = 3
PACKET_BYTES, QUOTED_BYTES = 9_216, 2_048
ERRORS_PER_WAKE = 4_096
MOST_FLOWS = 256
IDLE_NS = 10_000_000_000
"""A socket that has sent nothing for so long gives way to that of a new flow."""
STAMPS_AWAITED = 65_536
"""Of one flow; what was not stamped by then never will be."""
UDP, UDP_BYTES = 17, 8
_HEADERS = {AddressFamily.IPV4: 20, AddressFamily.IPV6: 40}


def open_plain_paths(
    family: AddressFamily,
    listener: PathListener,
    packet: PacketOptions,
    find_source: Callable[[str], str],
) -> "PlainPathChannel | None":
    """See `channels.Network.open_paths`; opens one socket, to see whether that can be."""
    first = open_udp(family, 0, packet, packet.source)
    if first is None:
        return None
    first.close()
    return PlainPathChannel(family, listener, packet, find_source)


class _ErrorPackets(SinglePackets):
    """Reads errors with all that the kernel says of them, which `QueuedError` has no room for."""

    def __init__(self, sock: socket.socket, data_bytes: int) -> None:
        super().__init__(sock, data_bytes)
        self.told: list[tuple[stamps.PathError, bytes, str, int]] = []

    def receive_errors(self, sent: list[tuple[int, int]], errors: list[QueuedError]) -> None:
        del errors
        for _ in range(ERRORS_PER_WAKE):
            try:
                quoted, messages, _, place = self._socket.recvmsg(
                    QUOTED_BYTES, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE
                )
            except OSError as error:
                if error.errno in AGAIN or error.errno in GONE:
                    return
                continue
            control = stamps.read_control(messages)
            if control.sent_key is not None:
                if control.stamp_unix_ns is not None:
                    sent.append((control.sent_key, control.stamp_unix_ns))
                continue
            path_error = stamps.read_path_error(messages)
            if path_error is not None and place:
                self.told.append((path_error, quoted, str(place[0]), int(place[1])))


class _FlowSocket(StampedSocket):
    """The socket of one source port; wakes the whole channel."""

    def __init__(
        self, sock: socket.socket, family: AddressFamily, wake: "Callable[[_FlowSocket], None]"
    ) -> None:
        super().__init__(sock, family, data_bytes=UDP_BYTES, error_queue=True, headers=False)
        self._errors_of = _ErrorPackets(sock, PACKET_BYTES)
        self._packets = self._errors_of
        self._wake = wake
        self.port = int(sock.getsockname()[1])
        self.used_ns = time.monotonic_ns()
        self.keys: dict[int, int] = {}

    def poll(self) -> None:
        self._wake(self)

    def send(self, packet: Packet) -> int | Failure:
        self.used_ns = time.monotonic_ns()
        return self._send_packets((packet,))[0]

    def sent(self) -> list[tuple[int, int]]:
        """Stamps under the keys of the channel."""
        stamped, _ = self._take_errors()
        return [(self.keys.pop(key), stamp) for key, stamp in stamped if key in self.keys]

    def told(self) -> list[tuple[stamps.PathError, bytes, str, int]]:
        self._take_packets()  # answers to the payload are nobody's
        told, self._errors_of.told = self._errors_of.told, []
        return told


class PlainPathChannel:
    """See `trace.contract.PathChannel`; `privileged` says what cannot be had here."""

    def __init__(
        self,
        family: AddressFamily,
        listener: PathListener,
        packet: PacketOptions,
        find_source: Callable[[str], str],
    ) -> None:
        self._family = family
        self._v4 = family is AddressFamily.IPV4
        self._listener = listener
        self._packet = packet
        self._find_source = find_source
        self._flows: dict[tuple[str, int], _FlowSocket] = {}
        self._sent = SentPayloads()
        self._keys = 0

    @property
    def privileged(self) -> bool:
        """See `PathChannel.privileged`."""
        return False

    def source_for(self, address: str) -> str | Failure:
        """See `PathChannel.source_for`."""
        try:
            return self._find_source(address)
        except OSError as error:
            return from_refused_call(error, Stage.SEND, self._family)

    def hear(self, ports: Sequence[int]) -> None:
        """See `PathChannel.hear`: no TCP here."""

    def send_all(self, packets: Sequence[FlowPacket]) -> list[int | Failure]:
        """See `PathChannel.send_all`."""
        return [self._send(one.data, one.address) for one in packets]

    def poll(self) -> None:
        """See `PathChannel.poll`."""
        self._tell(tuple(self._flows.values()))

    def _poll_one(self, flow: _FlowSocket) -> None:
        self._tell((flow,))

    def _tell(self, flows: Sequence[_FlowSocket]) -> None:
        batch = PathBatch()
        for flow in flows:
            batch.sent += flow.sent()
            for told in flow.told():
                arrival = self._arrival(flow, *told)
                if arrival is not None:
                    batch.arrivals.append(arrival)
        if batch.sent or batch.arrivals:
            self._listener(batch)

    def close(self) -> None:
        """See `PathChannel.close`."""
        for flow in self._flows.values():
            flow.close()
        self._flows.clear()

    def _send(self, data: bytes, address: str) -> int | Failure:
        start = _HEADERS[self._family]
        if data[9 if self._v4 else 6] != UDP:
            detail = "only UDP traces can be had here without CAP_NET_RAW"
            return Failure(FailureKind.PERMISSION, Stage.SEND, detail=detail)
        body = start + UDP_BYTES
        source = socket.inet_ntop(*self._source_of(data))
        port, there = (int.from_bytes(data[start + at : start + at + 2], "big") for at in (0, 2))
        flow = self._flow(source, port)
        if isinstance(flow, Failure):
            return flow
        try:
            place = socket_address(address, there, self._family)
        except OSError as error:
            return from_refused_call(error, Stage.SEND, self._family)
        payload = data[body:]
        hop_limit = data[8] if self._v4 else data[7]
        kind = socket.AF_INET if self._v4 else socket.AF_INET6
        limit = stamps.with_hop_limit(kind, hop_limit)
        key = flow.send((payload, place, (limit,)))
        if isinstance(key, Failure):
            return key
        if len(flow.keys) >= STAMPS_AWAITED:
            flow.keys.clear()
        flow.keys[key] = self._keys
        destination = socket.inet_ntop(kind, data[16:20] if self._v4 else data[24:40])
        self._sent.add((port, destination, there), payload, data[:body])
        self._keys += 1
        return self._keys - 1

    def _source_of(self, data: bytes) -> tuple[int, bytes]:
        return (socket.AF_INET, data[12:16]) if self._v4 else (socket.AF_INET6, data[8:24])

    def _flow(self, source: str, port: int) -> "_FlowSocket | Failure":
        known = self._flows.get((source, port))
        if known is not None:
            return known
        if len(self._flows) >= MOST_FLOWS and not self._make_room():
            detail = f"more than {MOST_FLOWS} flows at once without CAP_NET_RAW"
            return Failure(FailureKind.LOCAL, Stage.SEND, detail=detail)
        try:
            sock = open_udp(self._family, port, self._packet, source)
        except PrivilegeError as error:
            return Failure(FailureKind.LOCAL, Stage.SEND, detail=str(error))
        if sock is None:  # cannot be: the channel has opened one
            return Failure(FailureKind.LOCAL, Stage.SEND, detail=f"no {self._family}")
        self._ask_for_everything(sock)
        flow = self._flows[source, port] = _FlowSocket(sock, self._family, self._poll_one)
        return flow

    def _make_room(self) -> bool:
        """Close the socket that was used last of all, if that is long ago."""
        place = min(self._flows, key=lambda one: self._flows[one].used_ns)
        if time.monotonic_ns() - self._flows[place].used_ns < IDLE_NS:
            return False
        self._flows.pop(place).close()
        return True

    def _ask_for_everything(self, sock: socket.socket) -> None:
        """Extensions (Linux 5.9), and no fragments; learned path MTUs do not count."""
        level = socket.SOL_IP if self._v4 else socket.IPPROTO_IPV6
        option = IP_RECVERR_RFC4884 if self._v4 else IPV6_RECVERR_RFC4884
        discover = IP_MTU_DISCOVER if self._v4 else IPV6_MTU_DISCOVER
        stamps.switch_on_option(sock, level, option)
        sock.setsockopt(level, discover, PMTUDISC_PROBE)

    def _arrival(
        self, flow: _FlowSocket, error: stamps.PathError, quoted: bytes, address: str, port: int
    ) -> PathArrival | None:
        destination = address.partition("%")[0]
        headers = self._sent.find((flow.port, destination, port), quoted)
        if headers is None:
            return None
        message = self._rebuilt(error, headers, quoted)
        protocol = socket.IPPROTO_ICMP if self._v4 else socket.IPPROTO_ICMPV6
        return PathArrival(protocol, message, error.responder, error.ttl, error.stamp_unix_ns)

    def _rebuilt(self, error: stamps.PathError, headers: bytes, quoted: bytes) -> bytes:
        """The ICMP error as it came, but for the quoted headers: those are as they were sent, with
        the hop limit that a router ought to quote.
        """
        at = 8 if self._v4 else 7
        quote = headers[:at] + b"\x01" + headers[at + 1 :] + quoted
        unit = 4 if self._v4 else 8
        units = (len(headers) + error.extension_at) // unit if error.extension_at else 0
        rest = error.info.to_bytes(4, "big")
        if units:
            rest = bytes((0, units)) + rest[2:] if self._v4 else bytes((units,)) + rest[1:]
        head = bytes((error.icmp_type, error.icmp_code, 0, 0)) + rest
        if not self._v4:
            return head + quote
        return head[:2] + checksum(head + quote).to_bytes(2, "big") + rest + quote
