"""What a person types about servers, made sure of: addresses, names, room."""

import ipaddress
import os
import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from pathbudget.agents.fleet.folder import CLIENT_PORT, Node, Settings, bracketed
from pathbudget.probes.errors import ConfigError, Fault

MOST_RESULTS = 10 << 30
ROUTES_ABOVE = 2000
PORTS_TRIED = 100
NODES = 3
"""One may fail. Two could not agree who is alone; more cost more and keep no more."""
COMMAND_LINE = "command line"
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")


def chosen_server(
    before: Settings | None, listen: str | None, names: Sequence[str]
) -> tuple[str, int, tuple[str, ...]]:
    """Host, port, and the names by which agents reach it. Raises ConfigError."""
    start = before or Settings()
    host, port = (start.host, start.port) if listen is None else _address(listen)
    for name in names:
        if not _is_host(name):
            raise _fault("--name", f"{name[:80]!r}", "a host name or an address")
    chosen = tuple(dict.fromkeys(names))
    if not chosen and start.names != (start.host,):
        chosen = start.names  # of an earlier --name
    if not chosen and ipaddress.ip_address(host).is_unspecified:
        raise _fault("--name", f"is missing beside {host}", "the name by which agents reach it")
    return host, port, chosen or (host,)


def chosen_port(host: str) -> int:
    """The usual one, or the next one that is free: Debian's package starts a server of its own."""
    for port in range(CLIENT_PORT, CLIENT_PORT + PORTS_TRIED):
        if why_not_free(host, port) is None:
            return port
    raise _fault("--listen", "is missing, and the usual ports are taken", f"{host}:PORT")


def why_not_free(host: str, port: int) -> str | None:
    """What the system says against listening there; None when it can be done."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def chosen_results(folder: Path) -> int:
    """Octets for results: 10 GiB, or half of what is free where that is less."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    return max(1 << 20, min(MOST_RESULTS, shutil.disk_usage(os.fspath(there)).free // 2))


def chosen_nodes(words: Sequence[str]) -> tuple[Node, ...]:
    """Three different servers. Raises ConfigError."""
    nodes = tuple(_node(word) for word in words)
    if len(nodes) != NODES:
        raise _fault("HOST", f"{len(nodes)} are named", f"{NODES}: one may fail then")
    places = [(one.host, port) for one in nodes for port in (one.port, one.route_port)]
    for host, port in places:
        if places.count((host, port)) > 1:
            raise _fault("HOST", f"{bracketed(host)}:{port} is twice", "different servers")
    return nodes


def _node(word: str) -> Node:
    match = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d{1,5}))?(?::(\d{1,5}))?", word)
    host = match.group(1).strip("[]") if match else ""
    if match is None or not _is_host(host):
        raise _fault("HOST", repr(word[:80]), "HOST, HOST:PORT or HOST:PORT:ROUTE_PORT")
    port = int(match.group(2) or CLIENT_PORT)
    routes = int(match.group(3) or port + ROUTES_ABOVE)
    if not (0 < port < 1 << 16 and 0 < routes < 1 << 16):
        raise _fault("HOST", repr(word[:80]), "ports of 1 to 65535")
    return Node(host, port, routes)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else text
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise _fault("--listen", repr(text[:80]), "ADDRESS:PORT, such as 0.0.0.0:4222") from None
    if not colon:
        return host, CLIENT_PORT
    if not (port.isdecimal() and port.isascii() and 0 < int(port) < 1 << 16):
        raise _fault("--listen", repr(text[:80]), "a port of 1 to 65535")
    return host, int(port)


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) < 254 and _HOST_NAME.fullmatch(text) is not None
    return True


def _fault(where: str, problem: str, expected: str) -> ConfigError:
    return ConfigError([Fault(COMMAND_LINE, where, problem, expected)])
