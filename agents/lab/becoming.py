"""Has a running lab become another world: what differs is changed, and nothing else."""

from collections.abc import Iterator

from pathbudget.agents.lab.birds import Birds
from pathbudget.agents.lab.control import Change, Mute
from pathbudget.agents.lab.fabric import Fabric, hop_parameters
from pathbudget.agents.lab.hop_setup import ETHERNET_MTU, hop_setup, needs_help
from pathbudget.agents.lab.link_process import LinkProcess
from pathbudget.agents.lab.namespaces import inside, set_kernel_parameter
from pathbudget.agents.lab.topology import LinkState, NodeKind
from pathbudget.agents.lab.world import World

WITHOUT_LIMIT = (("net/ipv4/icmp_ratelimit", "0"), ("net/ipv6/icmp/ratelimit", "0"))


class Becoming:
    """The parts of a running lab that can change. Raises OSError, LabError."""

    def __init__(self, fabric: Fabric, links: LinkProcess, birds: Birds | None) -> None:
        self._fabric = fabric
        self._links = links
        self._birds = birds

    def become(self, before: World, after: World, over_ns: int = 0) -> None:
        """First what packets meet, then what ends of links see, then what routing makes of it."""
        for change in changes(before, after, over_ns):
            self._links.change(change)
        self._change_hops(before, after)
        self._change_ends(before, after)
        self._change_listeners(before, after)
        if self._birds:
            self._birds.follow(after)
        else:
            self._fabric.follow_routes(before, after)

    def _change_hops(self, before: World, after: World) -> None:
        for node in after.of_kind(NodeKind.ROUTER):
            name = node.name
            if node.hop.icmp_rate_ns != before.nodes[name].hop.icmp_rate_ns:
                with inside(self._fabric.spaces[name].descriptor):
                    for parameter in hop_parameters(node) or WITHOUT_LIMIT:
                        set_kernel_parameter(*parameter)
            if needs_help(before, name) or needs_help(after, name):
                setup = hop_setup(after, name)
                if setup != hop_setup(before, name):
                    self._links.treat(setup)

    def _change_ends(self, before: World, after: World) -> None:
        for number, (one, other) in enumerate(zip(before.links, after.links, strict=True)):
            if one.mtu != other.mtu:
                self._fabric.set_mtu(number, other.mtu or ETHERNET_MTU)
            carrier = other.state is not LinkState.DOWN
            if carrier != (one.state is not LinkState.DOWN):
                self._fabric.set_carrier(number, carrier=carrier)

    def _change_listeners(self, before: World, after: World) -> None:
        for listener in after.listeners:
            muted = listener.name in after.stalled_listeners
            if muted != (listener.name in before.stalled_listeners):
                self._links.mute(Mute(after.address_of(listener.at), listener.port, muted))


def changes(before: World, after: World, over_ns: int) -> Iterator[Change]:
    """What the emulator has to be told."""
    for source, steps in after.passes.items():
        for was, step in zip(before.passes[source], steps, strict=True):
            if was.models != step.models:
                yield Change(step.link, source, step.models, over_ns)
