"""`pathbudget ping HOST...`: many hosts at once, live, as smoke."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.traffic_class import traffic_class
from pathbudget.agents.dscp import FORM

if TYPE_CHECKING:
    from pathbudget.agents.ping.load import Load
    from pathbudget.agents.ping.options import PingOptions
    from pathbudget.agents.ping.session import Session
    from pathbudget.probes.record import AddressFamily


class ProbeChoice(StrEnum):
    """What is sent."""

    ICMP = "icmp"
    TCP = "tcp"
    STAMP = "stamp"


class ScheduleChoice(StrEnum):
    """How the gaps between sends are drawn."""

    PERIODIC = "periodic"
    POISSON = "poisson"


HostsArgument = Annotated[
    list[str],
    typer.Argument(metavar="HOST[:PORT]...", help="Hosts; the port is for tcp and stamp."),
]
ProbeOption = Annotated[
    ProbeChoice | None,
    typer.Option("--probe", help="Default: icmp, or tcp where ICMP is not permitted."),
]
StampOption = Annotated[
    int | None,
    typer.Option("--stamp", metavar="PORT", min=1, max=65535, help="Ask a reflector there too."),
]
CountOption = Annotated[
    int | None,
    typer.Option("--count", "-c", min=1, help="Sends to each host (poisson: on average)."),
]
DurationOption = Annotated[
    str | None, typer.Option("--duration", "-w", help="Default: until Ctrl-C.")
]
IntervalOption = Annotated[
    str, typer.Option("--interval", "-i", help="Between sends to one host; 10ms or more.")
]
ScheduleOption = Annotated[ScheduleChoice, typer.Option("--schedule", help="Gaps between sends.")]
TimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", help="Lost after this: 1s, or 500ms at --interval 100ms or less."),
]
SizeOption = Annotated[
    int | None, typer.Option("--size", "-s", min=16, help="Payload of a packet in octets.")
]
DscpOption = Annotated[
    int | None,
    typer.Option("--dscp", parser=traffic_class, metavar="CLASS", help=f"Traffic class: {FORM}."),
]
InterfaceOption = Annotated[
    str | None, typer.Option("--interface", "-I", help="Device or VRF to leave through.")
]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="ADDRESS", help="Local address to send from.")
]
FlowsOption = Annotated[
    int | None,
    typer.Option("--flows", min=2, max=64, help="Flows that ECMP may part; shows their spread."),
]
TrainOption = Annotated[
    int, typer.Option("--train", min=1, max=100, help="Packets back to back at each send.")
]
KeyFileOption = Annotated[
    str | None, typer.Option("--key-file", help="Shared keys of the reflector (ID HEX a line).")
]
KeyIdOption = Annotated[str | None, typer.Option("--key-id", help="Which key of that file.")]
FourOption = Annotated[bool, typer.Option("--ipv4", "-4", help="IPv4 only.")]
SixOption = Annotated[bool, typer.Option("--ipv6", "-6", help="IPv6 only.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON lines: samples, outages, sums.")]
EveryOption = Annotated[
    str, typer.Option("--every", help="Time between lines where stdout is no terminal.")
]
LoadOption = Annotated[
    str | None,
    typer.Option("--load", metavar="RATE", help="Own traffic to the reflector, as in 10mbit."),
]
LoadForOption = Annotated[
    str, typer.Option("--load-for", help="Time under load in all, at most 60s.")
]
RateOption = Annotated[
    int, typer.Option("--max-rate", min=1, help="Packets sent per second, all hosts together.")
]


def register(application: typer.Typer) -> None:
    """Add the command."""
    application.command(name="ping")(ping)


@reports_errors
def ping(
    hosts: HostsArgument,
    probe: ProbeOption = None,
    stamp: StampOption = None,
    interval: IntervalOption = "1s",
    count: CountOption = None,
    duration: DurationOption = None,
    schedule: ScheduleOption = ScheduleChoice.PERIODIC,
    timeout: TimeoutOption = None,
    size: SizeOption = None,
    dscp: DscpOption = None,
    source: SourceOption = None,
    interface: InterfaceOption = None,
    flows: FlowsOption = None,
    train: TrainOption = 1,
    key_file: KeyFileOption = None,
    key_id: KeyIdOption = None,
    ipv4: FourOption = False,
    ipv6: SixOption = False,
    as_json: JsonOption = False,
    every: EveryOption = "10s",
    load: LoadOption = None,
    load_for: LoadForOption = "30s",
    max_rate: RateOption = 2000,
) -> None:
    """Round trips of many hosts, live: distributions as smoke over time, loss, PDV, outages.

    Ctrl-C ends it and prints a table. With a reflector (--stamp) each direction by itself.
    """
    from pathbudget.agents.campaign.schedule import ScheduleKind
    from pathbudget.agents.ping.hosts import parse_ping_host
    from pathbudget.agents.ping.options import PingOptions, check

    if ipv4 and ipv6:
        raise fail("--ipv4 and --ipv6 exclude each other; leave both out.", ExitCode.USAGE)
    options = PingOptions(
        hosts=[parse_ping_host(text) for text in dict.fromkeys(hosts)],
        probe=probe.value if probe else "",
        stamp=stamp,
        family=family_of(source, ipv4=ipv4, ipv6=ipv6),
        interval_ns=duration_of("--interval", interval),
        schedule=ScheduleKind(schedule.value),
        timeout_ns=duration_of("--timeout", timeout) if timeout else None,
        count=count,
        duration_ns=duration_of("--duration", duration) if duration else None,
        size=size,
        dscp=dscp,
        interface=interface,
        source=source,
        flows=flows,
        train=train,
        key_file=key_file,
        key_id=key_id,
        most_per_second=max_rate,
        load=_load(load, load_for),
    )
    check(options)
    _measure(options, every_ns=duration_of("--every", every), as_json=as_json)


def _measure(options: "PingOptions", *, every_ns: int, as_json: bool) -> None:
    from pathbudget.agents.ping.command import run_json, run_text

    session = run_json(options) if as_json else run_text(options, every_ns)
    _end(session, options)


def _end(session: "Session", options: "PingOptions") -> None:
    """Ctrl-C is how a run without end ends; one with an end was cut short by it."""
    for problem in session.problems:
        typer.echo(problem, err=True)
    if session.trouble:
        raise fail(session.trouble, ExitCode.TROUBLE)
    if not session.answered:
        raise fail("Not one packet was answered.", ExitCode.NOTHING_MEASURED)
    if session.interrupted and options.lasts_ns is not None:
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def duration_of(option: str, text: str) -> int:
    """What an option says, in nanoseconds; exits with a message where it is no time at all."""
    from pathbudget.agents.units import parse_duration_ns

    try:
        found = parse_duration_ns(text)
    except ValueError as error:
        raise fail(f"{option}: {error}", ExitCode.USAGE) from None
    if found <= 0:
        raise fail(f"{option}: {text} is no time at all", ExitCode.USAGE)
    return found


def _load(rate: str | None, lasts: str) -> "Load | None":
    from pathbudget.agents.ping.load import LONGEST_NS, Load, parse_rate

    if rate is None:
        return None
    lasts_ns = duration_of("--load-for", lasts)
    if lasts_ns > LONGEST_NS:
        raise fail(f"--load-for: {lasts} is longer than 60s", ExitCode.USAGE)
    try:
        return Load(parse_rate(rate), lasts_ns)
    except ValueError as error:
        raise fail(f"--load: {error}", ExitCode.USAGE) from None


def family_of(source: str | None, *, ipv4: bool, ipv6: bool) -> "AddressFamily | None":
    """Asked for, or that of the address to send from."""
    from pathbudget.agents.campaign.epochs import literal_family
    from pathbudget.probes.record import AddressFamily

    wanted = AddressFamily.IPV4 if ipv4 else AddressFamily.IPV6 if ipv6 else None
    if source is None:
        return wanted
    found = literal_family(source)
    if found is None or (wanted is not None and found is not wanted):
        raise fail(f"--source: {source} is no address of that family", ExitCode.USAGE)
    return found
