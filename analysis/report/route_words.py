"""How routes, changes and incidents are written for a person: on a terminal and on a page."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime

from pathbudget.analysis.report.words import counted, figure, fine_ms, given, utc
from pathbudget.analysis.results import Verdict
from pathbudget.analysis.routes.model import (
    BgpEvent,
    BgpEventKind,
    Cause,
    Estimate,
    Evidence,
    FeedEvent,
    Incident,
    LevelShift,
    MemberFinding,
    MovedLine,
    Outage,
    OutageKind,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    RouteShare,
    Window,
)
from pathbudget.analysis.routes.route_report import RouteReport

DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60
CAUSES = {
    Cause.PATH_MOVED: "path moved",
    Cause.FLAP: "route flap",
    Cause.WITHDRAWN: "withdrawn",
    Cause.OUTAGE: "outage",
    Cause.MEMBER: "sick link member",
    Cause.QUEUE: "queue",
    Cause.LEVEL: "delay moved",
    Cause.LOSS: "loss",
    Cause.BLACK_HOLE: "black hole",
    Cause.FEED: "feed silent",
    Cause.ORIGIN: "other origin",
    Cause.ROUTING_ONLY: "routing only",
}
CAUSE_MEANINGS = {
    Cause.PATH_MOVED: "packets go another way since",
    Cause.FLAP: "packets went another way and came back within ten minutes",
    Cause.WITHDRAWN: "nobody carries packets there any more, and BGP says so",
    Cause.OUTAGE: "nothing arrives, and routing does not say why",
    Cause.MEMBER: "one of several parallel links is sick",
    Cause.QUEUE: "a queue swells and falls: congestion",
    Cause.LEVEL: "delay moved and the visible path did not (below IP, or on the way back)",
    Cause.LOSS: "packets are lost",
    Cause.BLACK_HOLE: "large packets vanish without a word",
    Cause.FEED: "a BGP feed fell silent: what it does not say is unknown",
    Cause.ORIGIN: "somebody else announces the prefix",
    Cause.ROUTING_ONLY: "BGP changed, and no packet of ours noticed",
}
NO_COSTS = {
    Cause.OUTAGE: "nothing came back",
    Cause.WITHDRAWN: "nothing came back",
    Cause.FEED: "none",
    Cause.ROUTING_ONLY: "none",
    Cause.ORIGIN: "none known",
    Cause.MEMBER: "on some flows only",
    Cause.LOSS: "loss, no delay",
    Cause.BLACK_HOLE: "loss of large packets",
}
ROUTE_EVENTS = {
    RouteEventKind.FLUTTER: "flutter",
    RouteEventKind.FLAP: "went and came back",
    RouteEventKind.SHIFT: "path set changed",
    RouteEventKind.LOST: "no longer reached",
    RouteEventKind.FOUND: "reached again",
}
BGP_EVENTS = {
    BgpEventKind.PATH: "changed the AS path",
    BgpEventKind.ORIGIN: "see another origin",
    BgpEventKind.INVALID: "see an origin that RPKI forbids",
}


def cause_words(cause: Cause) -> str:
    """``path moved``."""
    return CAUSES.get(cause, str(cause).replace("_", " "))


def series_name(series: PathSeries) -> str:
    """``tokyo > frankfurt``: region and site, or vantage and target where there are none."""
    return f"{series.region or series.vantage} > {series.site or series.target or series.address}"


def by_name(series: PathSeries) -> tuple[str, ...]:
    """Order of rows and pictures: by region, site, vantage, address."""
    return (series_name(series), series.vantage, series.address, series.protocol)


def touches(incident: Incident, series: PathSeries) -> bool:
    """Whether it is about this path, whichever probe noticed it."""
    mine = (series.vantage, series.address)
    return any((one.vantage, one.address) == mine for one in incident.series)


def series_detail(series: PathSeries) -> str:
    """What tells it from others of the same pair: vantage, address, protocol."""
    vantage = "" if series.vantage in ("", series.region) else f"from {series.vantage} "
    protocol = f" over {series.protocol}" if series.protocol else ""
    return f"{vantage}to {series.address or 'no address'}{protocol}"


def window_words(window: Window, *, dated: bool = True) -> str:
    """When: ``2026-12-01 06:10:00 to 06:12:00``, or one moment where it is known to the second."""
    after, by = utc(window.after_unix_ns), utc(window.by_unix_ns)
    by = by.removesuffix(" UTC")
    after = after.removesuffix(" UTC")
    if after == by or window.after_unix_ns <= 0:
        text = by if window.after_unix_ns > 0 else f"before {by}"
    else:
        same_day = after[:10] == by[:10]
        text = f"{after} to {by[11:] if same_day else by}"
    return text if dated else text.replace(f"{by[:10]} ", "")


def short_time(unix_ns: int) -> str:
    """``12-01 06:12``; the year and the zone stand above."""
    return datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC).strftime("%m-%d %H:%M")


def signed_ms(value_ns: float) -> str:
    """``+12.1 ms``, ``-0.30 ms``; below one in microseconds."""
    text = fine_ms(value_ns / 1e6)
    return text if text.startswith("-") else f"+{text}"


def cost_words(cost: Estimate | None) -> str:
    """``+12.1 ms (11.8 to 12.4)``; what it means where there is none is said elsewhere."""
    if cost is None:
        return "cost not known"
    small = abs(cost.value_ns) < 1e6
    scale = 1e3 if small else 1e6
    low, high = figure(cost.low_ns / scale), figure(cost.high_ns / scale)
    if small:
        low, high = f"{cost.low_ns / scale:,.0f}", f"{cost.high_ns / scale:,.0f}"
    return f"{signed_ms(cost.value_ns)} ({low} to {high})"


def incident_cost(incident: Incident) -> str:
    """``+12.1 ms (11.8 to 12.4)``; ``-24.0 ms to +1.01 ms by path`` where paths differ."""
    cost = incident.cost
    if cost is None:
        return NO_COSTS.get(incident.cause, "not known")
    if incident.cause is Cause.QUEUE:  # in stages, of which none is the cost
        return cost_words(cost)
    of_paths: dict[PathSeries, Estimate] = {}
    for one in incident.evidence:
        if isinstance(one, LevelShift) and one.what == "rtt":
            of_paths.setdefault(one.series._replace(protocol=""), one.cost)
    apart = [
        one for one in of_paths.values() if one.low_ns > cost.high_ns or one.high_ns < cost.low_ns
    ]
    if not apart:
        return cost_words(cost)
    values = sorted(one.value_ns for one in (cost, *apart))
    return f"{signed_ms(values[0])} to {signed_ms(values[-1])} by path"


def is_open(incident: Incident) -> bool:
    """Whether it lasts. What happened once, and was not a state, is over at once."""
    return incident.over is None


def line_words(line: MovedLine) -> str:
    """``voice-ai, tokyo > frankfurt, network p95: 21.1 to 33.2 ms of 25: pass > fail``."""
    verdict = (
        line.verdict_after
        if line.verdict_before == line.verdict_after
        else f"{line.verdict_before} > {line.verdict_after}"
    )
    return f"{line.tier}, {line.region} > {line.site}, {line.line}: {_change(line)}: {verdict}"


def _change(line: MovedLine) -> str:
    """``21.1 > 33.2 ms of 25``, or ``21.1 ms > lost, of 25 ms``: where so many are lost that the
    percentile is none of those that came, it is not finite, and no number of ms.
    """
    sides = (line.before_ms, line.after_ms)
    of = "" if line.allowance_ms is None else f" of {given(line.allowance_ms)}"
    if all(map(math.isfinite, sides)):
        before, after = map(figure, sides)
        return f"{before} > {after} ms{of}"
    before, after = (f"{figure(one)} ms" if math.isfinite(one) else "lost" for one in sides)
    return f"{before} > {after}" + (of and f",{of} ms")


def breaches(line: MovedLine) -> bool:
    """Whether a line that the incident moved fails now."""
    return line.verdict_after == Verdict.FAIL


def worst_first(lines: Iterable[MovedLine]) -> list[MovedLine]:
    """Those whose verdict changed for the worse first, then those that fail anyway."""
    return sorted(
        lines, key=lambda one: (one.verdict_before == one.verdict_after, not breaches(one))
    )


def breached(report: RouteReport) -> list[tuple[Incident, MovedLine]]:
    """Lines that incidents which are not over have broken."""
    return [
        (one, line)
        for one in report.incidents
        if is_open(one)
        for line in one.lines
        if breaches(line)
    ]


def lasting(duration_ns: float) -> str:
    """How long, to two units: ``3 d 2 h``, ``12 min``, ``40 s``."""
    seconds = round(duration_ns / 1e9)
    if seconds < MINUTE_S:
        return f"{seconds} s"
    for size, word, part, part_word in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {word}" + (f" {rest} {part_word}" if rest else "")
    return f"{seconds} s"


def briefly(duration_ns: float) -> str:
    """The same in at most seven columns: ``2d 6h``, ``1m 52s``."""
    return (
        lasting(duration_ns)
        .replace(" min", "m")
        .replace(" d", "d")
        .replace(" h", "h")
        .replace(" s", "s")
    )


def rate_words(value: float) -> str:
    """``0.57``, ``42``, ``10k``; ``inf`` where every look saw another one."""
    if not math.isfinite(value):
        return "inf"
    if value >= 1_000:
        return f"{value / 1_000:.0f}k" if value >= 9_950 else f"{value / 1_000:.1f}k"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def over_words(incident: Incident) -> str:
    """``still so``, or until when at most: the time alone where it is the same day."""
    if incident.over is None:
        return "still so"
    begun, over = utc(incident.window.by_unix_ns), utc(incident.over.by_unix_ns)
    same_day = begun[:10] == over[:10]
    return f"over by {over[11:19] if same_day else over[5:16]}"


def reason_words(incident: Incident) -> str:
    """Why somebody is blamed, as a sentence."""
    return incident.reason[:1].upper() + incident.reason[1:]


def prevalence_words(share: RouteShare) -> str:
    """``98.3 % (96.1 to 99.4)``."""
    low, high = f"{100 * share.low:.1f}", f"{100 * share.high:.1f}"
    return f"{100 * share.prevalence:.1f} % ({low} to {high})"


def route_text(paths: Iterable[tuple[str, ...]], most: int = 3) -> str:
    """A path set in words: each path its hops, ``*`` for whoever is silent, ``...`` for any number
    of unknown ones, ``|`` between addresses of one hop.
    """
    ordered = sorted(paths)
    texts = [" ".join(path) for path in ordered[:most]]
    more = len(ordered) - most
    return "; ".join(texts) + (f"; and {more} more" if more > 0 else "")


def evidence_words(one: Evidence) -> str:
    """One piece of evidence in one line."""
    match one:
        case RouteEvent():
            return _route_event(one)
        case LevelShift():
            what = {"rtt": "level", "pdv": "variation", "loss": "loss"}.get(one.what, one.what)
            value = (
                f"{100 * one.cost.value_ns:+.1f} %" if one.what == "loss" else cost_words(one.cost)
            )
            return f"{what} of {one.metric} moved {value} ({series_name(one.series)})"
        case BgpEvent():
            said = BGP_EVENTS.get(one.kind, f"say {str(one.kind).replace('_', ' ')}")
            change = f": {one.before or 'nothing'} > {one.after or 'nothing'}"
            return f"{one.peers_changed} of {one.peers_live} peers {said} of {one.prefix}{change}"
        case FeedEvent():
            peer = f", peer {one.peer}" if one.peer else ""
            return f"feed {one.feed}{peer}: {one.before} > {one.after}"
        case Outage():
            kind = "flapped" if one.kind is OutageKind.FLAPPING else "was away"
            times = f" {one.times} times" if one.times > 1 else ""
            return f"{series_name(one.series)} {kind}{times}, {counted(one.lost, 'packet')} lost"
        case MemberFinding():
            return _member(one)


def _route_event(one: RouteEvent) -> str:
    text = f"{ROUTE_EVENTS[one.kind]} ({series_name(one.series)}, {one.granularity} level)"
    if one.first_difference:
        text += f" from hop {one.first_difference}"
    if one.as_before and one.as_after and one.as_before != one.as_after:
        text += f": {' '.join(one.as_before)} > {' '.join(one.as_after)}"
    return text


def _member(one: MemberFinding) -> str:
    flows = f"{counted(len(one.flows), 'flow')} of {one.flows_seen}"
    if one.what == "loss":
        value = f"lose {100 * one.value:.1f} %, the group {100 * one.group:.1f} %"
    else:
        value = f"take {signed_ms(one.value)} longer than the group"
    return f"{flows} {value} ({series_name(one.series)}; p {one.p_value:.2g}, {one.method})"
