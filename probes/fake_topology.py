"""A network of routers for tests of traces: who forwards which packet where, and what they answer.

    topology = FakeTopology(seed=7)
    topology.layers("192.0.2.9", [["10.0.0.1"], ["10.0.1.1", "10.0.1.2"], ["10.0.2.1"]])
    topology.node("10.0.1.1").labels = (LabelEntry(24015, 0, True, 1),)
    network = FakeNetwork(clock, topology=topology)

A packet really is read: its hop limit runs out where it does, and balancers hash what it has in the
places that they hash. All is settled by the seed. Everything may be changed while it runs (see
`FakeClock.call_at`): that is how a path moves. `paths` and `links` are the truth to compare with.
"""

import hashlib
import itertools
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pathbudget.probes.fake_packets import FakePacket
from pathbudget.probes.trace.contract import LabelEntry

HOP_NS = 500_000
"""One way, of a link that says nothing else."""
ROUTER_TTL, HOST_TTL = 255, 64


class Balance(StrEnum):
    """What a router with several ways chooses by."""

    FLOW = "flow"
    DESTINATION = "destination"
    PACKET = "packet"
    """At random: flows are torn."""


@dataclass(frozen=True)
class FakeNat:
    """Rewrites the source of what goes on, and the checksum with it; quotes come back with the old
    addresses and the new checksum. `port` too, where it is given: by what to move it.
    """

    public: str
    port_shift: int = 0


@dataclass(eq=False)
class FakeRouter:
    """A router; a host, where no link leads on to the destination of a packet.

    `address` is what it answers with; `silent` it never does. `per_second` and `burst` limit its
    answers (a token bucket), `answers_lost` is the share of answers that get lost, `answer_ns` what
    it takes to make one. `hidden` it takes nothing off the hop limit. `labels` go into its errors
    (RFC 4950); `quoted_ttl` is the hop limit in its quotes, None: 1, as it ought to be. `quotes` is
    how much it quotes behind the IP header. `refuses` is type 3 (IPv6: 1) and this code to all that
    would go on. `passes` false drops a packet without a word: a firewall. `returns` are hops of the
    way back beyond those there.

    Of a host: `open_ports` answer SYNs with SYN-ACK, others with RST; `selective` is whether it
    speaks SACK, so that its acknowledgements say which segment came twice (RFC 2883).
    """

    address: str
    seed: int
    balance: Balance = Balance.FLOW
    silent: bool = False
    per_second: float | None = None
    burst: int = 1
    answers_lost: float = 0.0
    answer_ns: int = 0
    hidden: bool = False
    labels: tuple[LabelEntry, ...] = ()
    quoted_ttl: int | None = None
    quotes: int = 548
    refuses: int | None = None
    passes: Callable[[FakePacket], bool] | None = None
    nat: FakeNat | None = None
    returns: int = 0
    open_ports: Collection[int] = frozenset()
    selective: bool = True
    tells_too_big: bool = True
    to: "dict[str, list[FakeLink]]" = field(default_factory=dict[str, "list[FakeLink]"])
    """Ways on, by destination."""
    answered: int = 0
    _tokens: float = 0.0
    _filled_ns: int | None = None

    def may_answer(self, now_ns: int) -> bool:
        """Take one token out of the bucket, if there is one."""
        if self.silent:
            return False
        if self.per_second is not None:
            if self._filled_ns is None:
                self._tokens, self._filled_ns = float(self.burst), now_ns
            elapsed = max(0, now_ns - self._filled_ns)
            self._tokens = min(self.burst, self._tokens + elapsed * self.per_second / 1e9)
            self._filled_ns = max(now_ns, self._filled_ns)
            if self._tokens < 1:
                return False
            self._tokens -= 1
        self.answered += 1
        return True


@dataclass(eq=False)
class FakeLink:
    """A way to a neighbour. `share` weighs it against the others; `lost` is a probability; longer
    packets than `mtu` do not fit (and are refused by who would send them into it).
    """

    router: FakeRouter
    delay_ns: int = HOP_NS
    share: int = 1
    lost: float = 0.0
    mtu: int | None = None
    variation_ns: int = 0
    """Up to this much more, at random."""


class FakeTopology:
    """Routers and the links between them. Hop 0 is `here`, the host that sends."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.routers: dict[str, FakeRouter] = {}
        self.here = FakeRouter("", seed)

    def node(self, address: str) -> FakeRouter:
        """The router or host of this address; made when it is first named."""
        known = self.routers.get(address)
        if known is None:
            own = hashlib.blake2b(f"{self.seed}/{address}".encode(), digest_size=8).digest()
            known = self.routers[address] = FakeRouter(address, int.from_bytes(own, "big"))
        return known

    def link(self, destination: str, before: str | FakeRouter, after: str | FakeRouter) -> FakeLink:
        """One more way for packets to `destination`; "" is the host that sends."""
        link = FakeLink(self._named(after))
        self._named(before).to.setdefault(destination, []).append(link)
        return link

    def layers(
        self,
        destination: str,
        layers: Sequence[Sequence[str]],
        *,
        meshed: Collection[int] = (),
    ) -> None:
        """A way to `destination` through layers of routers, one layer per hop.

        Between two layers as few links as can be (no meshing), or all, where the index of the
        first of both is in `meshed`. What was there before is forgotten.
        """
        for router in (self.here, *self.routers.values()):
            router.to.pop(destination, None)
        whole: list[Sequence[str]] = [[""], *layers, [destination]]
        for index, (near, far) in enumerate(itertools.pairwise(whole)):
            all_of = index - 1 in meshed
            for one, other in _wires(len(near), len(far), meshed=all_of):
                self.link(destination, near[one], far[other])

    def links_of(self, destination: str) -> Iterator[tuple[FakeRouter, FakeLink]]:
        """Every link that packets to this destination may take, with who is before it."""
        seen: set[int] = set()
        open_ = [self.here]
        while open_:
            router = open_.pop()
            if id(router) in seen:
                continue
            seen.add(id(router))
            for link in router.to.get(destination, ()):
                yield router, link
                open_.append(link.router)

    def paths(self, destination: str) -> set[tuple[str, ...]]:
        """The truth: all ways, as what each hop answers with; "" of one that does not."""
        found: set[tuple[str, ...]] = set()
        self._follow(self.here, destination, (), found)
        return found

    def links(self, destination: str) -> set[tuple[int, str, str]]:
        """The truth: (hop limit of the nearer, nearer, further), where both answer."""
        return {
            (hop + 1, near, far)
            for path in self.paths(destination)
            for hop, (near, far) in enumerate(itertools.pairwise(path))
            if near and far
        }

    def next_link(
        self, router: FakeRouter, packet: FakePacket, destination: str
    ) -> FakeLink | None:
        """The link that this packet takes from here; None where there is no way on."""
        links = router.to.get(destination)
        if not links:
            return None
        if len(links) == 1:
            return links[0]
        place = self._choice(router, packet) % sum(link.share for link in links)
        for link in links:
            place -= link.share
            if place < 0:
                return link
        raise AssertionError

    def path_of(self, packet: FakePacket) -> list[FakeRouter]:
        """The truth of one packet: every router that it would pass, and the destination."""
        passed: list[FakeRouter] = []
        link = self.next_link(self.here, packet, packet.destination)
        while link is not None:
            passed.append(link.router)
            link = self.next_link(link.router, packet, packet.destination)
        return passed

    def _choice(self, router: FakeRouter, packet: FakePacket) -> int:
        if router.balance is Balance.PACKET:
            return self.rng.getrandbits(32)
        hashed = packet.hashed() if router.balance is Balance.FLOW else packet.destination.encode()
        key = router.seed.to_bytes(8, "big")
        return int.from_bytes(hashlib.blake2b(hashed, digest_size=8, key=key).digest(), "big")

    def _follow(
        self,
        router: FakeRouter,
        destination: str,
        before: tuple[str, ...],
        found: set[tuple[str, ...]],
    ) -> None:
        links = router.to.get(destination, ())
        if not links and before:
            found.add(before)
        for link in links:
            there = link.router
            name = () if there.hidden else ("" if there.silent else there.address,)
            self._follow(there, destination, before + name, found)

    def _named(self, router: str | FakeRouter) -> FakeRouter:
        if isinstance(router, FakeRouter):
            return router
        return self.node(router) if router else self.here


def _wires(near: int, far: int, *, meshed: bool) -> Iterator[tuple[int, int]]:
    if meshed:
        yield from itertools.product(range(near), range(far))
    elif near <= far:
        yield from ((other * near // far, other) for other in range(far))
    else:
        yield from ((one, one * far // near) for one in range(near))
