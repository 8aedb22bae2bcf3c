"""The registrar: answers new agents, lets invitations run out, renews the server's certificate."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.bus.subjects import ENROL, is_agent_name
from pathbudget.agents.fleet.admission import LARGEST_REQUEST, Answer, Refused, answer
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.registry import Registry
from pathbudget.probes.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

LOOK_EVERY_S = 5.0
MOST_WAITING = 64
"""Requests; what comes beyond is dropped, and its sender asks again."""
MOST_WAITING_OCTETS = 32 << 20


class Registrar:
    """Serves one folder. `changed` is called when the users may be others than before."""

    def __init__(
        self, folder: Folder, say: Callable[[str], None], changed: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._say = say
        self._changed = changed

    async def run(self, client: "Client") -> None:
        """Until it is cancelled."""
        await client.subscribe(
            f"{ENROL}.*",
            cb=self._asked,
            pending_msgs_limit=MOST_WAITING,
            pending_bytes_limit=MOST_WAITING_OCTETS,
        )
        while True:
            try:
                self._look()
            except (ConfigError, StoreError, OSError) as error:
                self._say(f"registry: {error}")
            await asyncio.sleep(LOOK_EVERY_S)

    def answer(self, name: str, message: bytes) -> Answer:
        """Decide, and have it written before anybody hears of it. Raises ConfigError."""
        if not is_agent_name(name):
            return Answer(Refused.NOT_INVITED)
        found = Answer(Refused.NOT_INVITED)

        def edit(registry: Registry) -> Registry:
            nonlocal found
            after, found = answer(registry, name, message, time.time_ns())
            return after

        self._folder.change(edit)
        self._changed()
        return found

    async def _asked(self, message: "Msg") -> None:
        """One request. Whatever is in it, the registrar goes on."""
        name = message.subject.rpartition(".")[2]
        try:
            found = self.answer(name, message.data)
        except (ConfigError, StoreError, OSError) as error:
            self._say(f"agent {name[:64]!r} cannot be enrolled: {error}")
            return
        if found.refused is None:
            self._say(f"agent {name} is enrolled")
        else:
            size = f", {len(message.data)} octets" if len(message.data) > LARGEST_REQUEST else ""
            self._say(f"refused to enrol {name[:64]!r}: {found.refused}{size}")
        if message.reply:
            await message.respond(msgspec.json.encode(found))

    def _look(self) -> None:
        """Invitations run out by the clock, and certificates: somebody has to look at it."""
        with self._folder.locked():
            new = self._folder.renew()
            self._folder.refresh(anyway=new)
        self._changed()
        if new:
            nodes = "s in nodes/ were renewed: carry them to the servers"
            one = " of the server was renewed"
            self._say(f"the certificate{nodes if self._folder.settings().nodes else one}")
