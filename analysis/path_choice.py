"""Which of the series of a region and a site stand for it: target, family, round-trip source.

Chosen by how completely a target was measured, never by how quick it was: choosing the quickest of
several would make every interval a lie (docs/adr/0050-which-series-stand-for-a-site.md).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.quantiles import loss_interval
from pathbudget.analysis.results import Carriage, Carrier, Finding, Mode
from pathbudget.analysis.series import NOT_OF_THE_PATH, NS_PER_MS, REFUSALS, Series, SeriesKey
from pathbudget.analysis.track import Track, merged
from pathbudget.probes.record import AddressFamily, FailureKind, Metric, Stage

SERVER_COMPUTE_NS = 5_000_000
"""Room for the server's own signature and certificate before its flight counts as a detour."""

NEW_CONNECTION_MODES = (Mode.COLD, Mode.RESUMED, Mode.EARLY_DATA)
TRACE = "trace"
CARRIERS = (Carrier.TLS, Carrier.QUIC)
CERTIFICATE = f"{FailureKind.CERTIFICATE}/{Stage.HANDSHAKE}"
"""How failures of trust are counted in a series."""
FAMILY_WORDS: dict[str, str] = {AddressFamily.IPV4: "IPv4", AddressFamily.IPV6: "IPv6"}


@dataclass(frozen=True, slots=True)
class PathSeries:
    """What stands for (region, site, target, family): one round-trip track, set-ups by mode."""

    region: str
    site: str
    target: str
    family: str | None
    round_trips: Track | None
    source: str
    """What the round trips are times of: ``icmp`` or another probe, ``connect``, ``tls``, ``quic``.
    """
    setups: dict[Carriage, Track]
    noise_floor_ns: int | None
    findings: tuple[Finding, ...] = ()
    refused: int = 0
    """How many TCP connects were refused."""
    connects: int = 0
    """How many TCP connects there were."""
    untrusted: int = 0
    """How many set-ups failed because the certificate was not trusted."""

    @property
    def refuses_everybody(self) -> bool:
        """Whether the network got there and no connection was let in."""
        return 0 < self.connects == self.refused

    @property
    def answered(self) -> int:
        """How many numbers there are, over all tracks."""
        return sum(track.n - track.losses for track in self._tracks())

    @property
    def attempts(self) -> int:
        """How many samples there are, losses included."""
        return sum(track.n for track in self._tracks())

    def completeness(self) -> tuple[bool, int, int]:
        """Larger is better: has round trips, connection modes with a number, numbers."""
        round_trips = self.round_trips
        reached = round_trips is not None and round_trips.losses < round_trips.n
        modes = sum(track.losses < track.n for track in self.setups.values())
        return reached, modes, self.answered

    def _tracks(self) -> list[Track]:
        return [*self.setups.values(), *([self.round_trips] if self.round_trips else [])]


class _Candidate:
    """Series of one (target, family)."""

    def __init__(
        self, of_target: Iterable[Series], family: str | None, one_of_several: bool = False
    ) -> None:
        self.over = f" over {FAMILY_WORDS.get(family or '', family)}" if one_of_several else ""
        """What tells findings of two families of one target apart."""
        self.series = [
            one
            for one in of_target
            if one.key.family in (family, None) and one.key.probe not in NOT_OF_THE_PATH
        ]
        floors = [one.noise_floor_ns for one in self.series if one.noise_floor_ns is not None]
        self.noise_floor_ns = max(floors, default=None)

    def echo_probe(self) -> str:
        """Who measured the round trips: ``icmp`` where it did, else whatever probe did."""
        probes = {one.key.probe for one in self.series if one.key.metric == Metric.RTT}
        return "icmp" if "icmp" in probes else " and ".join(sorted(probes - {TRACE} or probes))

    def echo(self) -> Track | None:
        """Round trips of packets: of ICMP echoes where there are any, else of any other probe.

        Traces are few, made to find the path, and often unanswered where everything else is
        answered: they stand for a path only where nothing else was measured.
        """
        return self.track(Metric.RTT, probe="icmp") or self.where(
            lambda key: key.metric == Metric.RTT and key.probe != TRACE
        )

    def track(self, metric: str, *, probe: str = "") -> Track | None:
        """All samples of a metric, of one probe if named."""
        return self.where(lambda key: key.metric == metric and probe in ("", key.probe))

    def where(self, wanted: Callable[[SeriesKey], bool]) -> Track | None:
        """All samples of the series that are wanted."""
        tracks = [one.track for one in self.series if wanted(one.key)]
        return merged(tracks) if tracks else None


def path_candidates(series: Iterable[Series]) -> tuple[PathSeries, ...]:
    """Every (target, family) among the series of one region and one site, best first.

    IPv4 comes before IPv6 where both answered. Samples without a family (a tool
    did not say which) count for every family of their target.
    """
    everything = list(series)
    region, site = everything[0].key.region, everything[0].key.site
    by_target: dict[str, list[Series]] = {}
    for one in everything:
        by_target.setdefault(one.key.target, []).append(one)
    paths = [
        _path(region, site, target, family, _Candidate(of_target, family, len(families) > 1))
        for target, of_target in by_target.items()
        for families in [{one.key.family for one in of_target} - {None} or {None}]
        for family in families
    ]
    return tuple(sorted(paths, key=_order))


def _order(path: PathSeries) -> tuple[bool, bool, int, int, str]:
    reached, modes, answered = path.completeness()
    return not reached, path.family == AddressFamily.IPV6, -modes, -answered, path.target


def _path(
    region: str, site: str, target: str, family: str | None, candidate: _Candidate
) -> PathSeries:
    named = target + candidate.over
    source, round_trips, findings = _round_trips(region, site, named, candidate)
    return PathSeries(
        region=region,
        site=site,
        target=target,
        family=family,
        round_trips=round_trips,
        source=source,
        setups={
            (carrier, mode): track
            for carrier in CARRIERS
            for mode in NEW_CONNECTION_MODES
            if (track := _setup(candidate, (carrier, mode))) is not None
        },
        noise_floor_ns=candidate.noise_floor_ns,
        findings=tuple(findings),
        refused=_number_of(candidate.track(REFUSALS)),
        connects=_number_of(candidate.track(Metric.CONNECT)),
        untrusted=sum(
            one.failures[CERTIFICATE] for one in candidate.series if one.key.metric == Metric.SETUP
        ),
    )


def _number_of(track: Track | None) -> int:
    return 0 if track is None else track.n


def _setup(candidate: _Candidate, carriage: Carriage) -> Track | None:
    """Set-ups of a mode over a transport: of the probe that is made for it, else of any other.

    Those that failed before a mode was chosen count against each mode.
    """
    carrier, mode = carriage

    def track(mode: Mode | None, probe: str) -> Track | None:
        return candidate.where(
            lambda key: (
                (key.metric, key.transport, key.mode) == (Metric.SETUP, carrier, mode)
                and probe in ("", key.probe)
            )
        )

    probe = carrier if track(mode, carrier) is not None else ""
    own, modeless = track(mode, probe), track(None, probe)
    return own if own is None or modeless is None else merged([own, modeless])


def _round_trips(
    region: str, site: str, target: str, candidate: _Candidate
) -> tuple[str, Track | None, list[Finding]]:
    """The round trips of the application's path, and what was odd about the choice."""
    findings: list[Finding] = []
    connect = candidate.track(Metric.CONNECT, probe="tcp") or candidate.track(Metric.CONNECT)
    echo = candidate.echo() or (candidate.track(Metric.RTT) if connect is None else None)
    flight = candidate.track(Metric.TLS_HANDSHAKE)
    source, chosen = ("connect", connect) if echo is None else (candidate.echo_probe(), echo)
    if chosen is None:
        source, chosen = "quic", candidate.track(Metric.QUIC_HANDSHAKE)
    if echo is not None and connect is not None and _suppressed(echo, connect):
        text = (
            f"{target} answers {_share(echo)} of ICMP echoes but {_share(connect)} of TCP "
            "connects: ICMP is filtered or rate-limited, and TCP connect times are used."
        )
        findings.append(
            Finding(kind=FindingKind.ICMP_FILTERED, region=region, site=site, text=text)
        )
        source, chosen = "connect", connect
    if connect is not None and flight is not None:
        middlebox = _middlebox(region, site, target, connect, flight, candidate.noise_floor_ns)
        if middlebox is not None:
            findings.append(middlebox)
            source, chosen = "tls", flight
    return source, chosen, findings


def _share(track: Track) -> str:
    return f"{track.n - track.losses} of {track.n}"


def _suppressed(echo: Track, connect: Track) -> bool:
    """Whether echoes are lost so much oftener than connects that the path cannot be the cause."""
    return loss_interval(echo.losses, echo.n)[0] > loss_interval(connect.losses, connect.n)[1]


def _middlebox(
    region: str, site: str, target: str, connect: Track, flight: Track, floor_ns: int | None
) -> Finding | None:
    """Something nearer than the server accepts the connection, if even the minima say so.

    Minima, because a busy server makes its median flight late, but not every flight.
    """
    near, far = _minimum(connect), _minimum(flight)
    if not np.isfinite(near + far) or far - 2 * near <= max(floor_ns or 0, SERVER_COMPUTE_NS):
        return None
    text = (
        f"{target}: the fastest TCP connect took {near / NS_PER_MS:.2f} ms, the fastest TLS flight "
        f"{far / NS_PER_MS:.2f} ms (ratio {far / near:.1f}): a middlebox answers the connection "
        "before the server does, so TLS flights are taken as the round trip."
    )
    return Finding(kind=FindingKind.MIDDLEBOX, region=region, site=site, text=text)


def _minimum(track: Track) -> float:
    numbers = track.values_ns[np.isfinite(track.values_ns)]
    return float(np.min(numbers)) if len(numbers) else float("inf")
