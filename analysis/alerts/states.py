"""What becomes of an alert as signals come: pending, firing, over, and what of that is told.

What holds whatever comes (tests/alerts/test_states.py): each alert that was told to fire is told to
be over exactly once before it is told to fire again; two tellings that it fires are never nearer
than `Timing.repeat_ns`; what evidence cannot decide changes nothing.
"""

from typing import NamedTuple

from msgspec.structs import replace

from pathbudget.analysis.alerts.model import AlertState, News, Notice, Phase, Signal, Timing

UNSEEN = "nothing was seen of it for so long that it is taken to be over"


class Step(NamedTuple):
    """The state from now on (None: nothing is to be remembered), and what is told of it."""

    state: AlertState | None
    notice: Notice | None = None


def step(state: AlertState | None, signal: Signal | None, now_unix_ns: int, timing: Timing) -> Step:
    """One look. `signal` None says that the subject was not found at all."""
    if state is None:
        return _begin(None, signal, now_unix_ns, timing)
    match state.phase:
        case Phase.OVER:
            return _after(state, signal, now_unix_ns, timing)
        case Phase.PENDING:
            return _pending(state, signal, now_unix_ns, timing)
        case Phase.FIRING:
            return _firing(state, signal, now_unix_ns, timing)


def _begin(before: AlertState | None, signal: Signal | None, now: int, timing: Timing) -> Step:
    if signal is None or not signal.bad:
        return Step(before)
    told = None if before is None else before.told_unix_ns
    fresh = AlertState(signal, Phase.PENDING, now, now, told_unix_ns=told)
    return _pending(fresh, signal, now, timing)


def _after(state: AlertState, signal: Signal | None, now: int, timing: Timing) -> Step:
    """Over: remembered only as long as it matters when it was told."""
    told = state.told_unix_ns
    past = told is None or now - told >= timing.repeat_ns
    return _begin(None if past else state, signal, now, timing)


def _pending(state: AlertState, signal: Signal | None, now: int, timing: Timing) -> Step:
    if signal is None or signal.bad is None:
        gone = now - state.seen_unix_ns > max(timing.for_ns, timing.fade_ns)
        return Step(_forgotten(state) if gone else state)
    if not signal.bad:
        return Step(_forgotten(state))
    state = replace(state, signal=_keeping(state, signal), seen_unix_ns=now)
    if now - state.since_unix_ns < timing.for_ns:
        return Step(state)
    return _tell(replace(state, phase=Phase.FIRING, fired_unix_ns=now), now, timing)


def _firing(state: AlertState, signal: Signal | None, now: int, timing: Timing) -> Step:
    if signal is None or signal.bad is None:
        if now - state.seen_unix_ns >= timing.forget_ns:
            return _resolve(state, replace(state.signal, summary=_unseen(state)), now)
        return _tell(state, now, timing)
    if signal.bad:
        returns = state.returns + (state.good_since_unix_ns is not None)
        state = replace(
            state,
            signal=_keeping(state, signal),
            seen_unix_ns=now,
            good_since_unix_ns=None,
            returns=returns,
        )
        return _tell(state, now, timing)
    good_since = now if state.good_since_unix_ns is None else state.good_since_unix_ns
    state = replace(state, seen_unix_ns=now, good_since_unix_ns=good_since)
    if now - good_since >= timing.fade_ns:
        return _resolve(state, signal, now)
    return Step(state)


def _resolve(state: AlertState, signal: Signal, now: int) -> Step:
    """Over; told only where it was told that it fires."""
    over = replace(state, phase=Phase.OVER, signal=signal, over_unix_ns=now)
    notice = Notice(News.RESOLVED, now, over) if state.told_times else None
    return Step(over if state.told_unix_ns is not None else None, notice)


def _tell(state: AlertState, now: int, timing: Timing) -> Step:
    """Say that it fires, or still does, when it is time. One that fades is left to fade."""
    if state.good_since_unix_ns is not None:
        return Step(state)
    if state.told_unix_ns is not None:
        doublings = min(max(state.told_times - 1, 0), 30)
        wait = min(timing.repeat_ns << doublings, max(timing.repeat_most_ns, timing.repeat_ns))
        if now - state.told_unix_ns < wait:
            return Step(state)
    news = News.STILL if state.told_times else News.FIRING
    told = replace(state, told_unix_ns=now, told_times=state.told_times + 1)
    return Step(told, Notice(news, now, told))


def _keeping(state: AlertState, signal: Signal) -> Signal:
    """What was kept when it began stays."""
    return replace(signal, kept=state.signal.kept or signal.kept)


def _forgotten(state: AlertState) -> AlertState | None:
    """A pending alert that comes to nothing leaves only when it was told last."""
    if state.told_unix_ns is None:
        return None
    return replace(state, phase=Phase.OVER)


def _unseen(state: AlertState) -> str:
    return f"{state.signal.summary.rstrip('.')}: {UNSEEN}."
