"""`pathbudget doctor`: what this host can claim, and what would improve it."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors

if TYPE_CHECKING:
    from pathbudget.agents.doctor.examination import Examination


class DoctorFormat(StrEnum):
    """How the findings are written."""

    TABLE = "table"
    JSON = "json"


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command("doctor")(doctor)


@reports_errors
def doctor(
    output: Annotated[
        DoctorFormat, typer.Option("--format", help="A text to read, or JSON.")
    ] = DoctorFormat.TABLE,
    seconds: Annotated[
        float,
        typer.Option(min=0.2, max=600, help="How long to measure; half of it with a busy loop."),
    ] = 2.0,
) -> None:
    """Say how exact numbers from this host are, and what would improve them.

    Nothing leaves this host. `pathbudget capabilities` is the short form, without measuring.
    """
    from pathbudget.agents.doctor.advice import advice
    from pathbudget.agents.doctor.claims import claims
    from pathbudget.agents.doctor.show import as_text

    found = _examine(seconds)
    claimed, advised = claims(found), advice(found)
    if output is DoctorFormat.JSON:
        import msgspec

        whole = {"claims": claimed, "advice": advised, "examination": found}
        typer.echo(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode())
    else:
        typer.echo(as_text(found, claimed, advised))
    if not found.measured:
        raise fail("This host let us measure nothing.", ExitCode.NOTHING_MEASURED)


def _examine(seconds: float) -> "Examination":
    import asyncio

    from pathbudget.agents.doctor.examination import examine
    from pathbudget.probes.clock import SystemClock
    from pathbudget.probes.network import SystemNetwork

    network = SystemNetwork()
    try:
        return asyncio.run(examine(network, SystemClock(), seconds))
    except KeyboardInterrupt:
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None
    finally:
        network.close()
