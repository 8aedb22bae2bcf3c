"""`pathbudget check HOST...`: a quick look from this machine, no files needed."""

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathbudget.agents.quick.hosts import CheckedHost, Place
    from pathbudget.analysis.results import Evaluation
    from pathbudget.probes.record import Measurement

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
CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="PEM",
        help="Authorities to trust instead of the system's.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON.")]
DurationOption = Annotated[
    str | None,
    typer.Option("--duration", "-w", help="4.5s to 10m. Default: 5s, up to 15s while undecided."),
]
MOST_HOSTS = 8
SHORTEST_NS, LONGEST_NS = 4_500_000_000, 600_000_000_000


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="check")(check)


@reports_errors
def check(
    hosts: HostsArgument,
    place: FromOption = None,
    duration: DurationOption = None,
    port: PortOption = 443,
    ipv4: FourOption = False,
    ipv6: SixOption = False,
    insecure: InsecureOption = False,
    ca_file: CaFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resolve, ICMP, TCP, TLS and QUIC in every mode: what the network leaves of each tier.

    Takes some five seconds, and up to 15 while more samples may decide a verdict. PLACE is a
    shipped place (dallas) or LATITUDE,LONGITUDE.
    """
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    if ipv4 and ipv6:
        raise fail("--ipv4 and --ipv6 exclude each other; leave both out.", ExitCode.USAGE)
    if len(set(hosts)) > MOST_HOSTS:
        raise fail(f"At most {MOST_HOSTS} hosts at a time; use a campaign.", ExitCode.USAGE)
    duration_ns = _duration(duration) if duration else None

    from pathbudget.agents.quick.hosts import parse_host, parse_place
    from pathbudget.agents.quick.look import Trust, look
    from pathbudget.agents.quick.open_verdicts import more_would_help
    from pathbudget.probes.record import AddressFamily

    checked = [parse_host(text, port) for text in dict.fromkeys(hosts)]
    here = parse_place(place, "--from") if place else None
    # Without a duration it looks again and again until it is decided.
    evaluation_of = functools.partial(
        _evaluation, hosts=checked, here=here, always_valid=duration_ns is None
    )
    began_s = time.monotonic()
    looked = look(
        checked,
        family=AddressFamily.IPV4 if ipv4 else AddressFamily.IPV6 if ipv6 else None,
        trust=Trust(verify=not insecure, ca_file=str(ca_file.resolve()) if ca_file else ""),
        duration_ns=duration_ns,
        decided=lambda found: not more_would_help(evaluation_of(found)),
    )
    lasted_s = duration_ns / 1e9 if duration_ns else time.monotonic() - began_s
    for problem in [*looked.problems, *looked.unsent.values()]:
        tell(problem)
    evaluation = evaluation_of(looked.measurements)
    if as_json:
        from pathbudget.analysis.report.json_report import render_json

        typer.echo(render_json(evaluation))
    else:
        shown = [host.text for host in checked if host.text not in looked.unsent]
        _show(evaluation, shown, lasted_s)
    samples = (sample for one in looked.measurements for sample in one.samples)
    if looked.measurements and not any(sample.failure is None for sample in samples):
        raise fail("Not one probe was answered.", ExitCode.NOTHING_MEASURED)
    if not looked.measurements:
        raise typer.Exit(int(ExitCode.NOTHING_MEASURED))


def _duration(text: str) -> int:
    from pathbudget.agents.units import parse_duration_ns

    try:
        found = parse_duration_ns(text)
    except ValueError as error:
        raise fail(f"--duration: {error}", ExitCode.USAGE) from None
    if not SHORTEST_NS <= found <= LONGEST_NS:
        message = f"--duration: {text} is not from 4.5s to 10m; a campaign may last longer"
        raise fail(message, ExitCode.USAGE)
    return found


def _evaluation(
    measurements: "Sequence[Measurement]",
    hosts: "Sequence[CheckedHost]",
    here: "Place | None",
    *,
    always_valid: bool,
) -> "Evaluation":
    from pathbudget.agents.quick.look import places_as_catalogue
    from pathbudget.analysis.evaluate import EvaluationOptions, evaluate

    options = EvaluationOptions(
        title="pathbudget check", generated_unix_ns=time.time_ns(), always_valid=always_valid
    )
    return evaluate(measurements, places_as_catalogue(hosts, here), options)


def _show(evaluation: "Evaluation", hosts: "Sequence[str]", lasted_s: float) -> None:
    from rich.console import Console

    from pathbudget.agents.quick.open_verdicts import advice
    from pathbudget.agents.quick.show import show

    # Neither [fe80::1]:443 is markup, nor the :cd: of an IPv6 address an emoji.
    console = Console(markup=False, emoji=False)
    show(evaluation, hosts, console)
    if evaluation.provenance.always_valid:
        console.print("Intervals of tiers hold at every look: it was measured until decided.")
    sentence = advice(evaluation, hosts, lasted_s)
    if sentence:
        console.print(sentence, highlight=False)
