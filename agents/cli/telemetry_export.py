"""`pathbudget telemetry export STORE`: what is stored, to whoever takes OpenTelemetry."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.probes.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pathbudget.agents.watch.otlp_client import OtlpClient


class Signal(StrEnum):
    """What `--only` leaves."""

    TRACES = "traces"
    METRICS = "metrics"


@reports_errors
def export(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder with results.")],
    to: Annotated[
        str, typer.Option(metavar="URL", help="Receiver of OTLP/HTTP, without /v1/traces.")
    ] = "http://127.0.0.1:4318",
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Measured since: 2026-12-01T00:00:00Z, or 2h ago.")
    ] = "",
    campaign: Annotated[str, typer.Option(help="Of this campaign alone.")] = "",
    only: Annotated[Signal | None, typer.Option(help="Send these alone.")] = None,
    service: Annotated[str, typer.Option(help="What service.name says.")] = "pathbudget",
) -> None:
    """Send a trace for each request that was measured, and all distributions, by OTLP/HTTP.

    Spans are named after the steps: resolve, connect, tls_handshake, ttfb, upload, delivery_gap ...
    Exported again they have the same ids. Tokens go into OTEL_EXPORTER_OTLP_HEADERS.
    """
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    client = otlp_client(to, "--to")
    from pathbudget.agents.store.parquet import Store
    from pathbudget.agents.watch.otlp_export import Signals, export

    signals = Signals(only is not Signal.METRICS, only is not Signal.TRACES, service)
    found = Store(store).measurements(
        campaign=campaign or None, since_unix_ns=_since(since) if since else None
    )
    counts = export(found, client, signals)
    rejected = counts["spans_rejected"] + counts["points_rejected"]
    more = f"; {rejected:,} were rejected there" if rejected else ""
    tell(f"{counts['measurements']:,} measurements, {counts['spans']:,} spans sent to {to}{more}")
    if not counts["measurements"]:
        raise fail(f"{store}: nothing of that is there", ExitCode.NOTHING_MEASURED)


def otlp_client(url: str, option: str) -> "OtlpClient":
    """Raises ConfigError, and PathbudgetError where the library is not installed."""
    from pathbudget.agents.extras import require
    from pathbudget.agents.watch.otlp_client import OtlpClient, parse_endpoint

    require("telemetry", "opentelemetry", "google")
    try:
        return OtlpClient(parse_endpoint(url))
    except ValueError as error:
        expected = "like http://127.0.0.1:4318"
        raise ConfigError([Fault("command line", option, str(error), expected)]) from None


def _since(text: str) -> int:
    import datetime
    import time

    from pathbudget.agents.units import parse_duration_ns

    try:
        if text.endswith(" ago"):
            return time.time_ns() - parse_duration_ns(text.removesuffix(" ago"))
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise fail(f"--since: {text!r} is no time", ExitCode.USAGE) from None
    if moment.tzinfo is None:
        raise fail(f"--since: {text!r} has no zone: add Z", ExitCode.USAGE)
    return round(moment.timestamp() * 1e9)
