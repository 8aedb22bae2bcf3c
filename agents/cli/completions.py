"""`pathbudget completions`: a server with scripted timing, to try the completion probe on."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors

if TYPE_CHECKING:
    from pathbudget.agents.completions.performance import Served


def register(application: typer.Typer) -> None:
    """Add the command to `application`."""
    application.command("completions")(completions)


@reports_errors
def completions(
    script: Annotated[
        Path | None,
        typer.Argument(help="Script of the timing, TOML or JSON. Default: 100 ms, then 40/s."),
    ] = None,
    listen: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port.")] = 8600,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file of a certificate: serve over TLS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="PEM file of its key, where it is not in the same file.")
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="Answer only who shows the API key of this file.")
    ] = None,
    ready_fd: Annotated[
        int | None, typer.Option(min=1, help="Write 'ready' to this descriptor when listening.")
    ] = None,
) -> None:
    """Answer chat completions with scripted timing: no model, true to the clock.

    For trying and testing the completion probe. Runs until SIGTERM or Ctrl-C.
    """
    from pathbudget.agents.extras import require

    require("request", "h11")
    from pathbudget.agents.completions import process
    from pathbudget.agents.completions.script import Script, read_script
    from pathbudget.agents.completions.server import Serving

    serving = Serving(
        script=Script() if script is None else read_script(script),
        address=listen,
        port=port,
        tls=None if certificate is None else process.server_context(certificate, key),
        api_key="" if api_key_file is None else process.read_key(api_key_file),
    )
    served = process.serve(serving, ready_fd)
    if ready_fd is None:
        sys.stderr.write(_told(served))


def _told(served: "tuple[Served, ...]") -> str:
    tokens = sum(one.tokens for one in served)
    troubled = sum(bool(one.trouble) for one in served)
    return f"Stopped. {len(served)} answers, {tokens} tokens, {troubled} with trouble.\n"
