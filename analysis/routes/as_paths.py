"""From hops to autonomous systems.

A hop is mapped by longest match; what the table does not know, reserved addresses and networks of
exchanges are wild. That is as much as addresses tell: the link between two carriers is numbered by
one of them, so that a border may lie one hop further (Luckie et al., bdrmap, IMC 2016), and the AS
of an exchange is in the path where the exchange announces its own network.
"""

from collections.abc import Iterable

from pathbudget.analysis.routes.model import WILD, FlowPath, Hop
from pathbudget.sites.prefix_table import Origins

WILD_WORD = "*"
"""Stands for any number of unknown hops or ASes, none included."""


def as_path(path: FlowPath, origins: Origins) -> tuple[str, ...]:
    """``("AS65010", "*", "AS65020")``: each AS once, unknown hops between two of one AS filled."""
    return as_words(path.hops, origins)


def as_words(hops: Iterable[Hop], origins: Origins) -> tuple[str, ...]:
    """The same of hops alone."""
    return tuple("_".join(sorted(hop)) or WILD_WORD for hop in as_hops(hops, origins))


def as_hops(hops: Iterable[Hop], origins: Origins) -> tuple[Hop, ...]:
    """ASes in order, each as the set of those it may be; wild between different ones.

    Several are possible where a prefix is announced by several (MOAS), or addresses of several ASes
    answered at one hop; what the neighbour can be too is taken for the neighbour.
    """
    found: list[Hop] = []
    for hop in hops:
        asns = frozenset().union(*(_asns(address, origins) for address in hop))
        if not asns:
            found.append(WILD)
            continue
        before = next((one for one in reversed(found[-2:]) if one), WILD)
        shared = before & asns
        if shared:
            while found and not found[-1]:
                found.pop()
            found[-1] = shared
        else:
            found.append(asns)
    return _without_repeats(found)


def _asns(address: str, origins: Origins) -> frozenset[str]:
    origin = origins.look_up(address)
    return frozenset(f"AS{asn}" for asn in origin.asns) if origin is not None else frozenset()


def _without_repeats(hops: Iterable[Hop]) -> tuple[Hop, ...]:
    """Unknown hops in a row are one."""
    kept: list[Hop] = []
    for hop in hops:
        if hop or not kept or kept[-1]:
            kept.append(hop)
    return tuple(kept)
