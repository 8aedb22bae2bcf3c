"""Sick members over days of stored sweeps: each told once, from its first sweep to its last.

Samples of one series are cut into sweeps of as many packets as it takes to see what is asked for;
`alpha` is shared out among them, so it holds for the whole history of a series. Round trips are
judged against the first sweep: ways of unequal length are no fault, one that becomes longer is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from pathbudget.analysis.routes.members import MemberOptions, survey_sweep
from pathbudget.analysis.routes.model import MemberFinding, PathSeries, Window
from pathbudget.analysis.routes.observations import series_of
from pathbudget.analysis.routes.sweeps import ROUND_TRIPS, sweep_of
from pathbudget.probes.record import Measurement, Sample

PER_FLOW = 200
"""Packets a flow in one sweep: they show a loss of 5.3 % on one flow of 64 alone."""
ALIKE = 0.5
"""Share of flows that two findings have in common when they are of one member."""


def member_findings(
    measurements: Iterable[Measurement],
    options: MemberOptions | None = None,
    per_flow: int = PER_FLOW,
) -> list[MemberFinding]:
    """Findings of all series whose samples name their flows, in order of time.

    The noise floor is the worst that the measurements of a series state.
    """
    chosen = options or MemberOptions()
    samples: dict[PathSeries, list[Sample]] = {}
    floors: dict[PathSeries, int] = {}
    for measurement in measurements:
        kept = [one for one in measurement.samples if _names_flow(one)]
        if kept:
            series = series_of(measurement, measurement.probe)
            samples.setdefault(series, []).extend(kept)
            floor = measurement.noise.floor_ns if measurement.noise else 0
            floors[series] = max(floors.get(series, chosen.floor_ns), floor)
    found = [
        one
        for series, mine in samples.items()
        for one in findings_over_time(
            series, mine, replace(chosen, floor_ns=floors[series]), per_flow
        )
    ]
    return sorted(found, key=lambda one: one.window)


def findings_over_time(
    series: PathSeries, samples: Sequence[Sample], options: MemberOptions, per_flow: int = PER_FLOW
) -> list[MemberFinding]:
    """Findings of one series, those of the same member as one."""
    ordered = sorted(samples, key=lambda one: one.sent_unix_ns)
    flows = len({one.flow for one in ordered})
    pieces = _pieces(ordered, per_flow * max(1, flows))
    shared = replace(options, alpha=options.alpha / max(1, len(pieces)))
    first = None
    found: list[MemberFinding] = []
    for piece in pieces:
        sweep = sweep_of(piece)
        survey = survey_sweep(series, sweep, shared, usual=first)
        known = survey.findings if first is not None else survey.losses
        for finding in known:
            _join(found, finding)
        first = first or sweep
    return found


def _names_flow(sample: Sample) -> bool:
    return sample.flow is not None and sample.metric in ROUND_TRIPS


def _pieces(samples: Sequence[Sample], size: int) -> list[Sequence[Sample]]:
    """Of `size` each; what is left over belongs to the last one."""
    count = max(1, len(samples) // size)
    edges = [len(samples) if number == count else number * size for number in range(count + 1)]
    return [samples[start:end] for start, end in pairwise(edges)]


def _join(found: list[MemberFinding], new: MemberFinding) -> None:
    """Make it part of what is known of the same member, or add it."""
    for place, known in enumerate(found):
        common = len(set(known.flows) & set(new.flows))
        least = min(len(known.flows), len(new.flows))
        if known.what == new.what and common >= ALIKE * least:
            found[place] = _together(known, new)
            return
    found.append(new)


def _together(known: MemberFinding, new: MemberFinding) -> MemberFinding:
    """From the first sweep to the last one; numbers are those of the surer one."""
    surer = min(known, new, key=lambda one: one.p_value)
    window = Window(
        min(known.window.after_unix_ns, new.window.after_unix_ns),
        max(known.window.by_unix_ns, new.window.by_unix_ns),
    )
    return replace(surer, window=window)
