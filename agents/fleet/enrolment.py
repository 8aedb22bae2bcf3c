"""The agent's side of enrolment: a key is made here, and only its public half leaves the host."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login, read_login, write_login
from pathbudget.agents.bus.subjects import ENROL
from pathbudget.agents.fleet.admission import Answer, Refused, Request
from pathbudget.agents.fleet.files import fault
from pathbudget.agents.fleet.invitation import Ticket
from pathbudget.agents.fleet.user_key import new_user_key, user_key_of
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.aio.client import Client

ANSWER_S = 10.0
TRIES, PAUSE_S = 8, 1.0
"""How often guest and agent try to enter, and how long they wait in between."""
WORDS = {
    Refused.UNREADABLE: "the registrar does not understand this version",
    Refused.NOT_INVITED: "nobody of this name is invited: ask for a new invitation",
    Refused.USED: "the invitation was used already: if not by you, tell the operator",
    Refused.EXPIRED: "the invitation has expired: ask for a new one",
    Refused.VOID: "too many wrong requests came with this invitation: ask for a new one",
    Refused.WRONG_TOKEN: "there is a newer invitation for this name: use that",
    Refused.BAD_KEY: "the key is known already: try again",
}


def enrol(ticket: Ticket, path: Path, say: Callable[[str], None]) -> None:
    """Become the agent of an invitation; write its login to `path`.

    The login lies beside it (``.NAME.new``) before anything is sent, so that one who was
    interrupted is the same agent at the next try. Raises ConfigError or BusError.
    """
    if path.exists():
        raise fault(path, "is there already", "another --out; an agent is enrolled once")
    if time.time_ns() >= ticket.expires_unix_ns:
        raise BusError(f"{WORDS[Refused.EXPIRED]} (by the clock of this host)")
    pending = path.with_name(f".{path.name}.new")
    if pending.exists():
        login = ticket.login(read_login(pending).seed)
        pending.unlink()
    else:
        login = ticket.login(new_user_key().seed)
    write_login(pending, login)
    answer = asyncio.run(_asked(ticket, user_key_of(login.seed).public, say))
    if answer.refused is not None:
        pending.unlink()
        raise BusError(f"agent {ticket.agent} is not enrolled: {WORDS[answer.refused]}")
    pending.rename(path)
    asyncio.run(_seen(login, say))


async def _asked(ticket: Ticket, key: str, say: Callable[[str], None]) -> Answer:
    from nats.errors import Error, NoRespondersError

    try:
        client = await _entered(ticket.guest, say)
    except BusError as error:
        if "authorization" not in str(error).lower():
            raise
        raise BusError(f"{error}: the invitation was used, has expired, or was replaced") from None
    request = msgspec.json.encode(Request(ticket.token, key))
    try:
        reply = await client.request(f"{ENROL}.{ticket.agent}", request, timeout=ANSWER_S)
        return msgspec.json.decode(reply.data, type=Answer)
    except NoRespondersError:
        text = "the servers are there, but no registrar (`pathbudget fleet serve`): try again later"
        raise BusError(text) from None
    except (Error, TimeoutError, msgspec.DecodeError) as error:
        why = str(error) or type(error).__name__
        raise BusError(f"no answer to the enrolment: {why}; try again") from None
    finally:
        await close(client)


async def _seen(login: Login, say: Callable[[str], None]) -> None:
    """Enter once as the agent."""
    try:
        await (await _entered(login, say)).close()
    except BusError as error:
        say(f"enrolled, but the servers do not let it in yet: {error}")


async def _entered(login: Login, say: Callable[[str], None]) -> "Client":
    """The servers read their users a moment after they are told to. Raises BusError."""
    for _ in range(TRIES - 1):
        try:
            return await connect(login, say)
        except BusError as error:
            if "authorization" not in str(error).lower():
                raise
            await asyncio.sleep(PAUSE_S)
    return await connect(login, say)
