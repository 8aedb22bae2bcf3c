"""Fuzz targets of answers over HTTP/1.1 and 2. See tests/fuzzing.py."""

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.clock import Reading
from pathbudget.probes.http.exchanges import Broken, Event, Exchanges, Head, Whole
from pathbudget.probes.http.http1 import Http1Exchanges
from pathbudget.probes.http.http2 import Http2Exchanges
from pathbudget.probes.http.settings import Limits

LIMITS = Limits(header_bytes=1_024, headers=8, body_bytes=512, informational=2)
NOW = Moment(Reading(0, 1_790_000_000 * 10**9, 100))
REQUEST = Request("GET", "site.example", "/")
OK = b"HTTP/1.1 200 OK\r\n"
SETTINGS = bytes(3) + b"\x04" + bytes(5)
HEADERS = b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"  # :status 200, not the end


def fuzz_one_http1(data: bytes) -> None:
    """Any bytes for an answer, for headers, for a body, for chunks: told in order, and once."""
    for first in (b"", OK, OK + b"\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n"):
        for step in (len(data) or 1, 7):
            exchanges = Http1Exchanges(LIMITS)
            _play(exchanges, first + data, step)


def fuzz_one_http2(data: bytes) -> None:
    """The same for frames: from the first byte, after the settings, in the middle of a body."""
    for first in (b"", SETTINGS, SETTINGS + HEADERS):
        exchanges = Http2Exchanges(LIMITS, "https")
        _play(exchanges, first + data, len(data) or 1)
    framed = b"".join(
        len(part).to_bytes(3, "big") + part[:1] + b"\x04\x00\x00\x00\x01" + part
        for part in (data[at : at + 40] for at in range(0, len(data), 40))
    )
    _play(Http2Exchanges(LIMITS, "https"), SETTINGS + framed, len(framed) or 1)


def _play(exchanges: Exchanges, data: bytes, step: int) -> None:
    key = exchanges.ask(REQUEST)
    exchanges.outgoing()
    events: list[Event] = []
    for at in range(0, len(data), step):
        events += exchanges.receive(data[at : at + step], NOW)
        exchanges.outgoing()
    events += exchanges.ended()
    _check(events, key)
    assert not exchanges.usable
    assert exchanges.receive(b"x", NOW) == []
    exchanges.goodbye()


def _check(events: list[Event], key: int) -> None:
    """Head, pieces, end: one end for the request, and no more than the bounds allow. Behind that
    only the connection itself may break.
    """
    heads = [event for event in events if isinstance(event, Head)]
    assert len(heads) <= 1
    assert all(event is events[0] for event in heads)
    at, end = next(
        (at, event) for at, event in enumerate(events) if isinstance(event, Whole | Broken)
    )
    assert end.key in (key, None)
    assert [event.key for event in events[at + 1 :]] in ([], [None])
    assert end.key is not None or at + 1 == len(events)
    bodies = events[len(heads) : at]
    assert heads or not bodies
    assert sum(len(getattr(event, "data", b"")) for event in bodies) <= LIMITS.body_bytes
    assert heads or isinstance(end, Broken)
    for event in events:
        assert not isinstance(event, Broken) or event.failure.detail.isprintable()
