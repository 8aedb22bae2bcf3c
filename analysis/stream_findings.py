"""What the packets of the streams say that a person must know before using the numbers."""

from collections.abc import Iterable

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Finding
from pathbudget.analysis.stream_results import (
    Bounded,
    FlowSpreadInfo,
    StreamSummary,
    TimerInfo,
    UnderLoad,
    Way,
)

WAYS = {Way.FORWARD: "on the way there", Way.REVERSE: "on the way back", Way.ROUND_TRIP: "in all"}


def stream_findings(streams: Iterable[StreamSummary]) -> list[Finding]:
    """All of them, stream by stream."""
    found: list[Finding] = []
    for stream in streams:
        texts = (
            (FindingKind.OUTAGE, _outages(stream)),
            (FindingKind.PATH_CHANGED, _path_changes(stream)),
            (FindingKind.CLOCK_STEP, _steps(stream)),
            (FindingKind.CLOCK_CONTRADICTED, _contradicted(stream)),
            (FindingKind.ECMP_SPREAD, _spread(stream)),
            (FindingKind.REORDERED, _reordered(stream)),
            (FindingKind.DUPLICATED, _duplicated(stream)),
            (FindingKind.HOST_BUSY, _busy(stream)),
        )
        found += [
            Finding(kind=kind, region=stream.region, site=stream.site, text=text)
            for kind, text in texts
            if text
        ]
    return found


def _name(stream: StreamSummary) -> str:
    loaded = " under load" if stream.loaded else ""
    return f"{stream.probe} from {stream.vantage} to {stream.target}{loaded}"


def _outages(stream: StreamSummary) -> str:
    outages = stream.outages.outages
    if not outages:
        return ""
    worst = max(outages, key=lambda outage: outage.shortest_ms)
    most = "and did not end" if worst.longest_ms is None else f"at most {worst.longest_ms:.0f} ms"
    lost = "1 packet" if worst.lost == 1 else f"{worst.lost} packets"
    count = "1 outage" if len(outages) == 1 else f"{len(outages)} outages"
    return (
        f"{_name(stream)}: {count} of {stream.outages.consecutive_losses} or more losses in a row; "
        f"the longest lasted at least {worst.shortest_ms:.0f} ms, {most} ({lost})."
    )


def _path_changes(stream: StreamSummary) -> str:
    changes = stream.path_changes
    if not changes:
        return ""
    worst = max(changes, key=lambda change: abs(change.round_trip_ms))
    times = "once" if len(changes) == 1 else f"{len(changes)} times"
    ways = ""
    if worst.forward_ms is not None and worst.reverse_ms is not None:
        ways = f" ({worst.forward_ms:+.2f} ms there, {worst.reverse_ms:+.2f} ms back)"
    return (
        f"{_name(stream)}: the shortest round trip changed for good {times}, most by "
        f"{worst.round_trip_ms:+.2f} ms{ways}, give or take {worst.error_ms:.2f} ms: the path "
        "changed, and variation is counted from the minimum of each path."
    )


def _steps(stream: StreamSummary) -> str:
    steps = stream.clock_pair.steps if stream.clock_pair else ()
    if not steps:
        return ""
    worst = max(steps, key=lambda step: abs(step.step_ms))
    times = "once" if len(steps) == 1 else f"{len(steps)} times"
    return (
        f"{_name(stream)}: one of the two clocks was stepped {times} against the other, by up to "
        f"{worst.step_ms:+.3f} ms (give or take {worst.error_ms:.3f} ms): round trips and the "
        "variation of each direction stand, one-way delays do not."
    )


def _contradicted(stream: StreamSummary) -> str:
    if not any(
        way.owd is not None and way.owd.clock_state == "contradicted" for way in stream.ways
    ):
        return ""
    return (
        f"{_name(stream)}: one-way delays are below zero by more than the clocks say that they can "
        "be wrong: one of the clocks is not what it says."
    )


def _spread(stream: StreamSummary) -> str:
    decided = [spread for spread in stream.flow_spreads if spread.decided]
    if not decided:
        return ""
    parts = ", ".join(f"{_span(s.ecmp_spread_ms)} {WAYS[s.way]}" for s in decided)
    return f"{_name(stream)}: {_flows(decided[0])} differ in their median delay by {parts}."


def _flows(spread: FlowSpreadInfo) -> str:
    few = ", too few to have met every path" if spread.may_miss_paths else ""
    return f"{len(spread.flows)} flows (equal-cost paths{few})"


def _span(value: Bounded) -> str:
    if value.high_ms is None and not value.low_ms:
        return "an amount that too few packets tell"
    high = "no limit" if value.high_ms is None else f"{value.high_ms:.3f} ms"
    middle = "no limit" if value.value_ms is None else f"{value.value_ms:.3f} ms"
    return f"{middle} ({value.low_ms or 0:.3f} to {high})"


def _reordered(stream: StreamSummary) -> str:
    parts = [
        f"{way.reordered} of {way.n} {WAYS[way.way]} (largest extent "
        f"{way.reordered_largest_extent}, {way.reordered_3} overtaken by three)"
        for way in stream.ways
        if way.reordered
    ]
    return f"{_name(stream)}: packets arrived out of order: {', '.join(parts)}." if parts else ""


def _duplicated(stream: StreamSummary) -> str:
    if not stream.duplicated:
        return ""
    return (
        f"{_name(stream)}: {stream.duplicated} of {stream.sent} packets were answered more than "
        "once; the first answer counts."
    )


def _busy(stream: StreamSummary) -> str:
    if not stream.host_busy:
        return ""
    return (
        f"{_name(stream)}: the measuring host was late to send or to read {stream.host_busy} of "
        f"{stream.sent} packets by more than 10 ms; what was stamped in user space is spoilt by it."
    )


def timer_findings(artefacts: Iterable[TimerInfo]) -> list[Finding]:
    """Durations that look like a timer."""
    return [
        Finding(
            kind=FindingKind.TIMER_ARTEFACT,
            region=one.region,
            site=one.site,
            text=(
                f"{one.n} of {one.of} {one.probe} {one.metric} times to {one.target} cluster at "
                f"{one.timer_ms:g} ms, as {one.words} makes them: that is no property of the path."
            ),
        )
        for one in artefacts
    ]


def load_findings(differences: Iterable[UnderLoad]) -> list[Finding]:
    """What our own traffic added, where that is more than chance."""
    return [
        Finding(
            kind=FindingKind.ADDED_BY_LOAD,
            region=one.region,
            site=one.site,
            text=(
                f"{one.probe} {one.metric} to {one.target}: load adds {_span(one.added_ms)} at "
                f"p{one.percentile:g}; loaded samples are in no budget line."
            ),
        )
        for one in differences
        if one.added_ms.low_ms is not None and one.added_ms.low_ms > 0
    ]
