"""What one shot of the `http` probe asks for, and in which state of the connection."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pathbudget.probes.carriers import Request
from pathbudget.probes.channels import PLAIN_TCP, TcpOptions
from pathbudget.probes.contract import Options, OptionSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.http.requests import wrong_header, wrong_path
from pathbudget.probes.http.settings import (
    HTTP_OPTIONS,
    HttpSettings,
    Limits,
    carrying_faults,
    http_settings,
)
from pathbudget.probes.option_files import no_regular_file
from pathbudget.probes.record import ConnectionMode

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
METHODS_WITH_BODY = ("POST", "PUT")
KEPT = (ConnectionMode.WARM, ConnectionMode.IDLE)
FIRST_STATUS = 100
LARGEST_SECRET_BYTES = 8_192
HEADERS_APART = re.compile(r"\n|\s\|\s")

OPTIONS = {
    "mode": OptionSpec(
        str,
        "cold",
        "state of the connection that the request finds",
        choices=tuple(ConnectionMode),
    ),
    "method": OptionSpec(
        str, "GET", "method of the request", choices=(*SAFE_METHODS, *METHODS_WITH_BODY)
    ),
    "path": OptionSpec(str, "/", "path and query of the request"),
    "headers": OptionSpec(str, "", "more headers, as in 'accept: text/html | x-trace: 1'"),
    "body_bytes": OptionSpec(
        int, 0, "random bytes that POST and PUT send", minimum=0, maximum=1 << 24
    ),
    "answer_bytes": OptionSpec(
        int, 1 << 16, "largest answer that is taken", minimum=0, maximum=1 << 28
    ),
    "expect_status": OptionSpec(
        int, 0, "the one status that is no failure; 0: all below 400", minimum=0, maximum=599
    ),
    "idle": OptionSpec(
        float, 5.0, "seconds that mode idle leaves a connection alone", minimum=0.1, maximum=3_600
    ),
    "authorization_file": OptionSpec(
        str,
        "",
        "file with what the header authorization says; a single word is a bearer token",
        file=True,
    ),
    "compare_credentials": OptionSpec(
        bool, False, "ask without credentials too, in the same shot (mode warm)"
    ),
    "follow_redirects": OptionSpec(bool, False, "follow redirects to the same host and port"),
    "proxy": OptionSpec(
        str, "none", "there is none, and those of the environment are not used", choices=("none",)
    ),
    **HTTP_OPTIONS,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of an `http` probe, checked."""

    settings: HttpSettings
    mode: ConnectionMode
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    credentials: tuple[tuple[str, str], ...]
    body: bytes
    expect_status: int
    idle_ns: int
    compare: bool
    follow: bool

    @property
    def keeps(self) -> bool:
        """Whether connections are used again."""
        return self.mode in KEPT

    def request(self, authority: str, *, anonymous: bool = False) -> Request:
        """What is asked for."""
        credentials = () if anonymous else self.credentials
        headers = (*self.headers, *credentials)
        return Request(self.method, authority, self.path, headers, self.body)

    def accepts(self, status: int) -> bool:
        """Whether an answer with this status is no failure."""
        return status == self.expect_status if self.expect_status else status < 400


def make_plan(options: Options, random_bytes: Callable[[int], bytes]) -> Plan:
    """Read the options.

    Raises:
        ConfigError: they do not go together, or a file cannot be read; every fault is in it.
    """
    faults: list[Fault] = []
    mode = ConnectionMode(str(options.get("mode") or "cold"))
    method = str(options.get("method") or "GET")
    body_bytes = int(options.get("body_bytes") or 0)
    tcp = TcpOptions(segments=True) if body_bytes else PLAIN_TCP
    plan = Plan(
        settings=_settings(options, mode, tcp, faults),
        mode=mode,
        method=method,
        path=str(options.get("path") or "/"),
        headers=_headers(str(options.get("headers") or ""), faults),
        credentials=_credentials(str(options.get("authorization_file") or ""), faults),
        body=b"" if method in SAFE_METHODS else random_bytes(body_bytes),
        expect_status=int(options.get("expect_status") or 0),
        idle_ns=round(float(options.get("idle") or 0) * 1e9),
        compare=bool(options.get("compare_credentials")),
        follow=bool(options.get("follow_redirects")),
    )
    faults += _disagreements(plan, body_bytes)
    if faults:
        raise ConfigError(faults)
    return plan


def check(options: Options) -> list[Fault]:
    """Every fault in the options of an `http` probe; see `contract.ProbeSpec.check`."""
    mode = ConnectionMode(str(options.get("mode") or "cold"))
    faults = carrying_faults(options, mode, "http")
    try:
        make_plan(options, lambda _: b"")
    except ConfigError as error:
        faults += error.faults
    return list(dict.fromkeys(faults))


def _settings(
    options: Options, mode: ConnectionMode, tcp: TcpOptions, faults: list[Fault]
) -> HttpSettings:
    try:
        settings = http_settings(options, mode=mode, tcp=tcp)
    except ConfigError as error:
        faults += error.faults
        return HttpSettings()
    largest = options.get("answer_bytes")
    limits = Limits() if largest is None else Limits(body_bytes=int(largest))
    return replace(settings, limits=limits)


def _disagreements(plan: Plan, body_bytes: int) -> list[Fault]:
    """What cannot be had together."""
    found: list[Fault] = []
    if 0 < plan.expect_status < FIRST_STATUS:
        expected = f"0, or a status from {FIRST_STATUS} to 599"
        problem = f"{plan.expect_status} is no status of HTTP"
        found.append(Fault("http", "expect_status", problem, expected))
    problem = wrong_path(plan.path)
    if problem:
        found.append(Fault("http", "path", problem, "one that begins with / and has no spaces"))
    if body_bytes and plan.method in SAFE_METHODS:
        problem = f"{body_bytes} bytes with method {plan.method}"
        found.append(Fault("http", "body_bytes", problem, "method POST or PUT"))
    if plan.mode is ConnectionMode.EARLY_DATA and plan.method not in SAFE_METHODS:
        # Early data may be replayed (RFC 8470, 4).
        problem = f"{plan.method} with mode early_data"
        found.append(Fault("http", "method", problem, f"one of {', '.join(SAFE_METHODS)}"))
    if plan.compare and not plan.credentials:
        problem = "there is nothing to compare"
        found.append(Fault("http", "compare_credentials", problem, "an authorization_file"))
    if plan.compare and plan.mode is not ConnectionMode.WARM:
        problem = f"compare_credentials with mode {plan.mode}"
        found.append(Fault("http", "mode", problem, "warm: two requests in the same state"))
    return found


def _headers(text: str, faults: list[Fault]) -> tuple[tuple[str, str], ...]:
    """The headers of every request: what the user wants, and who we are."""
    found = {"user-agent": "pathbudget", "accept": "*/*"}
    for line in filter(None, (part.strip() for part in HEADERS_APART.split(text))):
        name, colon, value = (part.strip() for part in line.partition(":"))
        name = name.lower()
        problem = wrong_header(name, value) if colon else f"{line!r} has no colon"
        if name == "authorization":
            problem = "credentials in the options, which are recorded"
        if problem:
            expected = "an authorization_file" if name == "authorization" else "name: value"
            faults.append(Fault("http", "headers", problem, expected))
        else:
            found[name] = value
    return tuple(found.items())


def _credentials(file: str, faults: list[Fault]) -> tuple[tuple[str, str], ...]:
    """The header that a file stands for. What it holds is never told."""
    if not file:
        return ()
    expected = "a file with one line: what the header authorization says"
    fault = no_regular_file({"authorization_file": file}, "authorization_file", expected, "http")
    try:
        text = b"" if fault else _beginning(file)
    except OSError as error:
        problem = f"{file}: {(error.strerror or str(error)).lower()}"
        fault, text = Fault("http", "authorization_file", problem, expected), b""
    if fault is not None:
        faults.append(fault)
        return ()
    value = text.decode("latin-1").strip()
    if not value or len(text) > LARGEST_SECRET_BYTES or wrong_header("authorization", value):
        problem = f"{file}: holds no value of a header"
        faults.append(Fault("http", "authorization_file", problem, expected))
        return ()
    return (("authorization", value if " " in value else f"Bearer {value}"),)


def _beginning(file: str) -> bytes:
    with Path(file).open("rb") as source:
        return source.read(LARGEST_SECRET_BYTES + 1)
