"""`pathbudget fleet serve|cluster|demo`: where agents, collectors and operators meet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell

if TYPE_CHECKING:
    from pathbudget.agents.fleet.folder import Folder, Settings

FOLDER = Path("pathbudget-fleet")
HOST = "127.0.0.1"
FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Everything of the fleet.")]
ListenOption = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="First: 127.0.0.1:4222; later: as before."),
]
NamesOption = Annotated[
    list[str] | None,
    typer.Option("--name", help="How agents reach it: host name or address; may be repeated."),
]
ResultsOption = Annotated[
    int | None,
    typer.Option(
        "--results-bytes",
        min=1 << 20,
        max=1 << 46,
        help="Room for results without a collector. First: 10 GiB or half of what is free.",
    ),
]
CollectorOption = Annotated[
    bool, typer.Option("--collector/--no-collector", help="Write results to FOLDER/store, too.")
]
AfterOption = Annotated[
    Path | None,
    typer.Option("--after-change", help="Program to run with users.conf when users change."),
]
HostsArgument = Annotated[
    list[str], typer.Argument(metavar="HOST[:PORT[:ROUTE_PORT]]...", help="Three servers.")
]
OutOption = Annotated[Path, typer.Option("--out", help="New folder of the fleet.")]


def register(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (serve, demo, cluster):
        group.command(name=command.__name__)(command)


@reports_errors
def serve(
    folder: FolderArgument = FOLDER,
    listen: ListenOption = None,
    name: NamesOption = None,
    results_bytes: ResultsOption = None,
    collector: CollectorOption = True,
    after_change: AfterOption = None,
) -> None:
    """Run the server's side of a fleet until stopped: nats-server, registrar, collector.

    Makes FOLDER at the first time: authority, certificate, logins. Back it up, and keep it secret.
    """
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.folder import Folder
    from pathbudget.agents.fleet.server_process import find_server
    from pathbudget.agents.fleet.serving import Wish
    from pathbudget.agents.fleet.serving import serve as serve_folder

    require("fleet", "cryptography", "nats", "nkeys")
    fleet = Folder(folder)
    settings = _settings(fleet, listen, name or [], results_bytes)
    if not settings.nodes:
        find_server()  # before anything is made
    fleet.prepare(settings)
    serve_folder(fleet, Wish(collector, after_change), tell)


def _settings(
    fleet: "Folder", listen: str | None, names: list[str], results: int | None
) -> "Settings":
    """Those of before, with what the command line says."""
    import msgspec

    from pathbudget.agents.fleet.choosing import chosen_results, chosen_server
    from pathbudget.agents.fleet.folder import Settings

    before = fleet.settings() if fleet.exists() else None
    octets = results or (before.results_octets if before else chosen_results(fleet.path))
    if before is not None and before.nodes:
        if listen or names:
            raise fail(
                "--listen and --name: the servers of a cluster are elsewhere", ExitCode.USAGE
            )
        return msgspec.structs.replace(before, results_octets=octets)
    host, port, reached = chosen_server(before, listen, names)
    return Settings(host, port, reached, octets)


@reports_errors
def demo(folder: FolderArgument = FOLDER, listen: ListenOption = None) -> None:
    """Run a fleet of two agents on this machine until stopped, to look at.

    Server, collector, two agents of two regions, two sites on loopback. What it did, and would be
    done by hand for hosts elsewhere, is under FOLDER/demo.
    """
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.choosing import chosen_port
    from pathbudget.agents.fleet.demo import REGIONS
    from pathbudget.agents.fleet.demo import demo as sites
    from pathbudget.agents.fleet.folder import Folder
    from pathbudget.agents.fleet.server_process import find_server
    from pathbudget.agents.fleet.serving import Wish
    from pathbudget.agents.fleet.serving import serve as serve_folder

    require("fleet", "cryptography", "nats", "nkeys")
    require("store", "pyarrow")
    find_server()
    fleet = Folder(folder)
    if listen is None and not fleet.exists():
        listen = f"{HOST}:{chosen_port(HOST)}"
    fleet.prepare(_settings(fleet, listen, [], None))
    with sites(fleet) as made:
        tell(
            f"Agents: {', '.join(REGIONS)}. Look: pathbudget status --login {folder}/operator.toml"
        )
        serve_folder(fleet, Wish(more=lambda: made.agents(tell)), tell)


@reports_errors
def cluster(host: HostsArgument, out: OutOption) -> None:
    """Write a fleet whose bus is a cluster of three servers: a folder for each, ready to start.

    `pathbudget fleet serve OUT` then runs registrar and collector, and the streams have three
    copies: any one server may fail.
    """
    from pathbudget.agents.extras import require
    from pathbudget.agents.fleet.choosing import chosen_nodes, chosen_results
    from pathbudget.agents.fleet.cluster import write_cluster

    require("fleet", "cryptography", "nkeys")
    for line in write_cluster(out, chosen_nodes(host), chosen_results(out)):
        typer.echo(line)
