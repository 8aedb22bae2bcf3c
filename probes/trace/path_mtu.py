"""The largest packet that gets through to a destination, and who or what makes it so.

Sans-IO: `next` says what to send, all with "do not fragment" set; the caller tells what came of it.
A size is too long where a router says so (RFC 1191, RFC 8201) or where packets of that size vanish
again and again while shorter ones arrive (RFC 4821, RFC 8899): then somebody drops them and says
nothing, a black hole. Packets that vanish now and then, whatever their size, are loss: how often a
size has to vanish before it counts depends on how many shorter ones did.

    search = PathMtuSearch(AddressFamily.IPV4, largest=1500, hops=(1, 2, 4))
    while (probe := search.next()) is not None: ... send, then answered / too_big / lost / refused
    search.result()

An echo reply is as long as its request, so echo requests find the smaller of both directions; UDP
and TCP probes, which get short answers, find that of the way there.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from pathbudget.probes.record import AddressFamily

SMALLEST = {AddressFamily.IPV4: 128, AddressFamily.IPV6: 1_280}
"""Sizes that are sure to fit: over IPv4 as short as probes get (68 would, too), over IPv6 what
every link has to take (RFC 8200 section 5).
"""
LEAST_SAID = {AddressFamily.IPV4: 68, AddressFamily.IPV6: 1_280}
"""A router that claims a smaller MTU is not believed (RFC 1191 section 3, RFC 8201 section 4)."""
COMMON = (
    128, 256, 296, 508, 576, 1_006, 1_200, 1_280, 1_300, 1_320, 1_340, 1_350, 1_360, 1_380, 1_390,
    1_400, 1_410, 1_420, 1_430, 1_436, 1_440, 1_450, 1_454, 1_458, 1_460, 1_462, 1_464, 1_468,
    1_472, 1_476, 1_480, 1_488, 1_492, 1_496, 1_500, 2_002, 4_352, 8_166, 8_900, 8_970, 9_000,
)  # fmt: skip
"""What tunnels and links commonly have: tried before anything between."""
CHANCE = 0.002
"""By chance alone a size that fits is taken for too long at most about this often. A search asks
for some five sizes that fit: 1 % in all.
"""
LEAST_TRIES, MOST_TRIES = 2, 8
MOST_PROBES = 96


class MtuVerdict(StrEnum):
    """What the search can tell."""

    FOUND = "found"
    """Packets of `mtu` arrive, longer ones do not."""
    UNANSWERED = "unanswered"
    """The destination answers no packet at all; `mtu` is what routers said at most."""
    UNSURE = "unsure"
    """Too much is lost to tell; packets of `mtu` have arrived."""


class MtuProbe(NamedTuple):
    """A packet to send: octets from the IP header on; hop limit None: all the way."""

    size: int
    hop_limit: int | None = None


class PathMtu(NamedTuple):
    """`mtu` octets, from the IP header on; None: not even that is known. `narrowed_by` said that
    longer packets do not fit. `black_hole`: longer ones vanish without a word; then `last_reached`
    is the hop limit of the last router that got them, where that was asked for (0: none did).
    `largest` is what was tried at most: where `mtu` is that, it may be more.
    """

    verdict: MtuVerdict
    mtu: int | None
    narrowed_by: str | None
    black_hole: bool
    last_reached: int | None
    largest: int
    probes: int


class PathMtuSearch:
    """`largest` is the MTU of the own link; `hops` are hop limits at which routers answer short
    packets, as a trace has found them: with them a black hole is looked for.
    """

    def __init__(self, family: AddressFamily, largest: int, hops: Sequence[int] = ()) -> None:
        self._least_said = LEAST_SAID[family]
        self._low = min(SMALLEST[family], largest)
        self._largest = largest
        self._high = largest + 1
        """The smallest size that is known not to get through."""
        self._silent_high = False
        self._narrowed_by: str | None = None
        self._low_arrived = False
        self._hint = largest
        self._tries: dict[MtuProbe, int] = {}
        self._control = False
        """Whether the next packet is a short one, to see whether anything gets through."""
        self._short_lost = 0
        self._short_arrived = 0
        self._unsure = False
        self._hops = sorted(set(hops))
        self._reached = 0
        self._probes = 0

    def next(self) -> MtuProbe | None:
        """What to send now, one at a time; None: the search is over."""
        if self._probes >= MOST_PROBES:
            self._unsure = self._unsure or self._high - self._low > 1
            return None
        probe = self._choose()
        self._probes += probe is not None
        return probe

    def answered(self, probe: MtuProbe) -> None:
        """The destination answered; with a hop limit: somebody did."""
        if probe.hop_limit is not None:
            self._reached = max(self._reached, probe.hop_limit)
            self._hops = [hop for hop in self._hops if hop > probe.hop_limit]
            return
        self._low = max(self._low, probe.size)
        self._low_arrived = True
        self._short_arrived += 1
        self._control = False
        if self._high <= probe.size:  # it came late, or the path has changed
            self._high, self._silent_high = probe.size + 1, False

    def too_big(self, probe: MtuProbe, mtu: int | None, responder: str) -> None:
        """A router says that it does not fit; `mtu` None or 0: and not what would."""
        if probe.size <= self._low and self._low_arrived:
            return  # it did fit: said of an earlier packet, or a lie
        self._high, self._silent_high = min(self._high, probe.size), False
        self._narrowed_by = responder
        self._control = False
        if mtu and self._least_said <= mtu < probe.size:
            self._hint = max(mtu, self._low)
            self._high = min(self._high, mtu + 1)

    def refused(self, probe: MtuProbe) -> None:
        """This host itself has no link that takes it: nothing was sent."""
        self._high = min(self._high, probe.size)
        self._largest = min(self._largest, probe.size - 1)

    def lost(self, probe: MtuProbe) -> None:
        """Nothing came in time."""
        tries = self._tries[probe] = self._tries.get(probe, 0) + 1
        if probe.hop_limit is not None:
            if tries >= LEAST_TRIES:
                self._hops = [hop for hop in self._hops if hop < probe.hop_limit]
            return
        if probe.size <= self._low:
            self._short_lost += 1
            return
        share = (self._short_lost + 1) / (self._short_lost + self._short_arrived + 2)
        # A short one is sent in between: while nothing at all gets through, nothing is decided.
        self._control = tries == 1 or share**LEAST_TRIES > CHANCE
        if tries >= LEAST_TRIES and share**tries <= CHANCE:
            self._high, self._silent_high = probe.size, True
        elif tries >= MOST_TRIES:
            self._unsure = True

    def result(self) -> PathMtu:
        """What is known now; when `next` has said None, all that will be."""
        mtu: int | None = self._low if self._low_arrived else None
        verdict = MtuVerdict.FOUND
        if not self._low_arrived:
            verdict = MtuVerdict.UNANSWERED
            mtu = self._high - 1 if self._narrowed_by is not None else None
        elif self._unsure:
            verdict = MtuVerdict.UNSURE
        hole = self._low_arrived and self._silent_high and not self._unsure
        narrowed_by = None if hole else self._narrowed_by
        reached = self._reached if hole and self._high_asked else None
        return PathMtu(verdict, mtu, narrowed_by, hole, reached, self._largest, self._probes)

    @property
    def _high_asked(self) -> bool:
        return any(probe.hop_limit is not None for probe in self._tries) or self._reached > 0

    def _choose(self) -> MtuProbe | None:
        if self._unsure or self._short_lost >= MOST_TRIES + 2 * self._short_arrived:
            self._unsure = True
            return None
        if self._high - self._low <= 1:
            return self._last()
        if self._control:
            self._control = False
            return MtuProbe(self._low)
        return MtuProbe(self._candidate())

    def _last(self) -> MtuProbe | None:
        """The sizes are settled: make sure of the smallest, then look where the hole is."""
        if not self._low_arrived:
            return MtuProbe(self._low)
        if self._silent_high and self._hops:
            return MtuProbe(self._high, self._hops[len(self._hops) // 2])
        return None

    def _candidate(self) -> int:
        """What was hinted at; else a common size, in the middle of those in question; else what is
        next to a size that arrived, for it may be one of the common ones; else the middle.
        """
        hint, within = self._hint, range(self._low + 1, self._high)
        if hint in within:
            return hint
        common = [size for size in COMMON if size in within]
        if common:
            return common[len(common) // 2]
        if self._low in COMMON and MtuProbe(self._low + 1) not in self._tries:
            return self._low + 1
        return (self._low + self._high) // 2
