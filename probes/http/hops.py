"""One request and its answer, and (with redirects) those that follow from it in the same shot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from pathbudget.probes.carriers import Moment, Opened, Phase, Request
from pathbudget.probes.contract import Shot
from pathbudget.probes.http.exchanges import printable
from pathbudget.probes.http.requests import wrong_path
from pathbudget.probes.record import ConnectionMode, Failure, FailureKind, Note, Stage
from pathbudget.probes.reflector_http import RESIDENCE_HEADER

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
BECOMES_GET = frozenset({301, 302, 303})
LONGEST_NOTE = 400
MOST_DIGITS = 18


class HopUser(Protocol):
    """Whom a hop tells that some of its answer has come, and that it is over."""

    def hop_came(self) -> None:
        """Some of the body has come."""

    def hop_over(self, hop: "Hop") -> None:
        """The answer is whole, or there will be none."""


@dataclass(slots=True)
class Hop:
    """One request. An `AnswerListener`. `reused` says that its connection stood before."""

    user: HopUser
    request: Request
    reused: bool
    mode: ConnectionMode
    began: Moment
    """When it came to its turn: begin of dialling, or of sending."""
    opened: Opened | None = None
    opening_failure: tuple[str, Failure, tuple[Phase, ...]] | None = None
    first_left: Moment | None = None
    last_left: Moment | None = None
    headed: Moment | None = None
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body_bytes: int = 0
    whole: Moment | None = None
    failure: Failure | None = None
    notes: dict[str, Note] = field(default_factory=dict[str, Note])

    @property
    def over(self) -> bool:
        """Whether it has come to an end."""
        return self.whole is not None or self.failure is not None

    @property
    def asked(self) -> Moment:
        """When its first byte left, as far as anybody knows."""
        return self.began if self.first_left is None else self.first_left

    @property
    def location(self) -> str:
        """Where the answer sends us; empty where it does not."""
        return _header(self.headers, "location") if self.status in REDIRECTS else ""

    # AnswerListener

    def left(self, first: Moment, last: Moment) -> None:
        """See `carriers.AnswerListener.left`."""
        self.first_left, self.last_left = first, last

    def acknowledged(self, moment: Moment) -> None:
        """See `carriers.AnswerListener.acknowledged`."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        """See `carriers.AnswerListener.head`."""
        self.status, self.headers, self.headed = status, headers, moment

    def body(self, data: bytes, moment: Moment) -> None:
        """See `carriers.AnswerListener.body`."""
        del moment
        self.body_bytes += len(data)
        self.user.hop_came()

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        """See `carriers.AnswerListener.complete`."""
        self.whole = moment
        self.notes |= notes
        self.user.hop_over(self)

    def failed(self, failure: Failure) -> None:
        """See `carriers.AnswerListener.failed`."""
        if not self.over:
            self.failure = failure
            self.user.hop_over(self)

    def seen(self) -> dict[str, Note]:
        """What a sample notes of the answer."""
        found = dict(self.notes)
        if self.headed is None:
            return found
        found |= {"status": self.status, "bytes": self.body_bytes}
        for name, key in (("server-timing", "server_timing"), ("location", "location")):
            text = _header(self.headers, name)
            if text:
                found[key] = printable(text, LONGEST_NOTE)
        residence = _header(self.headers, RESIDENCE_HEADER)
        if residence.isascii() and residence.isdigit() and len(residence) <= MOST_DIGITS:
            found["residence_ns"] = int(residence)
        return found


@dataclass(slots=True)
class Told:
    """What became of one shot."""

    shot: Shot
    began: Moment
    hops: list[Hop] = field(default_factory=list[Hop])
    """The request, and those that redirects led to."""
    anonymous: Hop | None = None
    idle_ns: int | None = None
    """How long the connection had been left alone."""
    age_ns: int | None = None
    failure: Failure | None = None
    """Why there is no first byte, where no hop says so."""


def next_request(hop: Hop, scheme: str, most: int) -> Request | Failure | None:
    """What a redirect asks for; None of an answer that is none, a failure where it leads away."""
    location = hop.location
    if not location:
        return None
    if most <= 0:
        return _refused(f"more than {MOST_REDIRECTS} redirects")
    before = hop.request
    here = f"{scheme}://{before.authority}"
    try:
        there = urlsplit(urljoin(here + before.path, location))
        same = (there.scheme, there.netloc.lower()) == (scheme, before.authority.lower())
    except ValueError:
        return _refused(f"a redirect to what is no URL: {location}")
    if not same:
        return _refused(f"a redirect away from {here}: {location}")
    path = (there.path or "/") + (f"?{there.query}" if there.query else "")
    if wrong_path(path):
        return _refused(f"a redirect to what is no URL: {location}")
    becomes_get = hop.status in BECOMES_GET and before.method not in ("GET", "HEAD")
    method, body = ("GET", b"") if becomes_get else (before.method, before.body)
    return Request(method, before.authority, path, before.headers, body)


def wrong_status(status: int) -> Failure:
    """The server answers, and not with what is asked for."""
    return Failure(FailureKind.STATUS, Stage.WAIT, detail=f"status {status}")


def _refused(why: str) -> Failure:
    return Failure(FailureKind.STATUS, Stage.WAIT, detail=printable(why))


def _header(headers: tuple[tuple[str, str], ...], name: str) -> str:
    """All values of one header, as one (RFC 9110, 5.3)."""
    return ", ".join(value for one, value in headers if one == name)
