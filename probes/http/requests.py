"""Requests that are what they say: nothing in them can become another header or request.

RFC 9110 section 5, RFC 9112 section 3.
"""

import re

from pathbudget.probes.carriers import Request
from pathbudget.probes.http.settings import HTTP_PORT, HTTPS
from pathbudget.probes.record import Failure, FailureKind, Stage, Target
from pathbudget.probes.tls.settings import HTTPS_PORT

MOST_HEADERS = 64
MOST_HEADER_BYTES = 16_384
OWN_HEADERS = frozenset(
    {
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Those that frame a message: they come by themselves, or not at all."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHOD = re.compile(r"[A-Z]+")
_VALUE = re.compile(r"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
_PATH = re.compile(r"/[\x21\x22\x24-\x7e]*")
_AUTHORITY = re.compile(r"[0-9A-Za-z._~%:\[\]-]+")


def authority_of(target: Target, port: int, scheme: str) -> str:
    """Host and port as a request names them; without the port where the scheme implies it."""
    host = (target.server_name or target.host).partition("%")[0]
    host = f"[{host}]" if ":" in host else host
    implied = HTTPS_PORT if scheme == HTTPS else HTTP_PORT
    return host if port == implied else f"{host}:{port}"


def wrong_header(name: str, value: str) -> str:
    """Why a header cannot be sent; empty where it can."""
    if not _TOKEN.fullmatch(name) or name != name.lower():
        return f"{name!r} is no name of a header"
    if name in OWN_HEADERS:
        return f"the header {name} comes by itself"
    if not _VALUE.fullmatch(value):
        return f"the value of the header {name} holds what none may hold"
    return ""


def wrong_path(path: str) -> str:
    """Why a path cannot be asked for; empty where it can."""
    return "" if _PATH.fullmatch(path) else f"{path!r} is no path of a URL"


def wrong_request(request: Request) -> str:
    """Why a request cannot be sent; empty where it can."""
    if not _METHOD.fullmatch(request.method) or request.method == "CONNECT":
        return f"{request.method!r} is no method that can be measured"
    if not _AUTHORITY.fullmatch(request.authority):
        return f"{request.authority!r} is no host"
    if len(request.headers) > MOST_HEADERS:
        return f"{len(request.headers)} headers"
    size = sum(len(name) + len(value) for name, value in request.headers)
    if size > MOST_HEADER_BYTES:
        return f"{size} bytes of headers"
    faults = (wrong_header(name, value) for name, value in request.headers)
    return wrong_path(request.path) or next(filter(None, faults), "")


def refused_request(why: str) -> Failure:
    """We do not send that."""
    return Failure(FailureKind.LOCAL, Stage.SEND, detail=why)
