"""A link to the bus that nobody has to watch: it is made as soon as it can be, and made again.

`connect` mends what breaks while it goes on. What it cannot mend is here: a bus that is away when
the process starts, and a connection that the server has ended for good.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.aio.client import Client

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
LOOK_EVERY_S = 0.5

Greeting = Callable[["Client"], Awaitable[None]]
"""What is to be done whenever there is a connection: subscriptions, questions."""


class Link:
    """Call `run` once, in a task. `client` is the connection while there is one.

    Greetings may come twice with one connection: those before one that failed are tried again, too.
    """

    def __init__(
        self, login: Login, say: Callable[[str], None], greetings: tuple[Greeting, ...] = ()
    ) -> None:
        self.trouble = "not connected to the bus yet"
        """Why there is no connection; empty while there is one."""
        self._login = login
        self._say = say
        self._greetings = list(greetings)
        self._client: Client | None = None

    def greet(self, greeting: Greeting) -> None:
        """Have something done with each connection, also one that was mended; before `run`."""
        self._greetings.append(greeting)

    @property
    def client(self) -> "Client":
        """The connection. Raises BusError where there is none now."""
        client = self._client
        if client is None or not client.is_connected:
            raise BusError(self.trouble or "the bus is away")
        return client

    async def run(self) -> None:
        """For ever."""
        failures = 0
        while True:
            try:
                self._client = await connect(self._login, self._say)
            except BusError as error:
                failures += 1
                self._note(str(error))
                await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 6)))
                continue
            failures = 0
            await self._stay(self._client)

    async def close(self) -> None:
        """Let go; what was handed to the bus is on its way first."""
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            await close(client)

    async def _stay(self, client: "Client") -> None:
        """Greet after each break, until the connection has ended for good."""
        greeted = -1
        while not client.is_closed:
            times = client.stats["reconnects"]
            if client.is_connected and greeted != times and await self._greeted(client):
                greeted = times
            await asyncio.sleep(LOOK_EVERY_S)
        self._client = None
        self._note("the bus has ended this connection for good")
        await asyncio.sleep(LONGEST_PAUSE_S)

    async def _greeted(self, client: "Client") -> bool:
        """Whether all greetings went well; else they are tried again."""
        from nats.errors import Error
        from nats.js.errors import Error as StreamError

        try:
            for greeting in self._greetings:
                await greeting(client)
        except (Error, StreamError, TimeoutError) as error:
            self._note(f"bus: {str(error) or type(error).__name__}")
            return False
        self.trouble = ""
        return True

    def _note(self, trouble: str) -> None:
        if trouble != self.trouble:
            self._say(trouble)
        self.trouble = trouble
