"""What a person must know before using the numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.results import Finding, RegionInfo, SiteInfo, VantageInfo
from pathbudget.analysis.series import Series
from pathbudget.probes.record import ClockSource, Flag

LISTED = 12
"""How many names one sentence takes."""

SeriesByPair = Mapping[tuple[str, str], Sequence[Series]]


def clock_findings(vantages: Iterable[VantageInfo]) -> list[Finding]:
    """Vantages whose wall clock was stepped while they measured."""
    return [
        Finding(
            kind=FindingKind.CLOCK_STEP,
            region=vantage.region,
            site="",
            text=(
                f"the wall clock of vantage {vantage.name} was stepped "
                f"{_times(vantage.clock_steps)} during measurements, by up to "
                f"{vantage.largest_step_ms:.1f} ms; intervals come "
                "from the monotonic clock, samples that do not are excluded."
            ),
        )
        for vantage in vantages
        if vantage.clock_steps
    ]


def sample_findings(by_pair: SeriesByPair) -> list[Finding]:
    """What the flags and clock sources of the samples of each pair say."""
    found: list[Finding] = []
    for (region, site), series in by_pair.items():
        flags: Counter[str] = Counter()
        clocks: Counter[str] = Counter()
        for one in series:
            if one.key.metric == "connect":
                flags.update(one.flags)
            if one.key.metric == "rtt":
                clocks.update(one.clock_sources)
        found += _retransmitted(region, site, flags[Flag.SYN_RETRANSMITTED])
        found += _user_clock(region, site, clocks)
        found += _address_changed(region, site, series)
    return found


def _retransmitted(region: str, site: str, n: int) -> list[Finding]:
    if not n:
        return []
    text = (
        f"{n} TCP {'connect' if n == 1 else 'connects'} lost a SYN and waited for its "
        "retransmission (RFC 6298): that is a loss, no round trip."
    )
    return [Finding(kind=FindingKind.SYN_RETRANSMITTED, region=region, site=site, text=text)]


def _user_clock(region: str, site: str, clocks: Counter[str]) -> list[Finding]:
    n, of = clocks[ClockSource.USER], clocks.total()
    if not n:
        return []
    text = (
        f"{n} of {of} round trips were stamped in user space: they include the scheduling delay "
        "of the measuring host."
    )
    return [Finding(kind=FindingKind.USER_CLOCK, region=region, site=site, text=text)]


def _address_changed(region: str, site: str, series: Sequence[Series]) -> list[Finding]:
    addresses: dict[tuple[str, str], set[str]] = {}
    for one in series:
        if one.key.address and one.key.family:
            addresses.setdefault((one.key.target, one.key.family), set()).add(one.key.address)
    return [
        Finding(
            kind=FindingKind.ADDRESS_CHANGED,
            region=region,
            site=site,
            text=(
                f"{target} had {len(known)} {family} addresses "
                f"({', '.join(sorted(known)[:LISTED])}): each is a series of its own, and the "
                "lines are over all of them."
            ),
        )
        for (target, family), known in sorted(addresses.items())
        if len(known) > 1
    ]


def unreachable_findings(candidates: Iterable[PathSeries]) -> list[Finding]:
    """Targets of which not one probe was answered."""
    return [
        Finding(
            kind=FindingKind.UNREACHABLE,
            region=path.region,
            site=path.site,
            text=(
                f"{path.target} over {path.family or 'any address family'} answered none of "
                f"{path.attempts} probes."
            ),
        )
        for path in candidates
        if path.answered == 0 and path.attempts and not path.refused
    ]


def refused_findings(candidates: Iterable[PathSeries]) -> list[Finding]:
    """Targets that refused connections: the network is there, the service is not."""
    return [
        Finding(
            kind=FindingKind.REFUSED,
            region=path.region,
            site=path.site,
            text=(
                f"{path.target} over {path.family or 'any address family'} refused "
                f"{path.refused} of {path.connects} TCP connects: {_what_refusals_mean(path)}"
            ),
        )
        for path in candidates
        if path.refused
    ]


def _what_refusals_mean(path: PathSeries) -> str:
    if path.refuses_everybody:
        return "the network gets there, and no service answers."
    return "each is a round trip of the network and counts as a lost connection."


def service_findings(candidates: Iterable[PathSeries]) -> list[Finding]:
    """Targets that the network reaches and that accept no connection."""
    found: list[Finding] = []
    for path in candidates:
        attempts = sum(track.n for track in path.setups.values())
        failed = sum(track.losses for track in path.setups.values())
        explained = path.refuses_everybody or 2 * path.untrusted > attempts
        if path.answered and failed == attempts > 0 and not explained:
            text = (
                f"not one of {attempts} connections to {path.target} over "
                f"{path.family or 'any address family'} could be set up: its warm lines say what "
                "the path costs, not that a service answers."
            )
            one = Finding(
                kind=FindingKind.UNREACHABLE, region=path.region, site=path.site, text=text
            )
            found.append(one)
    return found


def name_findings(unresolved: Mapping[tuple[str, str, str], int]) -> list[Finding]:
    """Targets whose names had no address, so that nothing was sent to them."""
    return [
        Finding(
            kind=FindingKind.NAME_NOT_FOUND,
            region=region,
            site=site,
            text=(
                f"the name of {target} was not found {_times(n)}: nothing was sent then, and "
                "nothing counts as lost."
            ),
        )
        for (region, site, target), n in sorted(unresolved.items())
    ]


def place_findings(
    regions: Sequence[RegionInfo],
    sites: Sequence[SiteInfo],
    known_regions: Iterable[str],
    known_sites: Iterable[str],
) -> list[Finding]:
    """Regions and sites of the measurements that the catalogue does not know."""
    regions_known, sites_known = set(known_regions), set(known_sites)
    unknown_regions = [region for region in regions if region.name not in regions_known]
    placed = [region.name for region in unknown_regions if region.latitude is not None]
    unplaced = [region.name for region in unknown_regions if region.latitude is None]
    unknown_sites = [site.name for site in sites if site.name not in sites_known]
    weight = "not in the catalogue: weight taken as 1"
    return [
        *_unknown("region", placed, f"{weight}, place from the vantages"),
        *_unknown("region", unplaced, weight),
        *_unknown("site", unknown_sites, "not in the catalogue: no coordinates, no price"),
    ]


def _unknown(noun: str, names: Sequence[str], problem: str) -> list[Finding]:
    """One finding, however many places are unknown."""
    if not names:
        return []
    what = f"{noun} {names[0]} is" if len(names) == 1 else f"{len(names)} {noun}s are"
    listed = ", ".join(names[:LISTED]) + (" ..." if len(names) > LISTED else "")
    text = f"{what} {problem}." if len(names) == 1 else f"{what} {problem} ({listed})."
    one = names[0] if len(names) == 1 else ""
    region, site = (one, "") if noun == "region" else ("", one)
    return [Finding(kind=FindingKind.UNKNOWN_PLACE, region=region, site=site, text=text)]


def unmeasured_finding(pairs: Sequence[tuple[str, str]], of: int) -> list[Finding]:
    """Pairs of a region and a site that nobody measured, in one sentence."""
    if not pairs:
        return []
    named = ", ".join(f"{region} to {site}" for region, site in pairs[:LISTED])
    more = f" and {len(pairs) - LISTED} more" if len(pairs) > LISTED else ""
    text = f"{len(pairs)} of {of} pairs of a region and a site were not measured: {named}{more}."
    return [Finding(kind=FindingKind.UNMEASURED, region="", site="", text=text)]


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
