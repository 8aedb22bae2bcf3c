"""All that fires, to the API of Prometheus Alertmanager (version 2), which does the rest.

It is told at every look what fires and, for a while, what is over. Grouping, silences and repeats
are its own; an alert of which it hears nothing any more ends by itself at `endsAt`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pathbudget.agents.alerts.delivery import Answer
from pathbudget.agents.alerts.http_post import post
from pathbudget.agents.alerts.message import Message
from pathbudget.agents.alerts.receivers import Alertmanager
from pathbudget.analysis.alerts.model import AlertKind, AlertState, Phase, Signal

PATH = "/api/v2/alerts"
TOLD_OVER_NS = 900_000_000_000
"""How long it is told that an alert is over."""
CHANGING = (AlertKind.ROUTE_INCIDENT,)
"""Labels of these change as more is known, and labels are the identity of an alert there."""

Posted = dict[str, Any]


def payload(receiver: Alertmanager, states: Iterable[AlertState], now_unix_ns: int) -> list[Posted]:
    """What it is told of these alerts."""
    found: list[Posted] = []
    for state in states:
        if state.fired_unix_ns is None:
            continue
        if state.phase is Phase.FIRING:
            ends = now_unix_ns + receiver.holds_ns
        elif state.over_unix_ns is not None and now_unix_ns - state.over_unix_ns < TOLD_OVER_NS:
            ends = state.over_unix_ns
        else:
            continue
        found.append(_posted(state.signal, state.fired_unix_ns, ends))
    return found


def send(receiver: Alertmanager, alerts: list[Posted]) -> Answer:
    """Post them."""
    return post(receiver, receiver.url.rstrip("/") + PATH, msgspec.json.encode(alerts))


def trial(message: Message) -> list[Posted]:
    """A message of the test mode as an alert there, over after a minute."""
    at = message.at_unix_ns
    return [
        {
            "labels": {"alertname": "PathbudgetTest", "test": "true", "severity": "ticket"},
            "annotations": {"summary": one.summary},
            "startsAt": _time(at),
            "endsAt": _time(at + 60_000_000_000),
        }
        for one in message.alerts
    ]


def _posted(signal: Signal, begins: int, ends: int) -> Posted:
    own = {name: value for name, value in signal.labels.items() if value}
    numbers = {name: f"{value:g}" for name, value in signal.numbers.items() if value is not None}
    labels = {
        "alertname": "Pathbudget" + signal.kind.replace("_", " ").title().replace(" ", ""),
        "severity": str(signal.severity),
        "rule": signal.rule,
        "subject": signal.key,
    }
    if signal.kind in CHANGING:
        numbers |= own
    else:
        labels |= own
    annotations = {"summary": signal.summary, **numbers}
    return {
        "labels": labels,
        "annotations": annotations,
        "startsAt": _time(begins),
        "endsAt": _time(max(ends, begins)),
    }


def _time(unix_ns: int) -> str:
    """RFC 3339, to the millisecond."""
    seconds, rest = divmod(unix_ns // 1_000_000, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
