"""Which announced prefixes matter, and to which site."""

from collections.abc import Iterable
from dataclasses import dataclass

from pathbudget.probes.bgp.prefix_text import PrefixBits, prefix_bits

LEAST_BITS = {32: 8, 128: 16}
"""What covers an address and is shorter says nothing about it: a default route, mostly."""


@dataclass(frozen=True, slots=True)
class WatchedPrefix:
    """A prefix of a site, or an address of one whose prefix nobody stated."""

    site: str
    prefix: PrefixBits
    of_address: bool = False

    def concerned_by(self, announced: PrefixBits) -> bool:
        """A stated prefix is, by itself and by parts of it; an address by whatever covers it."""
        if self.of_address:
            least = LEAST_BITS[announced.width]
            return announced.bits >= least and announced.covers(self.prefix)
        return self.prefix.covers(announced)


class Watch:
    """What a route table keeps. Without an entry it keeps everything, and knows no site."""

    def __init__(self, watched: Iterable[WatchedPrefix] = ()) -> None:
        self.watched = tuple(watched)
        self._sites: dict[str, str | None] = {}

    @classmethod
    def of_sites(cls, prefixes: Iterable[tuple[str, str]]) -> "Watch":
        """From pairs of site and prefix; a bare address stands for whatever covers it.

        Raises ValueError for what is neither.
        """
        return cls(
            WatchedPrefix(site, prefix_bits(text), of_address="/" not in text)
            for site, text in prefixes
        )

    def site_of(self, prefix: str) -> str | None:
        """The site that `prefix` concerns; empty for none in particular; None: leave it out."""
        if not self.watched:
            return ""
        if prefix not in self._sites:
            if len(self._sites) > 100_000:
                self._sites.clear()
            self._sites[prefix] = self._find(prefix)
        return self._sites[prefix]

    def _find(self, prefix: str) -> str | None:
        try:
            announced = prefix_bits(prefix)
        except ValueError:
            return None
        found = [one for one in self.watched if one.concerned_by(announced)]
        if not found:
            return None
        return max(found, key=lambda one: one.prefix.bits).site

    def shadowed_by(self, prefix: str, others: Iterable[str]) -> list[str]:
        """Longer prefixes among `others` that carry the packets to every address that `prefix`
        is watched for; empty when it is watched for itself.
        """
        announced = prefix_bits(prefix)
        concerned = [one for one in self.watched if one.concerned_by(announced)]
        if not concerned or not all(one.of_address for one in concerned):
            return []
        longer = [other for other in others if prefix_bits(other).bits > announced.bits]
        return [
            other
            for other in longer
            if all(prefix_bits(other).covers(one.prefix) for one in concerned)
        ]
