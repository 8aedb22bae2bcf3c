"""`pathbudget capabilities`: what this host lets us measure with."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import reports_errors

if TYPE_CHECKING:
    from pathbudget.probes.capabilities import Capability


class CapabilityFormat(StrEnum):
    """How the report is written."""

    TABLE = "table"
    JSON = "json"


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command("capabilities")(capabilities)


@reports_errors
def capabilities(
    output: Annotated[
        CapabilityFormat, typer.Option("--format", help="A table to read, or JSON.")
    ] = CapabilityFormat.TABLE,
) -> None:
    """Say what this host can measure with, what it cannot, and what would help."""
    from pathbudget.probes.capabilities import report

    found = report()
    text = _as_json(found) if output is CapabilityFormat.JSON else _as_table(found)
    typer.echo(text)


def _as_json(found: "tuple[Capability, ...]") -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def _as_table(found: "tuple[Capability, ...]") -> str:
    """Two columns of words and one of reasons, 80 wide; the remedies under the table."""
    lines = [f"{one.name:24}{'yes' if one.available else 'no':5}{one.reason}" for one in found]
    remedies = list(dict.fromkeys(one.remedy for one in found if one.remedy))
    if remedies:
        lines += ["", "What would help:", *(f"  {remedy}" for remedy in remedies)]
    if not any(one.available for one in found if one.name.startswith("ICMP")):
        lines += ["", "Without one of the ICMP sockets there is no echo probe; tcp and tls work."]
    return "\n".join(lines)
