"""Taking a bundle off hosts again."""

import asyncio
import json
from collections.abc import Iterable

from pathbudget.agents.ssh import host_scripts
from pathbudget.agents.ssh.bundle import Bundle
from pathbudget.agents.ssh.connecting import connected
from pathbudget.agents.ssh.hosts_file import Host
from pathbudget.agents.ssh.remote_host import looked_at, run
from pathbudget.probes.errors import HostError


async def remove_bundles(hosts: Iterable[Host], bundle: Bundle) -> list[str]:
    """From all of them at once. What did not go, in sentences."""
    said = await asyncio.gather(*(_remove(host, bundle) for host in hosts))
    return [one for one in said if one]


async def _remove(host: Host, bundle: Bundle) -> str:
    try:
        async with connected(host) as connection:
            remote = await looked_at(connection, host, bundle)
            command = host_scripts.command(remote.python, host.bundles, host.runs)
            answer = await run(connection, host, command, host_scripts.REMOVE)
    except HostError as error:
        return f"the bundle stays: {error}"
    left = json.loads(answer)["left"]
    return (
        f"{host.vantage}: the bundle stays; results wait there: {', '.join(left)}" if left else ""
    )
