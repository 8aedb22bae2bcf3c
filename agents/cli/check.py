"""`pathbudget check HOST...`: a quick look from this machine, no files needed."""

import time
from typing import Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors

HostsArgument = Annotated[
    list[str], typer.Argument(metavar="HOST[:PORT][@PLACE]...", help="Hosts to look at.")
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="PLACE", help="Where this machine is: name or LAT,LON."),
]
PortOption = Annotated[int, typer.Option("--port", help="Port of TCP and TLS.", min=1, max=65535)]
FourOption = Annotated[bool, typer.Option("--ipv4", "-4", help="IPv4 only.")]
SixOption = Annotated[bool, typer.Option("--ipv6", "-6", help="IPv6 only.")]
InsecureOption = Annotated[
    bool, typer.Option("--insecure", help="Do not verify certificates (samples are marked).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON.")]
MOST_HOSTS = 8


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="check")(check)


@reports_errors
def check(
    hosts: HostsArgument,
    place: FromOption = None,
    port: PortOption = 443,
    ipv4: FourOption = False,
    ipv6: SixOption = False,
    insecure: InsecureOption = False,
    as_json: JsonOption = False,
) -> None:
    """Resolve, ICMP, TCP, TLS full and resumed: what the network leaves of each tier.

    Takes under ten seconds. PLACE is a shipped place (dallas) or LATITUDE,LONGITUDE.
    """
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    if ipv4 and ipv6:
        raise fail("--ipv4 and --ipv6 exclude each other; leave both out.", ExitCode.USAGE)
    if len(set(hosts)) > MOST_HOSTS:
        raise fail(f"At most {MOST_HOSTS} hosts at a time; use a campaign.", ExitCode.USAGE)
    from rich.console import Console

    from pathbudget.agents.quick.hosts import parse_host, parse_place
    from pathbudget.agents.quick.look import look, places_as_catalogue
    from pathbudget.agents.quick.show import show
    from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
    from pathbudget.probes.record import AddressFamily

    checked = [parse_host(text, port) for text in dict.fromkeys(hosts)]
    here = parse_place(place, "--from") if place else None
    family = AddressFamily.IPV4 if ipv4 else AddressFamily.IPV6 if ipv6 else None
    measurements, problems = look(checked, family=family, verify=not insecure)
    for problem in problems:
        typer.echo(problem, err=True)
    options = EvaluationOptions(title="pathbudget check", generated_unix_ns=time.time_ns())
    evaluation = evaluate(measurements, places_as_catalogue(checked, here), options)
    if as_json:
        from pathbudget.analysis.report.json_report import render_json

        typer.echo(render_json(evaluation))
    else:
        # Neither [fe80::1]:443 is markup, nor the :cd: of an IPv6 address an emoji.
        console = Console(markup=False, emoji=False)
        show(evaluation, [host.text for host in checked], console)
    if not any(sample.failure is None for one in measurements for sample in one.samples):
        raise fail("Not one probe was answered.", ExitCode.NOTHING_MEASURED)
