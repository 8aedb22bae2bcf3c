"""`pathbudget collector`: results of a fleet into a store."""

from pathlib import Path
from typing import Annotated

import typer

from pathbudget.agents.cli.agent import MetricsOption
from pathbudget.agents.cli.exits import reports_errors, tell
from pathbudget.agents.cli.metrics_option import metrics_address
from pathbudget.agents.cli.telemetry_export import otlp_client

LoginOption = Annotated[
    Path, typer.Option("--login", help="Login file of a collector (`fleet serve` makes one).")
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder that results go to.")]

OtlpOption = Annotated[
    str,
    typer.Option("--otlp", metavar="URL", help="Send traces and metrics there (OTLP/HTTP), too."),
]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="collector")(collector)


@reports_errors
def collector(
    login: LoginOption,
    store: StoreOption = Path("pathbudget-store"),
    metrics: MetricsOption = "",
    otlp: OtlpOption = "",
) -> None:
    """Write what agents have measured from the bus into a store, until stopped.

    A result is acknowledged when it is on the disk, and taken from the bus then. Several collectors
    share the work, with one store or with one each. What cannot be a result is kept in
    STORE/rejected, and counted.
    """
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    require("fleet", "nats", "nkeys")
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.collector.running import run_collector

    watch = None
    if metrics or otlp:
        from pathbudget.agents.watch.collector import CollectorWatch

        client = otlp_client(otlp, "--otlp") if otlp else None
        watch = CollectorWatch(tell, metrics=metrics_address(metrics), otlp=client)
    run_collector(read_login(login), store, tell, watch)
