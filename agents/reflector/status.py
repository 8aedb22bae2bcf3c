"""What a reflector says of itself while it runs: one line at a time, for a person or a program."""

import datetime
from collections import Counter
from collections.abc import Mapping

import msgspec


class Status(msgspec.Struct, frozen=True):
    """The state of a reflector since its start. `refused` counts by reason what got no answer."""

    unix_ns: int
    received: int
    reflected: int
    sessions: int
    refused: dict[str, int]
    errors: dict[str, int]
    """Replies that the kernel refused or that an ICMP error came back for."""
    https: "HttpsStatus | None" = None
    """None where HTTPS is off."""
    final: bool = False


class HttpsStatus(msgspec.Struct, frozen=True):
    """HTTPS since its start: connections open now, requests answered, everything else by name."""

    open: int
    requests: int
    counts: dict[str, int]


def json_line(status: Status) -> str:
    """One object on one line."""
    return msgspec.json.encode(status).decode() + "\n"


def text_line(status: Status) -> str:
    """``12:00:04Z 300 of 312 reflected, 2 sessions; 12 refused: 12 over_source_rate``."""
    moment = datetime.datetime.fromtimestamp(status.unix_ns // 1_000_000_000, datetime.UTC)
    plural = "" if status.sessions == 1 else "s"
    reflected = f"{status.reflected} of {status.received} reflected"
    told = [f"{moment:%H:%M:%SZ} {reflected}, {status.sessions} session{plural}"]
    for what, counts in (("refused", status.refused), ("errors", status.errors)):
        if counts:
            told.append(f"{sum(counts.values())} {what}: {_listed(counts)}")
    if status.https is not None and status.https.counts:
        of_https = status.https
        told.append(f"HTTPS {of_https.requests} requests, {of_https.open} open")
    return "; ".join(told) + "\n"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in Counter(counts).most_common())
