"""A whole run on hosts: hosts file, bundle, channels and progress around `campaign.execute`."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pathbudget.agents.campaign.execute import Outcome, execute
from pathbudget.agents.campaign.run_state import RunState
from pathbudget.agents.extras import require
from pathbudget.agents.ssh.host_lines import HostLines
from pathbudget.agents.ssh.hosts_file import load_hosts
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.scheduling import RealTime


def execute_on_hosts(
    state: RunState,
    hosts_file: Path,
    store: Store,
    say: Callable[[str], None],
    *,
    realtime: RealTime = RealTime.AUTO,
    remove_bundle: bool = False,
    shown: bool = True,
) -> Outcome:
    """As `campaign.execute.execute`, each vantage on its host.

    Raises ConfigError, or HostError with a sentence for each host that cannot take part; nothing
    was sent then.
    """
    hosts = load_hosts(hosts_file)
    wanted = hosts.of([one.vantage.name for one in state.plan.vantages], state.campaign_file)
    require("ssh", "asyncssh")
    from pathbudget.agents.ssh.bundle import campaign_bundle
    from pathbudget.agents.ssh.channel import SshChannels
    from pathbudget.agents.ssh.removing import remove_bundles

    wanted = {name: replace(host, sudo=False) for name, host in wanted.items()}
    kinds = {series.kind for vantage in state.plan.vantages for series in vantage.series}
    bundle = campaign_bundle(kinds)
    with HostLines(state.plan, shown=shown, say=say) as lines:
        channels = SshChannels(wanted, bundle, hosts.give_up_ns, lines.changed)
        outcome = execute(state, store, lines.update, realtime, channels)
    if remove_bundle:
        outcome.problems += asyncio.run(remove_bundles(wanted.values(), bundle))
    return outcome
