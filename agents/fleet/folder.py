"""The folder of a fleet, which whoever runs its server keeps and backs up.

    fleet.json                       where the servers are, and how much they keep
    registry.json                    agents, invitations, what was revoked
    users.conf                       the same as nats-server reads it
    operator.toml, collector.toml, registrar.toml    logins (mode 600)
    operators.pub                    whose plans the agents of this fleet take
    tls/                             authority and server certificate
    nats/                            configuration, JetStream and log of the server
    store/                           where the collector writes
    nodes/                           of a cluster, instead of nats/: a folder for each server

Commands may be used while the server runs: one at a time changes the folder, under a lock, each
file is replaced whole, and the server is told by signal.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pathbudget.agents.bus.login import Login, read_login, write_login
from pathbudget.agents.fleet.authority import Authority
from pathbudget.agents.fleet.files import (
    PUBLIC,
    fault,
    read_document,
    write,
    write_document,
)
from pathbudget.agents.fleet.registry import Registry
from pathbudget.agents.fleet.reload import reload_servers
from pathbudget.agents.fleet.user_key import new_user_key, user_key_of
from pathbudget.agents.fleet.users import STAFF, users_text
from pathbudget.agents.plans.keys import read_trusted
from pathbudget.agents.store.locks import exclusive

CLIENT_PORT = 4222
NODES = "nodes"


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """One server of a cluster."""

    host: str
    port: int = CLIENT_PORT
    route_port: int = CLIENT_PORT + 2000

    @property
    def name(self) -> str:
        """Name of its folder, and of the server in the cluster."""
        return f"{self.host}-{self.port}".replace(":", "-")


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was chosen when the folder was made, or by a later `fleet serve`."""

    host: str = "127.0.0.1"
    port: int = CLIENT_PORT
    names: tuple[str, ...] = ()
    """By which agents reach the server: host names and addresses, all in its certificate."""
    results_octets: int = 10 << 30
    """Of results that wait for a collector."""
    nodes: tuple[Node, ...] = ()
    """Of a cluster; its servers are started elsewhere."""

    @property
    def servers(self) -> tuple[str, ...]:
        """Addresses for logins."""
        if self.nodes:
            return tuple(f"tls://{bracketed(one.host)}:{one.port}" for one in self.nodes)
        return tuple(f"tls://{bracketed(name)}:{self.port}" for name in self.names)

    @property
    def replicas(self) -> int:
        """Copies of each stream."""
        return 3 if self.nodes else 1


class Folder:
    """A fleet on disk. `Folder(path)` may be there or not; `settings` says which."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authority = Authority(path / "tls")
        self.users = path / "users.conf"
        self.operators = path / "operators.pub"
        self.nats = path / "nats"
        self.store = path / "store"
        self._settings = path / "fleet.json"
        self._registry = path / "registry.json"

    def exists(self) -> bool:
        """Whether a fleet has been made here."""
        return self._settings.exists()

    def settings(self) -> Settings:
        """Raises ConfigError where there is no fleet."""
        found = read_document(self._settings, Settings)
        if found is None:
            problem = "is no folder of a fleet"
            raise fault(self.path, problem, "one that `pathbudget fleet serve` has made")
        return found

    def registry(self) -> Registry:
        """Raises ConfigError for one that cannot be understood."""
        return read_document(self._registry, Registry) or Registry()

    def login_file(self, user: str) -> Path:
        """Where the login of ``operator``, ``collector`` or ``registrar`` is."""
        return self.path / f"{user}.toml"

    def prepare(self, settings: Settings) -> None:
        """Make what is missing, and write anew what `settings` change. Raises ConfigError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise fault(self.path, f"cannot be made: {error.strerror}", "a folder") from None
        with self.locked():
            write_document(self._settings, settings)
            self.renew()
            for user in STAFF:
                self._write_login(user, settings)
            self.refresh()

    def renew(self) -> bool:
        """Make new certificates for servers whose own end soon. Says whether there were some.

        Those of a cluster lie in ``nodes/``, to be carried there. Raises ConfigError.
        """
        settings = self.settings()
        if not settings.nodes:
            return self.authority.server_pair(settings.names)
        places = [(one.host, self.path / NODES / one.name) for one in settings.nodes]
        made = [self.authority.server_pair([host], place) for host, place in places]
        return any(made)

    def change(self, edit: Callable[[Registry], Registry]) -> Registry:
        """Have the registry edited, written, and the servers told. Whatever `edit` raises changes
        nothing.
        """
        self.settings()  # nothing is made in a folder that is no fleet's
        with self.locked():
            before = self.registry()
            after = edit(before)
            if after != before:
                write_document(self._registry, after)
            self.refresh()
        return after

    def refresh(self, *, anyway: bool = False) -> None:
        """Bring the users of the servers up to date with the registry and the clock, and tell the
        server where that changes something, or `anyway`. The folder must be locked.
        """
        staff = {user: user_key_of(self.login(user).seed).public for user in STAFF}
        text = users_text(self.registry(), staff, time.time_ns()).encode()
        if not self.users.exists() or self.users.read_bytes() != text:
            write(self.users, text)
        elif not anyway:
            return
        reload_servers(self.nats)

    def login(self, user: str) -> Login:
        """Raises ConfigError."""
        return read_login(self.login_file(user))

    def trust(self, keys: Path) -> None:
        """Have new invitations carry the public keys of a file. Raises ConfigError."""
        read_trusted(keys)
        write(self.operators, keys.read_bytes(), PUBLIC)

    def trusted(self) -> str:
        """Public keys of the operators, for invitations. Raises ConfigError where none are known:
        an agent without them takes no plan.
        """
        if not self.operators.exists():
            problem = "is not there: whose plans are agents to take?"
            expected = "--trust with a file of `pathbudget plan keygen`"
            raise fault(self.operators, problem, expected)
        read_trusted(self.operators)
        return self.operators.read_text(encoding="utf-8")

    @contextmanager
    def locked(self) -> Generator[None]:
        """Alone with this folder."""
        with exclusive(self.path / ".lock"):
            yield

    def _write_login(self, user: str, settings: Settings) -> None:
        """Keep its key, if it has one; its servers and authority are those of now."""
        path = self.login_file(user)
        seed = self.login(user).seed if path.exists() else new_user_key().seed
        login = Login(user, settings.servers, self.authority.certificate_text(), seed)
        try:
            if path.exists() and self.login(user) == login:
                return
            path.unlink(missing_ok=True)
        except OSError as error:
            raise fault(path, f"cannot be replaced: {error.strerror}", "a login file") from None
        write_login(path, login)


def bracketed(host: str) -> str:
    """As it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host
