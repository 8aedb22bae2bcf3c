"""A message: what has become of alerts of one rule, for a receiver. JSON and text of it.

The JSON is stable: fields may be added, none change their meaning within a version
(docs/alerts-schema.json).
"""

import hashlib
from typing import Any

import msgspec

from pathbudget.analysis.alerts.model import AlertKind, AlertState, News, Notice, Severity
from pathbudget.analysis.report.words import counted, utc

VERSION = 1
MOST_IN_TEXT = 50
"""A mail with more lines is read by nobody; the JSON has all."""


class Alert(msgspec.Struct, frozen=True):
    """One alert in a message."""

    key: str
    """The same subject of the same rule has the same one for ever."""
    status: News
    severity: Severity
    summary: str
    labels: dict[str, str]
    numbers: dict[str, float | None]
    began_unix_ns: int
    ended_unix_ns: int | None = None
    returns: int = 0
    """How often it came back while it faded."""


class Message(msgspec.Struct, frozen=True):
    """What a webhook gets."""

    version: int
    id: str
    """The same when a message is sent again: whoever has it need not act twice."""
    test: bool
    """Nothing happened: somebody tries the way."""
    rule: str
    kind: AlertKind
    at_unix_ns: int
    alerts: tuple[Alert, ...]

    @property
    def title(self) -> str:
        """One line: ``page: 3 firing, 1 resolved: agent silent (silence)``."""
        numbers = [
            f"{sum(one.status is news for one in self.alerts)} {news.replace('_', ' ')}"
            for news in News
            if any(one.status is news for one in self.alerts)
        ]
        urgent = any(one.severity is Severity.PAGE for one in self.alerts)
        head = "TEST, nothing happened: " if self.test else ""
        severity = Severity.PAGE if urgent else Severity.TICKET
        kind = self.kind.replace("_", " ")
        return f"{head}{severity}: {', '.join(numbers)}: {kind} ({self.rule})"


def message_of(rule: str, notices: list[Notice], now_unix_ns: int) -> Message:
    """One message of notices of one rule. At least one."""
    kind = notices[0].state.signal.kind
    of = "\n".join([rule, str(now_unix_ns), *(f"{one.news} {one.state.key}" for one in notices)])
    return Message(
        version=VERSION,
        id=hashlib.sha256(of.encode()).hexdigest()[:32],
        test=False,
        rule=rule,
        kind=kind,
        at_unix_ns=now_unix_ns,
        alerts=tuple(alert_of(one.news, one.state) for one in notices),
    )


def alert_of(news: News, state: AlertState) -> Alert:
    """One alert as it stands."""
    signal = state.signal
    fired = state.since_unix_ns if state.fired_unix_ns is None else state.fired_unix_ns
    ended = signal.ended_unix_ns or state.over_unix_ns if news is News.RESOLVED else None
    return Alert(
        key=signal.key,
        status=news,
        severity=signal.severity,
        summary=signal.summary,
        labels=signal.labels,
        numbers=signal.numbers,
        began_unix_ns=signal.began_unix_ns or fired,
        ended_unix_ns=ended,
        returns=state.returns,
    )


def text_of(message: Message) -> str:
    """For a person: a line or two for each alert."""
    lines = [message.title, ""]
    for one in message.alerts[:MOST_IN_TEXT]:
        when = f"since {utc(one.began_unix_ns)}"
        if one.ended_unix_ns is not None:
            when = f"{utc(one.began_unix_ns)} to {utc(one.ended_unix_ns)}"
        back = f", came back {counted(one.returns, 'time')}" if one.returns else ""
        lines += [f"{one.status.replace('_', ' ').upper()}  {one.summary}", f"    {when}{back}"]
    more = len(message.alerts) - MOST_IN_TEXT
    if more > 0:
        lines.append(f"and {more} more")
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a message; docs/alerts-schema.json."""
    found = msgspec.json.schema(Message)
    title = f"pathbudget alerts, message version {VERSION}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **found}
