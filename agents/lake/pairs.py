"""Budget lines of one region and one site, out of its series: what `evaluate` does for a pair."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pathbudget.agents.lake.envelopes import FilePair, Wanted
from pathbudget.agents.lake.gather import Pair, Share, series_by_pair
from pathbudget.agents.lake.quick import QuickBudget
from pathbudget.agents.lake.records import records
from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.directions import directions_of
from pathbudget.analysis.one_way_tracks import MeasuredStream, one_way_tracks
from pathbudget.analysis.packets import PacketCollector
from pathbudget.analysis.path_choice import PathSeries, path_candidates
from pathbudget.analysis.requests import RequestCollector, Requests
from pathbudget.analysis.results import BudgetLine
from pathbudget.analysis.series import Series, place_of
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Tier


@dataclass(frozen=True, slots=True)
class Question:
    """What is wanted of every pair."""

    tiers: tuple[Tier, ...]
    percentiles: tuple[float, ...] = (50.0, 95.0, 99.0)
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class PairLines:
    """All lines of one pair, tier by tier."""

    pair: Pair
    lines: tuple[BudgetLine, ...]
    alternatives: tuple[BudgetLine, ...] = ()
    """Headline lines of every (target, family), where there is more than one."""
    samples: int = 0
    """How many numbers the series of the pair hold, losses included."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """Some pairs: their rows, and where to find whole records of them."""

    shares: tuple[Share, ...]
    vantages: tuple[str, ...]
    question: Question
    sources: tuple[tuple[FilePair, tuple[int, ...]], ...] = ()
    """Files that may hold records of `record_probes`, with the measurements to pass over."""
    record_probes: frozenset[str] = frozenset()
    wanted: Wanted = field(default_factory=Wanted)


def lines_of_part(task: PartTask) -> list[PairLines]:
    """The lines of all pairs of a part. Raises StoreError, OSError."""
    return [
        _lines_of_pair(pair, series, task)
        for pair, series in series_by_pair(task.shares, task.vantages)
    ]


def _lines_of_pair(pair: Pair, every: Sequence[Series], task: PartTask) -> PairLines:
    series = [one for one in every if not one.key.loaded]
    samples = sum(one.track.n for one in every)
    if not series:
        return PairLines(pair, (), samples=samples)
    candidates = path_candidates(series)
    question = task.question
    budget_of = _budgets(pair, task)
    budgets = [budget_of(path) for path in candidates]
    lines: list[BudgetLine] = []
    alternatives: list[BudgetLine] = []
    for tier in question.tiers:
        lines += budgets[0].lines(tier, question.percentiles)
        if len(budgets) > 1:
            alternatives += [budget.headline(tier) for budget in budgets]
    return PairLines(pair, tuple(lines), tuple(alternatives), samples)


def _budgets(pair: Pair, task: PartTask) -> Callable[[PathSeries], PathBudget]:
    """Makes the budget of a path, with what whole records tell where the pair has any."""
    confidence = task.question.confidence
    if not task.record_probes:
        return lambda path: QuickBudget(path, confidence)
    numbers = {name: i for i, name in enumerate(task.vantages)}
    collector, reflected = _collected(_records(pair, task), numbers, confidence)
    requests = Requests(collector, numbers, confidence)
    uploads = requests.uploads_of(*pair)

    def budget(path: PathSeries) -> PathBudget:
        one_way = one_way_tracks(path, reflected)
        streams = requests.streams_of(path, one_way)
        return QuickBudget(path, confidence, one_way, uploads=uploads, streams=streams)

    return budget


def _records(pair: Pair, task: PartTask) -> Iterable[Measurement]:
    def picked(envelope: Measurement) -> bool:
        return envelope.probe in task.record_probes and place_of(envelope) == pair

    for files, repeated in task.sources:
        yield from records(files, task.wanted, repeated, picked)


def _collected(
    found: Iterable[Measurement], vantages: dict[str, int], confidence: float
) -> tuple[RequestCollector, list[MeasuredStream]]:
    requests, packets = RequestCollector(), PacketCollector()
    for measurement in found:
        requests.add(measurement)
        packets.add(measurement)
    reflected: list[MeasuredStream] = []
    for stream in packets.finish():
        directions = directions_of(stream, confidence)
        if directions is not None and not stream.key.loaded:
            reflected.append(MeasuredStream(stream, directions, vantages[stream.key.vantage]))
    return requests, reflected
