"""When the RST that refused a connect came, by the kernel's stamp, where a raw socket may be had.

The kernel tells the connecting socket nothing but "refused": no stamp, no TCP_INFO. A raw socket
beside it hears the same RST, earlier and stamped.
"""

from collections import OrderedDict

from pathbudget.probes.channels import Network, PacketOptions, SegmentBatch, SegmentChannel
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.tcp_wire import parse_answer

REMEMBERED = 4_096
"""Most of what is heard is the business of other programs of this host."""


class Refusals:
    """Hears every RST that this host gets. Nothing is heard where the kernel does not allow it."""

    def __init__(self, network: Network, packet: PacketOptions) -> None:
        self._heard: OrderedDict[tuple[str, int, int], int] = OrderedDict()
        self._channels: dict[AddressFamily, SegmentChannel] = {}
        for family in AddressFamily:
            try:
                channel = network.open_segments(
                    family, self._listen, (), PacketOptions(interface=packet.interface)
                )
            except PrivilegeError:
                continue
            if channel is not None:
                self._channels[family] = channel

    def stamp(self, family: AddressFamily, address: str, port: int, flow: int | None) -> int | None:
        """When the latest RST from there to our port `flow` came; None where nobody knows."""
        channel = self._channels.get(family)
        if channel is None or flow is None:
            return None
        channel.poll()  # the raw socket gets it before the connecting one is told
        return self._heard.pop((canonical(address), port, flow), None)

    def close(self) -> None:
        """Give the sockets back."""
        for channel in self._channels.values():
            channel.close()

    def _listen(self, batch: SegmentBatch) -> None:
        for segment in batch.arrivals:
            answer = parse_answer(segment.data)
            if answer is None or not answer.refused or segment.kernel_unix_ns is None:
                continue
            place = (canonical(segment.sender), answer.source_port, answer.destination_port)
            self._heard[place] = segment.kernel_unix_ns
            self._heard.move_to_end(place)
            if len(self._heard) > REMEMBERED:
                self._heard.popitem(last=False)
