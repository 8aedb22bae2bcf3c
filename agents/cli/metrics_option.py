"""`--metrics HOST:PORT`, of everything that Prometheus can ask."""

from typing import TYPE_CHECKING

from pathbudget.probes.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pathbudget.agents.watch.endpoint import Listening

LARGEST_PORT = 65_535


def metrics_address(text: str) -> "Listening | None":
    """Where to listen: ``127.0.0.1:9477``, ``[::1]:9477``, ``9477`` (of loopback); None: nowhere.

    Raises ConfigError, and PathbudgetError where the library is not installed.
    """
    from pathbudget.agents.extras import require
    from pathbudget.agents.watch.endpoint import Listening

    if not text:
        return None
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) <= LARGEST_PORT):
        expected = "an address and a port, like 127.0.0.1:9477 or [::1]:9477"
        raise ConfigError([Fault("command line", "--metrics", f"{text!r}", expected)])
    require("watch", "prometheus_client")
    return Listening(host, int(port))
