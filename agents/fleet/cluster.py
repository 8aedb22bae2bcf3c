"""A bus of three servers: a folder for each of them, made from one fleet's folder."""

import secrets
import shlex
from collections.abc import Iterator
from pathlib import Path

from pathbudget.agents.fleet.authority import Authority
from pathbudget.agents.fleet.files import PUBLIC, fault, write
from pathbudget.agents.fleet.folder import NODES, Folder, Node, Settings
from pathbudget.agents.fleet.reload import CONFIGURATION
from pathbudget.agents.fleet.server_config import Listener, cluster_text, server_text

CARRY = "carry-users"
ON_NODES = "/etc/pathbudget-fleet"


def write_cluster(path: Path, nodes: tuple[Node, ...], results_octets: int) -> Iterator[str]:
    """Make the folder; say line by line what is to be done with it. Raises ConfigError."""
    folder = Folder(path)
    if folder.exists():
        raise fault(path, "has a fleet already", "a new folder")
    folder.prepare(Settings(results_octets=results_octets, nodes=nodes))
    password = secrets.token_hex(32)
    for node in nodes:
        place = path / NODES / node.name
        _write_node(place, node, nodes, folder, password)
        yield f"{place}  to {node.host}:{ON_NODES}, then: nats-server -c {CONFIGURATION} (there)"
    write(path / CARRY, _carry_text(nodes).encode(), 0o700)
    yield f"{path / CARRY}  an example of what carries users.conf to the servers; edit it"
    yield f"pathbudget fleet serve {path} --after-change {path / CARRY}"


def _write_node(
    place: Path, node: Node, nodes: tuple[Node, ...], folder: Folder, password: str
) -> None:
    """Everything that one server needs; its paths are relative to where it lies."""
    settings = folder.settings()
    listener = Listener(
        name=node.name,
        host=_listening(node.host),
        port=node.port,
        folder=".",
        users=folder.users.name,
        certificate="server.pem",
        key="server.key",
    )
    text = server_text(listener, settings.results_octets)
    text += cluster_text(node, nodes, listener, "ca.pem", password)
    write(place / CONFIGURATION, text.encode())
    write(place / "ca.pem", Authority(folder.path / "tls").certificate.read_bytes(), PUBLIC)
    write(place / folder.users.name, folder.users.read_bytes())


def _listening(host: str) -> str:
    """Loopback where the server is reached there; everywhere else."""
    if host in ("localhost", "::1") or host.startswith("127."):
        return host
    return "::" if ":" in host else "0.0.0.0"  # noqa: S104


def _carry_text(nodes: tuple[Node, ...]) -> str:
    """A shell script over SSH: whole files, a rename, and a reload."""
    hosts = " ".join(dict.fromkeys(shlex.quote(node.host) for node in nodes))
    return f"""#!/bin/sh
# Carries users.conf ($1) to each server of the cluster, and has it read there. A server that is
# away fails the whole, and `pathbudget fleet serve` tries again.
set -e
for host in {hosts}; do
    scp -q "$1" "$host:{ON_NODES}/.users.conf.new"
    ssh "$host" 'cd {ON_NODES} && mv .users.conf.new users.conf && systemctl reload nats-server'
done
"""
