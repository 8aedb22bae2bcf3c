"""Names of the nodes for programs in a lab: ``NODE.lab`` by the hosts file, as in campaigns.

The process must be in a mount namespace of its own (`container.py`), so that nobody else sees it.
"""

import contextlib
import os
import tempfile
from pathlib import Path

from pathbudget.agents.lab.namespaces import mount
from pathbudget.agents.lab.session import LabSession

DOMAIN = ".lab"
HOSTS = Path("/etc/hosts")
_BIND = 0x1000


def hosts_text(before: str, lab: LabSession) -> str:
    """A hosts file in which the nodes come first."""
    lines = [
        f"{address} {name}{DOMAIN}\n"
        for name, node in lab.nodes.items()
        for address in (node.ipv4, node.ipv6)
    ]
    return "".join(lines) + before


def show_names(lab: LabSession, hosts: Path = HOSTS) -> None:
    """Lay a hosts file with the nodes over that of this mount namespace. Raises OSError."""
    before = hosts.read_text(errors="surrogateescape") if hosts.exists() else ""
    descriptor, name = tempfile.mkstemp(prefix="pathbudget-hosts-")
    try:
        with os.fdopen(descriptor, "w", errors="surrogateescape") as file:
            file.write(hosts_text(before, lab))
        Path(name).chmod(0o644)
        mount(os.fsencode(name), os.fsencode(hosts), None, _BIND)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()  # what is laid over the other stays
