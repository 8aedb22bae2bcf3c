"""`pathbudget responder`: the other end of the probes, at a site that you control."""

import ipaddress
import sys
from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors
from pathbudget.probes.errors import ConfigError, Fault


def register(application: typer.Typer) -> None:
    """Add the command to `application`."""
    application.command("responder")(responder)


@reports_errors
def responder(
    bind: Annotated[
        list[str], typer.Option(help="Address to listen on, IPv4 or IPv6. May be repeated.")
    ],
    certificate_directory: Annotated[
        Path, typer.Option(help="Folder of ca.pem, server.pem and server.key; made when empty.")
    ],
    tls_port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the TLS 1.3 handshakes.")
    ] = 8443,
    tcp_port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port that accepts and says nothing.")
    ] = 8080,
    echo_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port that sends every byte back; none unless given."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Name for the certificate, beside the addresses. May be repeated."),
    ] = None,
    max_connections: Annotated[
        int, typer.Option(min=1, max=900, help="Open connections at most; more are reset.")
    ] = 900,
    max_per_source: Annotated[
        int, typer.Option(min=1, max=900, help="Of these from one IPv4 address or IPv6 /64.")
    ] = 256,
    idle_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="A silent connection is closed after this.")
    ] = 30.0,
    delays: Annotated[
        Path | None,
        typer.Option(help="Round trips made in user space (loopback world only)."),
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(min=1, help="Write 'ready' to this descriptor when listening.")
    ] = None,
    die_with_parent: Annotated[
        bool, typer.Option("--die-with-parent", help="Stop when the starting process ends.")
    ] = False,
) -> None:
    """Answer TCP and TLS 1.3 probes at a site; say nothing else, contact nobody.

    Runs until SIGTERM or Ctrl-C. Clients trust ca.pem of the certificate directory.
    """
    from pathbudget.agents.responder import process
    from pathbudget.agents.responder.certificate import server_context, subject_names
    from pathbudget.agents.responder.delays import NO_DELAYS, read_delays
    from pathbudget.agents.responder.limits import Limits
    from pathbudget.agents.responder.server import Listening

    if die_with_parent:
        process.die_with_parent()
    addresses = list(dict.fromkeys(bind))
    _check(addresses, tls_port, tcp_port, echo_port)
    echo = "" if echo_port is None else f", echo {echo_port}"
    counters = process.serve(
        process.Service(
            listening=Listening(addresses, tls_port, tcp_port, echo_port),
            context=server_context(certificate_directory, subject_names(addresses, name or [])),
            limits=Limits(max_connections, max_per_source, idle_seconds=idle_seconds),
            delays=read_delays(delays) if delays is not None else NO_DELAYS,
            ready_fd=ready_fd,
            greeting=f"Listening on {', '.join(addresses)}: TLS {tls_port}, TCP {tcp_port}{echo}. "
            f"Ctrl-C ends it.\nClients trust {certificate_directory / 'ca.pem'}.\n",
        )
    )
    if ready_fd is None:
        told = ", ".join(f"{count} {what}" for what, count in sorted(counters.items()))
        sys.stderr.write(f"Stopped. {told or 'Nobody came'}.\n")


def _check(addresses: list[str], tls_port: int, tcp_port: int, echo_port: int | None) -> None:
    faults: list[Fault] = []
    for address in addresses:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            expected = "an IPv4 or IPv6 address of this machine, such as 192.0.2.7 or ::"
            faults.append(Fault("command line", "--bind", f"{address!r}", expected))
    if tls_port == tcp_port:
        expected = "another port than --tls-port"
        faults.append(Fault("command line", "--tcp-port", f"{tcp_port}", expected))
    if echo_port in (tls_port, tcp_port):
        expected = "another port than --tls-port and --tcp-port"
        faults.append(Fault("command line", "--echo-port", f"{echo_port}", expected))
    if faults:
        raise ConfigError(faults)
