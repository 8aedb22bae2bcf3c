"""`pathbudget reflector`: what probes talk to, at a site that you control."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors
from pathbudget.probes.reflector_http import HTTPS_PORT

if TYPE_CHECKING:
    from pathbudget.agents.reflector.runner import Reflector


def register(application: typer.Typer) -> None:
    """Add the command to `application`."""
    application.command("reflector")(reflector)


@reports_errors
def reflector(
    listen: Annotated[
        list[str] | None,
        typer.Option(help="Address to listen on, IPv4 or IPv6; may be repeated. Default: all."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="UDP port. STAMP's own, 862, needs rights.")
    ] = 8620,
    stateless: Annotated[
        bool, typer.Option("--stateless", help="Keep no sessions: no loss per direction.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(help="Answer only packets signed with a key of this file (ID HEX a line)."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Network to answer, such as 192.0.2.0/24; may be repeated."),
    ] = None,
    rate: Annotated[
        int, typer.Option(min=1, help="Packets/s answered to one /24 (IPv6: /48) at most.")
    ] = 2_000,
    total_rate: Annotated[
        int, typer.Option(min=1, help="Packets/s answered in all at most.")
    ] = 50_000,
    max_sessions: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Sessions remembered at most.")
    ] = 10_000,
    idle: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds until a silent session is forgotten.")
    ] = 900.0,
    https_port: Annotated[
        int, typer.Option(min=0, max=65535, help="TCP and UDP port of HTTPS; 0: none.")
    ] = HTTPS_PORT,
    certificate: Annotated[
        Path | None, typer.Option(help="Certificate chain to show (PEM), as ACME clients write it.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    certificate_directory: Annotated[
        Path | None, typer.Option(help="Where our own certificate is kept, and ca.pem.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Name or address for our own certificate; may be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Uploads and streams only with a bearer token of this file."),
    ] = None,
    quic_retry: Annotated[
        bool, typer.Option("--quic-retry", help="Have every QUIC client show its address first.")
    ] = False,
    max_connections: Annotated[
        int, typer.Option(min=1, max=10_000, help="HTTPS connections open at most.")
    ] = 512,
    max_per_network: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of these from one /24 (IPv6: /48).")
    ] = 256,
    status_every: Annotated[
        float | None, typer.Option(min=0.1, max=86_400, help="Seconds between status lines.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Status lines as JSON, one object a line.")
    ] = False,
    duration: Annotated[
        float | None, typer.Option(min=0.1, help="Stop after so many seconds.")
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(min=1, help="Write 'ready' to this descriptor when listening.")
    ] = None,
) -> None:
    """Answer STAMP (RFC 8762), HTTPS and HTTP/3: what a site runs to be measured.

    Contacts nobody. Runs until SIGTERM or Ctrl-C and says then what it has counted.
    """
    from pathbudget.agents.reflector import process
    from pathbudget.agents.reflector.limits import Rates
    from pathbudget.agents.reflector.options import (
        SECOND_NS,
        Options,
        read_addresses,
        read_networks,
    )
    from pathbudget.agents.reflector.serving.limits import Limits
    from pathbudget.agents.reflector.serving.options import (
        HttpsOptions,
        read_certificate,
        read_tokens,
    )
    from pathbudget.agents.reflector.status import Status, json_line, text_line
    from pathbudget.probes.stamp.authentication import read_keys

    networks = read_networks(allow or [])
    https = HttpsOptions(
        port=https_port,
        certificate=read_certificate(certificate, key, certificate_directory, tuple(name or ())),
        retry=quic_retry,
        tokens=read_tokens(token_file) if token_file else (),
        allowed=networks,
        limits=Limits(connections=max_connections, connections_per_network=max_per_network),
    )
    options = Options(
        addresses=read_addresses(listen or []),
        port=port,
        stateless=stateless,
        keys=tuple(read_keys(key_file).values()) if key_file else (),
        allowed=networks,
        rates=Rates(rate, total_rate),
        max_sessions=max_sessions,
        idle_ns=round(idle * SECOND_NS),
        https=https if https_port else None,
    )

    def tell(status: Status) -> None:
        sys.stdout.write(json_line(status) if as_json else text_line(status))
        sys.stdout.flush()

    tell(
        process.serve(
            process.Service(
                options,
                ready_fd=ready_fd,
                started=None if ready_fd is not None else _greet,
                tell=tell,
                complain=_complain,
                status_every_s=status_every,
                duration_s=duration,
            )
        )
    )


def _complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _greet(reflector: "Reflector") -> None:
    sys.stderr.write(f"{reflector.description} Ctrl-C ends it.\n")
