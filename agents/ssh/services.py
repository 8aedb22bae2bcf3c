"""Agents as services on hosts: set up, made new, taken away, looked at, all hosts at once."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from pathbudget.agents.bus.login import read_login
from pathbudget.agents.ssh import host_scripts, service_setup, unit
from pathbudget.agents.ssh.bundle import Bundle
from pathbudget.agents.ssh.connecting import connected
from pathbudget.agents.ssh.hosts_file import Host
from pathbudget.agents.ssh.remote_host import RemoteHost, looked_at, run
from pathbudget.probes.errors import ConfigError, Fault, HostError


class Do(StrEnum):
    """What is done to a service."""

    INSTALL = "install"
    REMOVE = "remove"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class ServiceWish:
    """The same for all hosts. `root`: a folder of the hosts in place of /; nothing is started."""

    do: Do
    bundle: Bundle
    logins: Mapping[str, str]
    """Text of the login file by vantage; of those that have none it stays as it is."""
    policy: str = ""
    realtime: bool = False
    root: str = ""
    purge: bool = False


class ServiceState(msgspec.Struct, frozen=True):
    """What a host says of its service. `trouble` is all that is known where it is set."""

    vantage: str
    host: str
    state: str = ""
    says: str = ""
    since: str = ""
    restarts: str = ""
    current: bool = False
    """Whether it runs the bundle that would be installed from here now."""
    trouble: str = ""


OnDone = Callable[[ServiceState], None]


def read_logins(folder: Path, vantages: list[str]) -> dict[str, str]:
    """The login file of each agent, ``VANTAGE.toml``. Raises ConfigError for all that are wrong."""
    found: dict[str, str] = {}
    faults: list[Fault] = []
    for name in vantages:
        path = folder / f"{name}.toml"
        try:
            login = read_login(path)
            found[name] = path.read_text(encoding="utf-8")
        except ConfigError as error:
            faults += error.faults
            continue
        if login.user != name:
            problem = f"is the login of {login.user!r}"
            faults.append(Fault(str(path), "user", problem, f"that of {name!r}"))
    if faults:
        raise ConfigError(faults)
    return found


async def on_all(hosts: list[Host], wish: ServiceWish, on_done: OnDone) -> list[ServiceState]:
    """Do it on all hosts; one that fails keeps none of the others from it."""

    async def one(host: Host, work: Awaitable[ServiceState]) -> ServiceState:
        try:
            state = await work
        except HostError as error:
            state = ServiceState(host.vantage, host.way.address, trouble=str(error))
        on_done(state)
        return state

    return list(await asyncio.gather(*(one(host, _on(host, wish)) for host in hosts)))


async def _on(host: Host, wish: ServiceWish) -> ServiceState:
    # The bundle of a service is where root alone may write.
    host = replace(host, folder=wish.root + unit.BUNDLES)
    async with connected(host) as connection:
        remote = await looked_at(connection, host, wish.bundle)
        if not remote.found.root:
            raise HostError(f'{host.vantage}: needs root there: user = "root", or sudo = true')
        if wish.do is Do.INSTALL:
            _check_python(remote, wish)
            await remote.bring(lambda _done, _size: None)
        command = host_scripts.command(remote.python, sudo=host.sudo)
        data = json.dumps(_orders(remote, wish)).encode()
        answer = await run(connection, host, command, _program(), data)
    found = {"vantage": host.vantage, "host": host.way.address, **json.loads(answer)}
    state = msgspec.convert(found, ServiceState)
    if state.trouble:
        state = msgspec.structs.replace(state, trouble=f"{host.vantage}: {state.trouble}")
    return state


def _program() -> str:
    return Path(service_setup.__file__).read_text(encoding="utf-8")


def _check_python(remote: RemoteHost, wish: ServiceWish) -> None:
    python = remote.found.executable
    if not wish.root and python.startswith(unit.HOMES):
        raise HostError(
            f"{remote.host.vantage}: {python} is in a home, which the service does not see; "
            'name another in the hosts file: python = "/usr/bin/python3"'
        )


def _orders(remote: RemoteHost, wish: ServiceWish) -> dict[str, object]:
    bundle = f"{unit.BUNDLES}/bundles/{wish.bundle.name}"
    service = unit.Service(
        remote.found.executable, bundle, policy=bool(wish.policy), realtime=wish.realtime
    )
    folders = [unit.BUNDLES, unit.SETTINGS, *([unit.STATE] if wish.purge else [])]
    return {
        "do": wish.do,
        "root": wish.root,
        "start": not wish.root,
        "unit": unit.NAME,
        "text": unit.unit(service),
        "user": unit.USER,
        "sysusers": unit.SYSUSERS,
        "bundle": bundle,
        "login": wish.logins.get(remote.host.vantage, ""),
        "login_path": unit.LOGIN,
        "policy": wish.policy,
        "policy_path": unit.POLICY,
        "folders": folders,
    }
