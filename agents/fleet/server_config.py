"""The configuration of nats-server, for one machine and for each node of a cluster."""

from pathlib import Path

import msgspec

from pathbudget.agents.bus.subjects import MOST_OCTETS
from pathbudget.agents.fleet.folder import Node, bracketed
from pathbudget.agents.fleet.reload import PID_FILE
from pathbudget.agents.fleet.users import quoted

LOG_FILE = "nats-server.log"
LARGEST_LOG = 20 << 20
BUCKETS_OCTETS = 2 << 30
"""Room for plans and heartbeats, beside that for results."""
TLS_S = 5
"""For a handshake, within which one who only holds a connection open is cut off."""
AUTHORIZATION_S = 5


class Listener(msgspec.Struct, frozen=True):
    """What differs from server to server. Paths are absolute, or relative to where it is started;
    `users` is relative to the configuration (nats-server puts that folder before it anyway).
    """

    name: str
    host: str
    port: int
    folder: str
    """For JetStream, the log and the pid."""
    users: str
    certificate: str
    key: str


def server_text(one: Listener, results_octets: int) -> str:
    """Of a single server. Nobody enters without a key: there is no user that is nobody."""
    return f"""# Written by `pathbudget fleet`; what is changed here by hand is lost.
server_name: {quoted(one.name)}
listen: {quoted(f"{bracketed(one.host)}:{one.port}")}
pid_file: {quoted(_under(one.folder, PID_FILE))}
log_file: {quoted(_under(one.folder, LOG_FILE))}
logfile_size_limit: {LARGEST_LOG}
max_payload: {MOST_OCTETS}
max_control_line: 4096
max_subscriptions: 1000
write_deadline: "10s"
jetstream {{
  store_dir: {quoted(_under(one.folder, "jetstream"))}
  max_memory_store: 0
  max_file_store: {results_octets + BUCKETS_OCTETS}
}}
tls {{
  cert_file: {quoted(one.certificate)}
  key_file: {quoted(one.key)}
  timeout: {TLS_S}
}}
authorization {{ timeout: {AUTHORIZATION_S} }}
include {quoted(one.users)}
"""


def cluster_text(
    me: Node, nodes: tuple[Node, ...], one: Listener, authority: str, password: str
) -> str:
    """The part that makes a node out of a server: routes with TLS of both sides, and a password.

    Clients are not told of the other nodes: they know them from their login, by the names that are
    in the certificates.
    """
    routes = "\n".join(
        f"    {quoted(f'nats-route://route:{password}@{bracketed(node.host)}:{node.route_port}')}"
        for node in nodes
        if node != me
    )
    return f"""cluster {{
  name: "pathbudget"
  listen: {quoted(f"{bracketed(one.host)}:{me.route_port}")}
  no_advertise: true
  authorization {{ user: "route", password: {quoted(password)}, timeout: {AUTHORIZATION_S} }}
  tls {{
    cert_file: {quoted(one.certificate)}
    key_file: {quoted(one.key)}
    ca_file: {quoted(authority)}
    verify: true
    timeout: {TLS_S}
  }}
  routes: [
{routes}
  ]
}}
"""


def _under(folder: str, name: str) -> str:
    return str(Path(folder) / name)
