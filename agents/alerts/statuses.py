"""What agents say of themselves: files of agents on this host, and the bucket of the bus."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.bus.subjects import STATUS as BUCKET
from pathbudget.agents.bus.subjects import key_subject, value_subject
from pathbudget.agents.daemon.status import STATUS, AgentStatus, read_status
from pathbudget.analysis.alerts.hosts import Host
from pathbudget.probes.errors import BusError, StoreError

if TYPE_CHECKING:
    from nats.aio.client import Client

    from pathbudget.agents.bus.login import Login

WAIT_S = 5.0
IN_ALL_S = 30.0
SECOND_NS = 1_000_000_000


def of_folders(folders: Sequence[Path]) -> tuple[dict[str, Host], dict[str, str]]:
    """Agents of this host by name; and folders that cannot be read, with the reason."""
    hosts: dict[str, Host] = {}
    blind: dict[str, str] = {}
    for folder in folders:
        try:
            status = read_status(folder / STATUS)
        except StoreError as error:
            blind[str(folder)] = str(error)
        else:
            name = status.agent or folder.name
            hosts[name] = host_of(name, status, status.at_unix_ns)
    return hosts, blind


def host_of(name: str, status: AgentStatus, heard_unix_ns: int) -> Host:
    """An agent by its own words, heard at a time."""
    return Host(name, heard_unix_ns, status.clock, heard_unix_ns)


def of_bus(login: "Login") -> dict[str, Host]:
    """Every agent whose status the bus has. Raises BusError."""
    return asyncio.run(_of_bus(login))


async def _of_bus(login: "Login") -> dict[str, Host]:
    from pathbudget.agents.bus.connection import close, connect

    try:
        async with asyncio.timeout(IN_ALL_S):
            client = await connect(login, lambda _: None)
            try:
                return await read_bucket(client)
            finally:
                await close(client)
    except TimeoutError:
        raise BusError(f"no answer within {IN_ALL_S:g} s") from None


async def read_bucket(client: "Client") -> dict[str, Host]:
    """Every key of the bucket. The time is the server's, so that no agent's clock matters."""
    from nats.errors import Error

    try:
        names = await _keys(client)
        hosts: dict[str, Host] = {}
        for name in names:
            host = await _value(client, name)
            if host is not None:
                hosts[name] = host
    except (Error, TimeoutError) as error:
        raise BusError(str(error) or type(error).__name__) from None
    return hosts


async def _keys(client: "Client") -> list[str]:
    from nats.js.errors import Error as JetStreamError

    try:
        info = await client.jetstream(timeout=WAIT_S).stream_info(f"KV_{BUCKET}", ">")
    except JetStreamError as error:
        raise BusError(f"{BUCKET}: {str(error) or type(error).__name__}") from None
    prefix = key_subject(BUCKET, "")
    return sorted(one.removeprefix(prefix) for one in (info.state.subjects or {}))


async def _value(client: "Client", name: str) -> Host | None:
    """None for a key that was taken away, and for what is no status of this version."""
    answer = await client.request(value_subject(BUCKET, name), b"", timeout=WAIT_S)
    headers = answer.headers or {}
    if headers.get("KV-Operation") in ("DEL", "PURGE") or headers.get("Status") == "404":
        return None
    try:
        status = msgspec.json.decode(answer.data, type=AgentStatus)
    except msgspec.DecodeError:
        return None
    heard = _server_time_ns(headers.get("Nats-Time-Stamp", "")) or status.at_unix_ns
    return host_of(name, status, heard)


def _server_time_ns(text: str) -> int | None:
    """``2026-12-03T13:00:00.123456789Z`` of the server, to the microsecond."""
    from datetime import datetime

    whole, _, fraction = text.removesuffix("Z").partition(".")
    try:
        seconds = datetime.fromisoformat(f"{whole}+00:00").timestamp()
        return round(seconds) * SECOND_NS + int(fraction.ljust(9, "0")[:9] or 0)
    except ValueError:
        return None
