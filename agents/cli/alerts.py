"""`pathbudget alerts`: tell people when a line is at risk, a route moves, an agent is silent."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors, tell
from pathbudget.agents.cli.measured_store import need_store
from pathbudget.agents.cli.options import DEFAULT_STORE
from pathbudget.agents.cli.store import SinceOption, UntilOption

if TYPE_CHECKING:
    from pathbudget.agents.alerts.message import Message
    from pathbudget.agents.alerts.rules_file import AlertPlan
    from pathbudget.agents.store.parquet import Store

RulesArgument = Annotated[Path, typer.Argument(metavar="RULES", help="The file of rules.")]
StoreOption = Annotated[Path, typer.Option("--store", metavar="DIR", help="The store.")]
LoginOption = Annotated[
    Path | None,
    typer.Option("--login", metavar="FILE", help="Login of the bus: heartbeats of a fleet."),
]
StateOption = Annotated[
    list[Path] | None,
    typer.Option("--state", metavar="DIR", help="State of an agent on this host; repeatable."),
]
MemoryOption = Annotated[
    Path | None,
    typer.Option("--memory", metavar="FILE", help="What outlasts a restart; default: by RULES."),
]
OnceOption = Annotated[bool, typer.Option("--once", help="One look, for cron.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Each message as one line of JSON.")]
ToOption = Annotated[
    list[str] | None, typer.Option("--to", metavar="NAME", help="Only this one; repeatable.")
]


def register(application: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Alerts by webhook, Alertmanager and e-mail.")
    commands.command(name="watch")(watch)
    commands.command(name="check")(check)
    commands.command(name="test")(try_receivers)
    commands.command(name="replay")(replay)
    application.add_typer(commands, name="alerts", no_args_is_help=True)


@reports_errors
def watch(
    rules: RulesArgument,
    store: StoreOption = DEFAULT_STORE,
    login: LoginOption = None,
    state: StateOption = None,
    memory: MemoryOption = None,
    once: OnceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Look at a store and at agents every so often, and tell the receivers what is news."""
    plan = _plan(rules)
    opened = _open(store)
    from pathbudget.agents.alerts import watching
    from pathbudget.agents.alerts.memory import memory_of
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.store.locks import exclusive

    if login is not None:
        from pathbudget.agents.extras import require

        require("fleet", "nats")
    kept = memory or memory_of(rules)
    places = watching.Places(kept, tuple(state or ()), None if login is None else read_login(login))
    busy = f"{kept}: another process watches with this memory"
    with exclusive(kept.with_name(f"{kept.name}.lock"), wait_s=0.0, busy=busy):
        watcher = watching.Watcher(
            plan, opened, places, time.time_ns(), say=tell, tell=_teller(as_json=as_json)
        )
        if not once:
            watching.watch(watcher, plan.every_ns, tell)
        elif not watching.look_once(watcher):
            raise typer.Exit(int(ExitCode.TROUBLE))


@reports_errors
def check(rules: RulesArgument) -> None:
    """Say whether a file of rules is right, and what it asks for; nothing is sent."""
    plan = _plan(rules)
    names = ", ".join(one.name for one in plan.receivers)
    for rule in plan.rules:
        typer.echo(f"{rule.name}  {rule.kind.replace('_', ' ')}, to {', '.join(rule.to) or names}")
    for receiver in plan.receivers:
        typer.echo(f"{receiver.name}  {type(receiver).__name__.lower()}")


@reports_errors
def try_receivers(rules: RulesArgument, to: ToOption = None) -> None:
    """Send a marked test alert to each receiver, and say what came back."""
    plan = _plan(rules)
    from pathbudget.agents.alerts.delivery import Receipt
    from pathbudget.agents.alerts.trying import tried

    names = [one.name for one in plan.receivers]
    if wrong := [one for one in to or () if one not in names]:
        message = f"unknown receiver {', '.join(wrong)}; known: {', '.join(names)}"
        raise fail(message, ExitCode.USAGE)
    asked = [one for one in plan.receivers if not to or one.name in to]
    trouble = False
    for receiver, answer in tried(asked, time.time_ns()):
        if isinstance(answer, Receipt):
            typer.echo(f"{receiver.name}: {answer.said}")
        else:
            trouble = True
            typer.echo(f"{receiver.name}: FAILED: {answer.why}")
    if trouble:
        raise typer.Exit(int(ExitCode.TROUBLE))


@reports_errors
def replay(
    rules: RulesArgument,
    store: StoreOption = DEFAULT_STORE,
    since: SinceOption = None,
    until: UntilOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what would have been told, and when, over what a store holds; nothing is sent."""
    plan = _plan(rules)
    opened = _open(store)
    from pathbudget.agents.alerts.replaying import Replay
    from pathbudget.analysis.report.words import counted, utc

    replayed, told = Replay(plan, opened, _unix_ns(since), _unix_ns(until)), 0
    say = _teller(as_json=as_json)
    for message in replayed.messages():
        say(message)
        told += 1
    if replayed.first_unix_ns is None:
        raise fail(f"{store}: nothing is in that time.", ExitCode.NOTHING_MEASURED)
    span = f"{utc(replayed.first_unix_ns)} to {utc(replayed.last_unix_ns)}"
    firing = len(replayed.alarm.firing())
    tell(f"{span}: {counted(replayed.looks, 'look')}, {counted(told, 'message')}, {firing} firing")


def _plan(rules: Path) -> "AlertPlan":
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    from pathbudget.agents.alerts.rules_file import load_rules

    return load_rules(rules)


def _open(folder: Path) -> "Store":
    from pathbudget.agents.extras import require

    need_store(folder)
    require("store", "pyarrow")
    from pathbudget.agents.store.parquet import Store

    return Store(folder)


def _teller(*, as_json: bool) -> Callable[["Message"], None]:
    """Prints messages as they come."""
    import msgspec

    from pathbudget.agents.alerts.message import text_of
    from pathbudget.analysis.report.words import utc

    def told(message: "Message") -> None:
        if as_json:
            typer.echo(msgspec.json.encode(message).decode())
        else:
            typer.echo(f"{utc(message.at_unix_ns)}  {text_of(message).rstrip()}\n")

    return told


def _unix_ns(at: datetime | None) -> int | None:
    """A time of the command line is UTC."""
    return None if at is None else int(at.replace(tzinfo=UTC).timestamp()) * 1_000_000_000
