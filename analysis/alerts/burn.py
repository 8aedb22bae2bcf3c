"""Budget line at risk: how fast requests use up what the percentile of the line leaves them.

p95 within the allowance means that at most 5 % of the requests are over it. The burn rate is the
share that is over, divided by those 5 %. An alert wants it above a threshold in a long window (it
is no blip) and in a short one (it still goes on), as Google's SRE workbook has it (chapter 5,
"multiwindow, multi-burn-rate"). It counts only where the interval of the rate says so.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pathbudget.analysis.alerts.model import AlertKind, Severity, Signal
from pathbudget.analysis.alerts.requests_over import LineCounts, LineName, RequestsOver
from pathbudget.analysis.alerts.rules import BudgetRule, BurnWindow
from pathbudget.analysis.alerts.shares import Share, fewest_above, mixed_share
from pathbudget.analysis.report.route_words import lasting
from pathbudget.analysis.report.words import counted
from pathbudget.sites.catalogue import Tier


class Burn(NamedTuple):
    """One pair of windows of one line, as shares; `allowed` is what the percentile leaves."""

    window: BurnWindow
    long: Share
    short: Share
    allowed: float

    @property
    def bad(self) -> bool | None:
        """Surely above the threshold in both; surely below in one; else undecided."""
        limit = self.window.burn_rate * self.allowed
        if self.long.low > limit and self.short.low > limit:
            return True
        return False if self.long.high < limit or self.short.high < limit else None


def allowed_share(percentile: float) -> float:
    """Share of requests that may be over."""
    return 1 - percentile / 100


def most_burn_rate(tier: Tier) -> float:
    """What it is when every request is over."""
    return 1 / allowed_share(tier.percentile)


def burn_signals(rule: BudgetRule, requests: RequestsOver, now_unix_ns: int) -> Iterator[Signal]:
    """One signal for each line and severity."""
    for name, counts in requests.lines():
        if _wanted(rule, name):
            burns = _burns(rule, counts, now_unix_ns)
            for severity in Severity:
                mine = [one for one in burns if one.window.severity is severity]
                if mine:
                    yield _signal(rule, name, counts, severity, mine)


def _wanted(rule: BudgetRule, name: LineName) -> bool:
    return (
        (not rule.tiers or name.tier in rule.tiers)
        and (not rule.regions or name.region in rule.regions)
        and (not rule.sites or name.site in rule.sites)
    )


def _burns(rule: BudgetRule, counts: LineCounts, now_unix_ns: int) -> list[Burn]:
    """Windows end at the newest request, which may have come late: not at now."""
    until = min(counts.newest_unix_ns() or now_unix_ns, now_unix_ns)
    allowed = allowed_share(counts.place.percentile)
    burns: list[Burn] = []
    for window in rule.windows:
        parts = counts.parts(until, (window.long_ns, window.short_ns))
        if now_unix_ns - until > window.long_ns:  # of another time: it says nothing of now
            parts = [[], []]
        long, short = (mixed_share(one, rule.confidence) for one in parts)
        burns.append(Burn(window, long, short, allowed))
    return burns


def decided(verdicts: Iterable[bool | None]) -> bool | None:
    """Bad if any is, good if all are."""
    every = list(verdicts)
    if any(one is True for one in every):
        return True
    return None if any(one is None for one in every) else False


def _signal(
    rule: BudgetRule, name: LineName, counts: LineCounts, severity: Severity, burns: list[Burn]
) -> Signal:
    bad = decided(one.bad for one in burns)
    shown = next((one for one in burns if one.bad is bad), burns[0])
    place = counts.place
    return Signal(
        key=f"{rule.name}/{severity}/{name.tier}/{name.region}/{name.site}",
        rule=rule.name,
        kind=AlertKind.BUDGET_AT_RISK,
        severity=severity,
        bad=bad,
        summary=_summary(name, place.allowance_ms or 0.0, place.percentile, shown, rule),
        labels={"tier": name.tier, "region": name.region, "site": name.site},
        numbers={
            "allowance_ms": place.allowance_ms,
            "percentile": place.percentile,
            "threshold_burn_rate": shown.window.burn_rate,
            **_rates("long", shown.long, shown.allowed),
            **_rates("short", shown.short, shown.allowed),
        },
    )


def _rates(which: str, share: Share, allowed: float) -> dict[str, float | None]:
    known = share.n > 0
    return {
        f"{which}_burn_rate": round(share.value / allowed, 4) if known else None,
        f"{which}_burn_rate_low": round(share.low / allowed, 4),
        f"{which}_burn_rate_high": round(share.high / allowed, 4),
        f"{which}_requests": float(share.n),
    }


def _summary(
    name: LineName, allowance_ms: float, percentile: float, burn: Burn, rule: BudgetRule
) -> str:
    """``voice-ai, tokyo > frankfurt: 31.2 % of requests over 25 ms in 1 h (...)``."""
    where = f"{name.tier}, {name.region} > {name.site}"
    long, window = burn.long, burn.window
    if not long.n:
        return f"{where}: no request of the last {lasting(window.long_ns)} was measured."
    text = (
        f"{where}: {100 * long.value:.1f} % of {counted(long.n, 'request')} over "
        f"{allowance_ms:g} ms in {lasting(window.long_ns)} "
        f"({100 * long.low:.1f} to {100 * long.high:.1f} %), "
        f"{long.value / burn.allowed:.1f} times what p{percentile:g} allows"
    )
    if burn.bad is None and (few := _too_few(burn, rule.confidence)):
        text += f"; {few}"
    return f"{text}."


def _too_few(burn: Burn, confidence: float) -> str:
    limit = burn.window.burn_rate * burn.allowed
    if limit >= 1:
        return f"a burn rate of {burn.window.burn_rate:g} cannot be reached"
    needed = fewest_above(limit, confidence)
    for share, length in ((burn.long, burn.window.long_ns), (burn.short, burn.window.short_ns)):
        if share.n < needed:
            return f"{share.n} requests in {lasting(length)} decide nothing, {needed} could"
    return ""
