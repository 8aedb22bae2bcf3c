"""A connection to the bus: TLS, the NKey of the user, and again and again when it breaks."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import inbox
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.aio.client import Client

CONNECT_S = 5
FIRST_S = 12.0
"""For the first connection: the client by itself would try for ever, and say nothing."""
PAUSE_S = 2
PING_S = 20
"""A server that does not answer two of these is away: the connection is made anew."""


async def connect(login: Login, say: Callable[[str], None]) -> "Client":
    """A connection that comes back by itself for ever once it is made. `say` hears what breaks it.

    Only where the server cuts it off on purpose (revoked; a message that is too large) it is closed
    for good: `is_closed`.

    Raises BusError where it cannot be made now: wrong address, certificate, or credentials.
    """
    from nats.aio.client import Client
    from nats.errors import Error

    logging.getLogger("asyncio").addFilter(_is_news)
    client, made, why, said, refusals = Client(), False, "", "", 0

    def once(text: str) -> None:
        """Each try says the same: a log of months needs it once."""
        nonlocal said
        if text != said:
            say(text)
        said = text

    async def broken() -> None:
        if made and not client.is_closed and not said:
            once("the bus is away")

    async def back() -> None:
        nonlocal said
        said = ""
        say("the bus is back")

    async def closed() -> None:
        error = client.last_error
        if made and error is not None and "permissions" not in str(error):
            say(f"the bus has cut this connection off for good: {error}")

    async def problem(error: Exception) -> None:
        nonlocal why, refusals
        why = str(error) or type(error).__name__
        if made:
            once(f"bus: {why}")
        elif "authorization" in why.lower():
            refusals += 1
            if refusals >= len(login.servers):  # each has said it: no use in going on
                limit.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(FIRST_S) as limit:
            await client.connect(
                servers=list(login.servers),
                name=login.user,
                tls=_context(login.authority),
                nkeys_seed_str=login.seed,
                inbox_prefix=inbox(login.user),
                connect_timeout=CONNECT_S,
                reconnect_time_wait=PAUSE_S,
                max_reconnect_attempts=-1,
                ping_interval=PING_S,
                allow_reconnect=True,
                disconnected_cb=broken,
                reconnected_cb=back,
                closed_cb=closed,
                error_cb=problem,
            )
    except (Error, OSError, TimeoutError) as error:
        await close(client)
        where, text = ", ".join(login.servers), why or str(error) or type(error).__name__
        raise BusError(f"{where}: {text}") from None
    made = True
    return client


async def close(client: "Client") -> None:
    """End a connection. Where the server cuts it off meanwhile, the client cancels what it waits
    for itself: that is no cancellation of whoever closes it.
    """
    try:
        await client.close()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise


def _is_news(record: logging.LogRecord) -> bool:
    """asyncio warns at each end of a TLS connection of how the client is written."""
    return "eof_received" not in record.getMessage()


def _context(authority: str) -> ssl.SSLContext:
    """TLS 1.2 or newer, the servers' names checked, no other authority than the fleet's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=authority)
    except ssl.SSLError as error:
        raise BusError(f"the authority of the login is no certificate: {error}") from None
    return context
