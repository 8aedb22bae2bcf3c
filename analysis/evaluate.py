"""The whole way: measurements and a catalogue in, one `Evaluation` out. Start reading here."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pathbudget.analysis.budget import NAME_NOT_FOUND, PathBudget, unmeasured_headline
from pathbudget.analysis.directions import directions_of
from pathbudget.analysis.findings import (
    clock_findings,
    name_findings,
    place_findings,
    refused_findings,
    sample_findings,
    service_findings,
    unmeasured_finding,
    unreachable_findings,
)
from pathbudget.analysis.floor import pair_of
from pathbudget.analysis.intervals.busy_hours import (
    NOT_IN_THE_EVENING,
    busy_hour_findings,
    quiet_regions,
)
from pathbudget.analysis.one_way_tracks import MeasuredStream, one_way_tracks
from pathbudget.analysis.packets import PacketCollector
from pathbudget.analysis.path_choice import PathSeries, path_candidates
from pathbudget.analysis.places import PlaceCollector, point_of, tier_info, tiers_of
from pathbudget.analysis.provenance import ProvenanceCollector
from pathbudget.analysis.requests import RequestCollector, Requests
from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Exclusion,
    Finding,
    Objective,
    Pair,
    Recommendation,
    RegionInfo,
    SiteInfo,
)
from pathbudget.analysis.series import Series, SeriesCollector
from pathbudget.analysis.series_extras import series_timers, under_load
from pathbudget.analysis.siting.decision_results import HeadlineSampling
from pathbudget.analysis.siting.ground import ground_of
from pathbudget.analysis.siting.judged import with_robustness
from pathbudget.analysis.siting.recommend import capacity_findings, recommend
from pathbudget.analysis.stream_findings import load_findings, stream_findings, timer_findings
from pathbudget.analysis.stream_results import StreamSummary
from pathbudget.analysis.stream_summary import summarise_stream
from pathbudget.analysis.summary import summarise
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import Uploads
from pathbudget.analysis.whole_budget.evaluation import Networks, whole_budgets
from pathbudget.analysis.whole_budget.network import NetworkSource
from pathbudget.analysis.whole_budget.results import WholeBudget
from pathbudget.analysis.whole_budget.terms import Term
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue, Tier

PairName = tuple[str, str]
"""Region and site."""

MOST_CONFIDENCE = 0.9999
"""More is not to be told from certainty by any number of samples that there will be."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What is wanted. `tiers` None means all; `choose` lists the numbers of sites to choose.

    `generated_unix_ns` is the time to put on the report: nothing in here reads a clock.
    """

    tiers: tuple[str, ...] | None = None
    confidence: float = 0.95
    choose: tuple[int, ...] = (1, 2, 3)
    title: str = ""
    generated_unix_ns: int = 0
    percentiles: tuple[float, ...] = (50.0, 95.0, 99.0)
    terms: tuple[Term, ...] = ()
    """Terms of the whole budget that others measured: of a file, of traces."""
    always_valid: bool = False
    """Intervals hold at every look: for measuring until it is decided (`intervals.sequential`)."""
    require_busy_hours: bool = False
    """Lines of regions that were not measured in the evening do not pass: they are undecided."""
    whole: bool = True
    """Whole budgets of what is recommended; whoever makes others of `Networks` spares himself
    these."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence <= MOST_CONFIDENCE:
            raise ValueError(f"confidence is {self.confidence}; expected 0.5 to {MOST_CONFIDENCE}")
        if any(not 0 < percentile < 100 for percentile in self.percentiles):
            raise ValueError(f"percentiles are {self.percentiles}; expected between 0 and 100")
        if any(k < 1 for k in self.choose):
            raise ValueError(f"numbers of sites are {self.choose}; expected 1 or more")


def evaluate(
    measurements: Iterable[Measurement],
    catalogue: Catalogue,
    options: EvaluationOptions | None = None,
) -> Evaluation:
    """Everything that the measurements say about the regions, sites and tiers of the catalogue.

    The measurements are read once, in any order, and not kept. A record that comes twice counts
    once. Raises ConfigError for a tier that the catalogue does not have.
    """
    return evaluate_networks(measurements, catalogue, options)[0]


def evaluate_networks(
    measurements: Iterable[Measurement],
    catalogue: Catalogue,
    options: EvaluationOptions | None = None,
) -> tuple[Evaluation, Networks]:
    """The same, and the requests of every pair, for whole budgets of other pairs and what-ifs."""
    options = options or EvaluationOptions()
    tiers = tiers_of(catalogue, options.tiers)
    intake = _Intake()
    for measurement in measurements:
        intake.add(measurement)
    evaluator = _Evaluator(intake, catalogue, tiers, options)
    return with_robustness(evaluator.evaluation()), evaluator.networks


class _Intake:
    """One pass over the measurements."""

    def __init__(self) -> None:
        self.samples = SeriesCollector()
        self.packets = PacketCollector()
        self.requests = RequestCollector()
        self.provenance = ProvenanceCollector()
        self.places = PlaceCollector()
        self.repeated = 0
        self._seen: set[tuple[str, int, int]] = set()

    def add(self, measurement: Measurement) -> None:
        """The same id with as many samples from the same moment is the same record again.

        What agents say of themselves is about no path.
        """
        if measurement.probe == AGENT:
            return
        first = measurement.samples[0].sent_unix_ns if measurement.samples else 0
        identity = (measurement.id, len(measurement.samples), first)
        if identity in self._seen:
            self.repeated += len(measurement.samples)
            return
        self._seen.add(identity)
        self.samples.add(measurement)
        self.packets.add(measurement)
        self.requests.add(measurement)
        self.provenance.add(measurement)
        self.places.add(measurement)


class _Evaluator:
    """Turns what was taken in into results, pair by pair, then tier by tier."""

    def __init__(
        self,
        intake: _Intake,
        catalogue: Catalogue,
        tiers: Sequence[Tier],
        options: EvaluationOptions,
    ) -> None:
        self.intake, self.catalogue, self.tiers, self.options = intake, catalogue, tiers, options
        self.series, vantages = intake.samples.finish()
        points = intake.places.points
        self.vantages_at = {i: points[name] for i, name in enumerate(vantages) if name in points}
        self.regions = intake.places.regions(catalogue)
        self.sites = intake.places.sites(catalogue)
        self.by_pair: dict[PairName, list[Series]] = {}
        for key, series in self.series.items():
            if not key.loaded:  # what our own traffic did to the path is no part of its budget
                self.by_pair.setdefault((key.region, key.site), []).append(series)
        self.streams: list[StreamSummary] = []
        self.reflected: dict[PairName, list[MeasuredStream]] = {}
        numbers = {name: i for i, name in enumerate(vantages)}
        self._take_streams(numbers)
        self.requests = Requests(intake.requests, numbers, options.confidence)
        self.paths: list[PathSeries] = []
        self.pairs: list[Pair] = []
        self.lines: list[BudgetLine] = []
        self.alternatives: list[BudgetLine] = []
        self.findings: list[Finding] = []
        self.networks: dict[PairName, NetworkSource] = {}
        self.sampling: list[HeadlineSampling] = []
        self.unmeasured: list[PairName] = []
        self.unjoined = 0
        self.quiet: frozenset[str] = frozenset()
        """Regions whose lines do not pass, because their evening was not measured."""

    def evaluation(self) -> Evaluation:
        """All of it."""
        vantages = self.intake.provenance.vantages()
        self.findings += clock_findings(vantages)
        self.findings += place_findings(
            self.regions, self.sites, self.catalogue.regions, self.catalogue.sites
        )
        self.findings += sample_findings(self.by_pair)
        self.findings += self._busy_hours()
        self.findings += name_findings(self.intake.samples.unresolved)
        self.findings += stream_findings(self.streams)
        timers = series_timers(self.series.values())
        loads = under_load(self.series, self.options.confidence)
        self.findings += [*timer_findings(timers), *load_findings(loads)]
        for region in self.regions:
            for site in self.sites:
                self._evaluate_pair(region, site)
        every = len(self.regions) * len(self.sites)
        self.findings += unmeasured_finding(self.unmeasured, every)
        requests, findings = self.requests.results(self.paths, self.series.values())
        self.findings += findings
        recommendations = self._recommendations()
        return Evaluation(
            title=self.options.title,
            generated_unix_ns=self.options.generated_unix_ns,
            provenance=self.intake.provenance.provenance(
                self.options.confidence, always_valid=self.options.always_valid
            ),
            regions=self.regions,
            sites=self.sites,
            tiers=tuple(tier_info(tier) for tier in self.tiers),
            vantages=vantages,
            pairs=tuple(self.pairs),
            summaries=tuple(
                summarise(series, self.options.confidence) for series in self.series.values()
            ),
            lines=tuple(self.lines),
            recommendations=recommendations,
            findings=tuple(self.findings),
            exclusions=self._exclusions(),
            alternatives=tuple(self.alternatives),
            streams=tuple(self.streams),
            under_load=loads,
            timer_artefacts=timers,
            requests=requests,
            sampling=tuple(self.sampling),
            whole_budgets=self._whole_budgets(recommendations),
        )

    def _whole_budgets(self, recommendations: Sequence[Recommendation]) -> tuple[WholeBudget, ...]:
        options = self.options
        if not options.whole:
            return ()
        return whole_budgets(
            recommendations,
            [line for line in self.lines if line.headline],
            self.networks,
            self.tiers,
            confidence=options.confidence,
            given=options.terms,
        )

    def _busy_hours(self) -> list[Finding]:
        """Regions without an evening; where it is required, their lines do not pass."""
        tracks: dict[str, list[Track]] = {}
        for (region, _), series in self.by_pair.items():
            tracks.setdefault(region, []).extend(one.track for one in series)
        quiet = quiet_regions(self.regions, tracks)
        self.quiet = frozenset(quiet if self.options.require_busy_hours else ())
        return busy_hour_findings(quiet)

    def _take_streams(self, vantages: Mapping[str, int]) -> None:
        """Summarise every stream, and keep the directions of the idle ones for the lines."""
        for stream in self.intake.packets.finish():
            directions = directions_of(stream, self.options.confidence)
            self.streams.append(summarise_stream(stream, self.options.confidence, directions))
            if directions is not None and not stream.key.loaded:
                measured = MeasuredStream(stream, directions, vantages[stream.key.vantage])
                pair = stream.key.region, stream.key.site
                self.reflected.setdefault(pair, []).append(measured)

    def _evaluate_pair(self, region: RegionInfo, site: SiteInfo) -> None:
        series = self.by_pair.get((region.name, site.name), [])
        candidates = path_candidates(series) if series else ()
        pair, findings = pair_of(
            region.name,
            site.name,
            series,
            region_at=point_of(region),
            site_at=point_of(site),
            vantages_at=self.vantages_at,
            behind_middlebox=any(path.source == "tls" for path in candidates),
        )
        self.pairs.append(pair)
        self.findings += findings
        if series:
            self._add_lines(candidates)
        else:
            self.unmeasured.append((region.name, site.name))
            self.lines += [
                unmeasured_headline(region.name, site.name, tier, *self._why_nothing(region, site))
                for tier in self.tiers
            ]

    def _why_nothing(self, region: RegionInfo, site: SiteInfo) -> tuple[str, ...]:
        """The reason where it is more than that nobody measured."""
        unresolved = {pair[:2] for pair in self.intake.samples.unresolved}
        return (NAME_NOT_FOUND,) if (region.name, site.name) in unresolved else ()

    def _add_lines(self, candidates: Sequence[PathSeries]) -> None:
        first = candidates[0]
        reflected = self.reflected.get((first.region, first.site), [])
        self.paths += candidates
        self.findings += unreachable_findings(candidates)
        self.findings += refused_findings(candidates)
        self.findings += service_findings(candidates)
        for path in candidates:
            self.findings += path.findings
        uploads = self.requests.uploads_of(first.region, first.site)
        budgets = [self._budget(path, uploads, reflected) for path in candidates]
        for tier in self.tiers:
            self.lines += budgets[0].lines(tier, self.options.percentiles)
            if (sampled := budgets[0].sampling(tier)) is not None:
                self.sampling.append(sampled)
            if len(budgets) > 1:
                self.alternatives += [budget.headline(tier) for budget in budgets]
        self.unjoined += budgets[0].unjoined
        network = NetworkSource(first, budgets[0].one_way, tuple(uploads))
        self.networks[first.region, first.site] = network

    def _budget(
        self, path: PathSeries, uploads: Sequence[Uploads], reflected: Sequence[MeasuredStream]
    ) -> PathBudget:
        one_way = one_way_tracks(path, reflected)
        streams = self.requests.streams_of(path, one_way)
        confidence = self.options.confidence
        return PathBudget(
            path,
            confidence,
            one_way,
            uploads=uploads,
            streams=streams,
            always_valid=self.options.always_valid,
            never_passes=NOT_IN_THE_EVENING if path.region in self.quiet else "",
        )

    def _recommendations(self) -> tuple[Recommendation, ...]:
        floors = {(pair.region, pair.site): pair.floor_rtt_ms for pair in self.pairs}
        found: list[Recommendation] = []
        for tier in self.tiers:
            lines = {
                (line.region, line.site): line
                for line in self.lines
                if line.headline and line.tier == tier.name
            }
            found += self._choices(tier, lines, floors)
        for recommendation in found:
            self.findings += capacity_findings(recommendation, self.sites)
        return tuple(found)

    def _choices(
        self,
        tier: Tier,
        lines: Mapping[PairName, BudgetLine],
        floors: Mapping[PairName, float | None],
    ) -> list[Recommendation]:
        ground = ground_of(
            tier.name, tier.network_allowance_ms, self.regions, self.sites, lines, floors
        )
        sizes = sorted({k for k in self.options.choose if k <= len(ground.sites)})
        sizes = sizes or [min(self.options.choose, default=1)]
        return [recommend(ground, objective, k) for objective in Objective for k in sizes]

    def _exclusions(self) -> tuple[Exclusion, ...]:
        counted: Counter[tuple[str, str]] = Counter(self.intake.samples.excluded)
        counted["samples of repeated records", "the same record came before"] = self.intake.repeated
        counted[
            "set-up samples in no network line",
            "their vantage measured no round trip that they could be joined with",
        ] = self.unjoined
        return tuple(
            Exclusion(what=what, n=n, why=why) for (what, why), n in sorted(counted.items()) if n
        )
