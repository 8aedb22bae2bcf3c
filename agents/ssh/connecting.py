"""A connection to a host, and why there is none, in words. Nothing is ever asked of a person.

Host keys must be in a known_hosts file; ``~/.ssh/config`` is not read, so that the hosts file alone
says where a connection leads.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import asyncssh

from pathbudget.agents.ssh.host_keys import KeyWatch, refused_key
from pathbudget.agents.ssh.hosts_file import Host, Way
from pathbudget.probes.errors import HostError

CONNECT_WITHIN_S = 20.0
ALIVE_EVERY_S, ALIVE_COUNT = 5.0, 3
"""A connection that says nothing for so many times so long is dead."""


class AwayError(HostError):
    """A host that cannot be reached now; later it may be."""


@contextlib.asynccontextmanager
async def connected(host: Host) -> AsyncGenerator[asyncssh.SSHClientConnection]:
    """A connection for the block. Raises AwayError, or HostError where trying again is no use."""
    async with contextlib.AsyncExitStack() as stack:
        tunnel: asyncssh.SSHClientConnection | None = None
        for way in (*host.jumps, host.way):
            name = f"{host.vantage}: {way.address}"
            tunnel = await _connect(way, name, tunnel)
            stack.callback(tunnel.abort)
        assert tunnel is not None
        yield tunnel


async def _connect(
    way: Way, name: str, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    known = [str(path) for path in way.known_hosts if path.is_file()]
    watch = KeyWatch()
    try:
        return await asyncio.wait_for(
            asyncssh.connect(
                way.host,
                way.port,
                tunnel=tunnel,
                client_factory=lambda: watch,
                known_hosts=known or b"",
                config=None,
                x509_trusted_certs=None,
                preferred_auth="publickey",
                gss_host=None,
                **_credentials(way, name),
                keepalive_interval=ALIVE_EVERY_S,
                keepalive_count_max=ALIVE_COUNT,
                compression_algs=None,
                login_timeout=CONNECT_WITHIN_S,
            ),
            CONNECT_WITHIN_S,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostError(refused_key(way, name, watch.shown, str(error))) from None
    except asyncssh.PermissionDenied:
        raise HostError(f"{name}: {_not_let_in(way)}") from None
    except (TimeoutError, asyncssh.ConnectionLost):
        raise AwayError(f"{name}: no answer within {CONNECT_WITHIN_S:g} s") from None
    except asyncssh.ChannelOpenError as error:
        raise AwayError(f"{name}: the jump host does not get there: {error.reason}") from None
    except asyncssh.Error as error:
        raise AwayError(f"{name}: no connection: {error.reason}") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise AwayError(f"{name}: cannot be reached: {why}") from None


def _credentials(way: Way, name: str) -> dict[str, Any]:
    """Keys of files and of an agent. Where both are wanted those of the files come first."""
    given: dict[str, Any] = {"agent_path": () if way.agent else None}
    if way.user:
        given["username"] = way.user
    if way.keys:
        given["client_keys"] = [_key(str(path), name) for path in way.keys]
    elif not way.agent:
        given["client_keys"] = ()
    return given


def _key(path: str, name: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        if "passphrase" in str(error).lower():
            remedy = "nobody is asked for it here; give the key to an agent: ssh-add"
            raise HostError(f"{name}: {path} is locked by a passphrase; {remedy} {path}") from None
        raise HostError(f"{name}: {path} is no private key: {error}") from None
    except OSError as error:
        raise HostError(f"{name}: {path}: {error.strerror}") from None


def _not_let_in(way: Way) -> str:
    tried = [str(path) for path in way.keys] or ["the usual keys of ~/.ssh"]
    tried += ["keys of the agent"] if way.agent else []
    who = f"user {way.user}" if way.user else "this user"
    return f"{who} is not let in ({_listed(tried)} tried; passwords are never asked for)"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
