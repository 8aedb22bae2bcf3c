"""No word of a user's can become another header, another request or another host."""

import pytest
from tests.http.parts import get, post

from pathbudget.probes.carriers import Request
from pathbudget.probes.http.requests import authority_of, wrong_request
from pathbudget.probes.record import Target

GOOD = [
    get(),
    get("/a/b?c=d&e=%20f", ("accept", "text/html; q=0.5, */*"), ("x-empty", "")),
    get("/", ("authorization", "Bearer a.b-c=="), ("x-latin", "\xe9")),
    post(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    Request("GET", "[2001:db8::1]:8443", "/"),
]
BAD = {
    "line-end-in-value": get("/", ("a", "b\r\nc: d")),
    "line-feed-in-value": get("/", ("a", "b\nc: d")),
    "nul-in-value": get("/", ("a", "b\0")),
    "space-before-value": get("/", ("a", " b")),
    "beyond-latin": get("/", ("a", "\u20ac")),
    "line-end-in-name": get("/", ("a\r\nb", "c")),
    "colon-in-name": get("/", ("a:b", "c")),
    "pseudo-header": get("/", (":path", "/other")),
    "no-name": get("/", ("", "c")),
    "upper-case-name": get("/", ("Accept", "c")),
    "length-of-their-own": get("/", ("content-length", "5")),
    "chunks": get("/", ("transfer-encoding", "chunked")),
    "host": get("/", ("host", "other.example")),
    "upgrade": get("/", ("upgrade", "h2c")),
    "space-in-path": get("/a b"),
    "line-end-in-path": get("/ HTTP/1.1\r\nx: y"),
    "relative-path": get("a"),
    "whole-url": get("http://other.example/"),
    "fragment": get("/a#b"),
    "line-end-in-host": Request("GET", "a\r\nx: y", "/"),
    "user-in-host": Request("GET", "user@site.example", "/"),
    "path-in-host": Request("GET", "site.example/x", "/"),
    "no-host": Request("GET", "", "/"),
    "tunnel": Request("CONNECT", "site.example", "/"),
    "method": Request("GET /x HTTP/1.1\r\n", "site.example", "/"),
    "many-headers": get("/", *((f"a{n}", "b") for n in range(65))),
    "large-headers": get("/", *((f"a{n}", "b" * 1_000) for n in range(20))),
}


@pytest.mark.parametrize("request_", GOOD, ids=range(len(GOOD)))
def test_what_may_be_sent(request_: Request) -> None:
    assert wrong_request(request_) == ""


@pytest.mark.parametrize("name", BAD)
def test_what_may_not(name: str) -> None:
    problem = wrong_request(BAD[name])
    assert problem
    assert problem.isprintable()


@pytest.mark.parametrize(
    ("target", "port", "scheme", "authority"),
    [
        (Target("t", "site.example"), 443, "https", "site.example"),
        (Target("t", "site.example"), 8443, "https", "site.example:8443"),
        (Target("t", "site.example"), 80, "http", "site.example"),
        (Target("t", "site.example"), 443, "http", "site.example:443"),
        (Target("t", "192.0.2.1", server_name="site.example"), 443, "https", "site.example"),
        (Target("t", "2001:db8::1"), 443, "https", "[2001:db8::1]"),
        (Target("t", "fe80::1%eth0"), 8443, "https", "[fe80::1]:8443"),
    ],
)
def test_the_host_as_a_request_names_it(
    target: Target, port: int, scheme: str, authority: str
) -> None:
    assert authority_of(target, port, scheme) == authority
