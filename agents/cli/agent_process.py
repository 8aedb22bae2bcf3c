"""The agent in a process without the command line: what parses it takes 15 MB, for months.

`pathbudget agent` reads its options and becomes this program, with the same process id (exec), so
a service manager, a terminal and a supervisor see one process. python -m ... is not for people.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from pathbudget.agents.cli.duration_option import duration_within
from pathbudget.agents.cli.exits import ExitCode, reports_errors, tell
from pathbudget.agents.cli.metrics_option import metrics_address
from pathbudget.agents.spool.bounds import Bounds, DropPolicy
from pathbudget.probes.scheduling import RealTime

if TYPE_CHECKING:
    from pathbudget.agents.daemon.delivery import Uplink
    from pathbudget.agents.daemon.running import Companion

MODULE = "pathbudget.agents.cli.agent_process"
SHORTEST_AGE_NS, LONGEST_AGE_NS = 60_000_000_000, 100 * 365 * 86_400_000_000_000


class AgentOptions(msgspec.Struct, frozen=True):
    """What was typed. See `agents/cli/agent.py` for each."""

    plan: str | None
    login: str | None
    trust: str | None
    policy: str | None
    state: str
    store: str | None
    agent: str
    spool_bytes: int
    spool_age: str
    drop: DropPolicy
    realtime: RealTime
    metrics: str


def become_agent(options: AgentOptions) -> None:
    """Does not return."""
    environment = {**os.environ, "PYTHONPATH": import_path()}
    command = [sys.executable, "-P", "-m", MODULE, msgspec.json.encode(options).decode()]
    os.execve(sys.executable, command, environment)  # noqa: S606


def import_path() -> str:
    """Where this process finds its modules, for one that it starts (a bundle is elsewhere)."""
    return os.pathsep.join(path for path in sys.path if path)


@reports_errors
def carry_out(options: AgentOptions) -> None:
    """Run the agent until it is stopped."""
    from pathbudget.agents.daemon.running import AgentWish, run_agent

    limits = SHORTEST_AGE_NS, LONGEST_AGE_NS
    age_ns = duration_within(options.spool_age, "--spool-age", *limits)
    wish = AgentWish(
        plan=_path(options.plan),
        state=Path(options.state),
        agent=options.agent,
        trust=_path(options.trust),
        policy=_path(options.policy),
        bounds=Bounds(options.spool_bytes, age_ns, options.drop),
        realtime=options.realtime,
        metrics=metrics_address(options.metrics),
    )
    fleet = None if options.login is None else _member(Path(options.login), wish.state)
    to_store = options.store is not None or fleet is None
    store = Path(options.store or "pathbudget-store")
    run_agent(wish, _store_uplink(store) if to_store else None, tell, fleet)


def _store_uplink(store: Path) -> "Uplink":
    from pathbudget.agents.daemon.store_uplink import StoreUplink
    from pathbudget.agents.extras import require

    require("store", "pyarrow")
    from pathbudget.agents.store.layout import Layout

    Layout(store).check_writable()
    return StoreUplink(store)


def _member(login: Path, state: Path) -> "Companion":
    from pathbudget.agents.extras import require

    require("fleet", "cryptography", "nats", "nkeys")
    from pathbudget.agents.bus.login import read_login
    from pathbudget.agents.bus.member import Member

    return Member(read_login(login), state=state, say=tell)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def main() -> None:
    """Exit codes as those of the command."""
    try:
        carry_out(msgspec.json.decode(sys.argv[1], type=AgentOptions))
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except KeyboardInterrupt:  # before there was a loop to hear it
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
