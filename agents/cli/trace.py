"""`pathbudget trace HOST...`: every way that packets go to a host, live."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.ping import (
    FourOption,
    SixOption,
    SourceOption,
    duration_of,
    family_of,
)
from pathbudget.agents.cli.report import PrefixesOption

if TYPE_CHECKING:
    from pathbudget.agents.trace.known import Naming
    from pathbudget.agents.trace.options import TraceOptions
    from pathbudget.agents.trace.session import Session


class ProtocolChoice(StrEnum):
    """What the probes are."""

    ICMP = "icmp"
    UDP = "udp"
    TCP = "tcp"
    SESSION = "session"


HostsArgument = Annotated[
    list[str], typer.Argument(metavar="HOST[:PORT]...", help="Hosts to trace.")
]
ProtocolOption = Annotated[
    ProtocolChoice | None,
    typer.Option("--protocol", "-p", help="What is sent; session: inside an open connection."),
]
PortOption = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Port of udp, tcp and session.")
]
FlowsOption = Annotated[
    int | None,
    typer.Option("--flows", min=1, help="So many flows. Default: as many as it takes."),
]
ConfidenceOption = Annotated[
    float | None,
    typer.Option("--confidence", help="Of having found every address: 0.95 or 0.99."),
]
HopsOption = Annotated[
    int | None, typer.Option("--max-hops", min=1, max=255, help="Greatest hop limit.")
]
MtuOption = Annotated[bool, typer.Option("--mtu", help="Look for the path MTU, too.")]
IntervalOption = Annotated[
    str, typer.Option("--interval", "-i", help="Between rounds; 1s or more.")
]
TimeoutOption = Annotated[str, typer.Option("--timeout", help="Silence after this.")]
CountOption = Annotated[
    int | None, typer.Option("--count", "-c", min=1, help="Rounds. Default: until Ctrl-C.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="One round, as --count 1.")]
NamesOption = Annotated[bool, typer.Option("--names", help="Names of hops by reverse DNS.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON lines: samples, rounds, sums.")]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="trace")(trace)


@reports_errors
def trace(
    hosts: HostsArgument,
    protocol: ProtocolOption = None,
    port: PortOption = None,
    flows: FlowsOption = None,
    confidence: ConfidenceOption = None,
    max_hops: HopsOption = None,
    mtu: MtuOption = False,
    interval: IntervalOption = "10s",
    timeout: TimeoutOption = "1s",
    count: CountOption = None,
    once: OnceOption = False,
    prefixes: PrefixesOption = None,
    names: NamesOption = False,
    source: SourceOption = None,
    ipv4: FourOption = False,
    ipv6: SixOption = False,
    as_json: JsonOption = False,
) -> None:
    """Every way that packets go to a host: load-balanced paths, hop by hop, live.

    Rounds repeat until Ctrl-C; what changed since the first one is marked, and told apart from what
    load balancers do. Missing answers are told from lost packets.
    """
    from pathbudget.agents.ping.hosts import parse_ping_host
    from pathbudget.agents.trace.options import TraceOptions, check

    if ipv4 and ipv6:
        raise fail("--ipv4 and --ipv6 exclude each other; leave both out.", ExitCode.USAGE)
    if once and count not in (None, 1):
        raise fail("--once and --count exclude each other; leave one out.", ExitCode.USAGE)
    options = TraceOptions(
        hosts=[parse_ping_host(text) for text in dict.fromkeys(hosts)],
        protocol=protocol.value if protocol else None,
        port=port,
        flows=flows,
        confidence=confidence,
        max_hops=max_hops,
        mtu=mtu,
        family=family_of(source, ipv4=ipv4, ipv6=ipv6),
        interval_ns=duration_of("--interval", interval),
        timeout_ns=duration_of("--timeout", timeout),
        count=1 if once else count,
        source=source,
    )
    check(options)
    _end(_measure(options, prefixes, names=names, as_json=as_json), options)


def _measure(
    options: "TraceOptions", prefixes: Path | None, *, names: bool, as_json: bool
) -> "Session":
    from pathbudget.agents.trace.command import run_json, run_text
    from pathbudget.agents.trace.known import Knowing
    from pathbudget.agents.trace.names import HopNames

    knowing = Knowing(_naming(prefixes), HopNames() if names else None)
    return run_json(options, knowing) if as_json else run_text(options, knowing)


def _naming(prefixes: Path | None) -> "Naming | None":
    if prefixes is None:
        return None
    from pathbudget.agents.routes.prefixes import naming

    return naming(prefixes)


def _end(session: "Session", options: "TraceOptions") -> None:
    """Ctrl-C is how a run without end ends; one with an end was cut short by it."""
    for problem in session.problems:
        typer.echo(problem, err=True)
    if session.trouble:
        raise fail(session.trouble, ExitCode.TROUBLE)
    if not session.answered:
        raise fail("Nobody answered, at any hop.", ExitCode.NOTHING_MEASURED)
    if session.interrupted and options.count is not None:
        raise typer.Exit(int(ExitCode.INTERRUPTED))
