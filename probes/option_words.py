"""Words that options of several probes share, looked at before anything is opened."""

import ipaddress

from pathbudget.probes.contract import Options
from pathbudget.probes.errors import Fault


def source_faults(options: Options) -> list[Fault]:
    """Of the local address to leave from: whether it is one. Whose it is the opening tells."""
    source = str(options.get("source") or "")
    if not source:
        return []
    try:
        ipaddress.ip_address(source)
    except ValueError:
        expected = "an IPv4 or IPv6 address of this host"
        return [Fault("", "source", f"{source!r} is no address", expected)]
    return []
