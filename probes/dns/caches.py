"""Whether a number is that of a name at hand, or of one that was fetched meanwhile. No I/O.

A cache counts the time to live of what it keeps down (RFC 1035), and an authoritative server says
that it is one. So an answer that could not yet have run out and whose time has fallen is a hit; one
whose time to live went up was fetched anew, by another server of a pool or for our own question:
that number may be a miss, and says so.
"""

from collections.abc import Hashable

from pathbudget.probes.dns.answers import Answer

SECOND_NS = 1_000_000_000
ROUNDING_NS = SECOND_NS
"""Times to live are whole seconds: what a cache says may be off by one."""
AGED, AUTHORITATIVE, REFILLED, SYNTHESISED = "aged", "authoritative", "refilled", "synthesised"
UNSURE = frozenset({REFILLED, SYNTHESISED})
"""Of these nobody knows whether the server had to ask another one."""


class Caches:
    """What the servers asked are known to have at hand, each under any key."""

    def __init__(self) -> None:
        self._until_ns: dict[Hashable, int] = {}
        self._longest_s: dict[Hashable, int] = {}

    def at_hand(self, server: Hashable, now_ns: int) -> bool:
        """Whether the server surely still has the name; else it is to be asked once before."""
        return now_ns < self._until_ns.get(server, now_ns)

    def primed(self, server: Hashable, answer: Answer, now_ns: int) -> None:
        """It has answered the question that is not measured."""
        self._until_ns[server] = _runs_out_ns(answer, now_ns)

    def hit(self, server: Hashable, answer: Answer, now_ns: int) -> str:
        """What the answer for the name shows of where it came from."""
        ends_ns, known_ns = _runs_out_ns(answer, now_ns), self._until_ns.get(server)
        aged = known_ns is not None and ends_ns <= known_ns + ROUNDING_NS
        # The earliest of what one filling was said to last, else small rises would add up.
        self._until_ns[server] = min(ends_ns, known_ns or ends_ns) if aged else ends_ns
        if answer.authoritative:
            return AUTHORITATIVE
        return AGED if aged and answer.ttl_s else REFILLED

    def miss(self, server: Hashable, answer: Answer) -> str:
        """The same for a new name: one whose time has already fallen was made of what the server
        had (RFC 8198). Empty where nothing speaks against a miss.
        """
        if answer.authoritative:
            return AUTHORITATIVE
        if answer.ttl_s is None:
            return ""
        longest = self._longest_s[server] = max(answer.ttl_s, self._longest_s.get(server, 0))
        return SYNTHESISED if answer.ttl_s < longest else ""


def _runs_out_ns(answer: Answer, now_ns: int) -> int:
    """When the name may have run out: a second early, because caches round."""
    return now_ns + max((answer.ttl_s or 0) * SECOND_NS - ROUNDING_NS, 0)
