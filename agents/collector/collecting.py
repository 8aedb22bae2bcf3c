"""Takes results from the bus and writes them; acknowledges what is durable, and nothing else.

Several collectors share the work: the bus gives each message to one of them, and to another one
when it hears nothing of it for `ACK_WAIT_S`. What comes twice is known by its id in the store.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.streams import ACK_WAIT_S
from pathbudget.agents.bus.subjects import COLLECTORS, RESULTS_STREAM
from pathbudget.agents.collector.backlog import Backlog
from pathbudget.agents.collector.batch import Batch, message_id
from pathbudget.agents.collector.checking import Fault
from pathbudget.agents.collector.quarantine import Quarantine
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.version import software_name
from pathbudget.probes.errors import BusError, RecordError, StoreError
from pathbudget.probes.record import Measurement

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

FETCH_S = 1.0
AT_ONCE = 500
WORKING_S = ACK_WAIT_S / 4
"""So often the bus is told that a batch is still being written."""
LONGEST_ANSWER_S = 20.0
"""A client whose connection was cut may wait for room that never comes."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class Receipt(Protocol):
    """What a store did."""

    @property
    def written(self) -> int:
        """Measurements."""
        ...

    @property
    def already_there(self) -> int:
        """Measurements that were not written again."""
        ...


class Writer(Protocol):
    """`Store`, as far as it is needed."""

    def write(self, measurements: Sequence[Measurement]) -> Receipt:
        """Durable when it returns. Raises StoreError and RecordError."""
        ...


Stored = Callable[[Sequence[Measurement]], Awaitable[None]]


class Collector:
    """One collector. `say` takes a sentence for the log."""

    def __init__(
        self,
        link: Link,
        store: Writer,
        rejected: Path,
        say: Callable[[str], None],
        stored: Stored | None = None,
    ) -> None:
        """`stored` is told what the store has taken, some of it perhaps for the second time."""
        self.backlog = Backlog(link)
        """Its `run` goes on beside that of the collector."""
        self._stored = stored
        self._link = link
        self._store = store
        self._quarantine = Quarantine(rejected)
        self._say = say
        self._stopped = asyncio.Event()
        self._started_unix_ns = time.time_ns()
        self._counts: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._written_unix_ns: int | None = None
        self._oldest_unix_ns: int | None = None
        self._trouble = ""

    def stop(self) -> None:
        """Have `run` come to its end; what has been taken is written first."""
        self._stopped.set()

    def status(self) -> CollectorStatus:
        """How it fares."""
        return CollectorStatus(
            software=software_name(),
            at_unix_ns=time.time_ns(),
            started_unix_ns=self._started_unix_ns,
            measurements=self._counts["measurements"],
            samples=self._counts["samples"],
            duplicates=self._counts["duplicates"],
            rejected=dict(self._rejected),
            waiting=self.backlog.waiting,
            asked_unix_ns=self.backlog.asked_unix_ns,
            oldest_unix_ns=self._oldest_unix_ns,
            written_unix_ns=self._written_unix_ns,
            trouble=self._trouble or self._link.trouble,
        )

    async def run(self) -> None:
        """Until `stop`. A bus or a disk that is away is waited for."""
        failures = 0
        while not self._stopped.is_set():
            try:
                batch = await self._batch(self._link.client)
            except BusError as error:
                failures += 1
                if failures > 2:  # a connection takes a moment
                    self._note(str(error))
                await self._pause(failures)
                continue
            failures = 0
            if batch.messages:
                await self._store_batch(batch)
            elif self._trouble:
                self._trouble = ""

    async def _batch(self, client: "Client") -> Batch:
        """What there is, until it is time to write. Raises BusError."""
        from nats.errors import Error
        from nats.js.errors import Error as StreamError

        stream = client.jetstream(timeout=5)
        batch = Batch()
        try:
            pull = await stream.pull_subscribe_bind(consumer=COLLECTORS, stream=RESULTS_STREAM)
            try:
                await self._fill(batch, pull)
            finally:
                await pull.unsubscribe()
        except BusError:
            if not batch.messages:
                raise
        except (Error, StreamError, TimeoutError) as error:
            if not batch.messages:
                raise BusError(f"no results: {str(error) or type(error).__name__}") from None
        return batch

    async def _fill(self, batch: Batch, pull: "JetStreamContext.PullSubscription") -> None:
        while not batch.is_due(time.monotonic_ns()) and not self._stopped.is_set():
            try:
                messages = await pull.fetch(min(AT_ONCE, batch.room()), timeout=FETCH_S)
            except TimeoutError:
                messages = []
            for message in messages:
                batch.add(message, time.monotonic_ns(), self._reject)
            if not messages and self.backlog.trouble:
                raise BusError(self.backlog.trouble)
            if not messages and not batch.messages:
                return

    def _reject(self, message: "Msg", fault: Fault, text: str) -> None:
        """Keep it apart and have the bus forget it: it is no better the next time."""
        if not self._rejected[fault]:
            self._say(f"rejected ({fault}): {text}; others of this kind are counted")
        self._rejected[fault] += 1
        self._quarantine.keep(
            message.subject, message_id(message), f"{fault}: {text}", message.data
        )
        task = asyncio.ensure_future(message.term())
        task.add_done_callback(_seen)

    async def _store_batch(self, batch: Batch) -> None:
        """Write until the disk has it, however long that takes; then acknowledge."""
        failures = 0
        self._oldest_unix_ns = batch.oldest_unix_ns
        while True:
            try:
                await self._write(batch)
            except StoreError as error:
                failures += 1
                self._note(str(error))
                if self._stopped.is_set():
                    return  # the bus has all of it still
                await self._pause(failures, batch)
                continue
            break
        self._trouble, self._oldest_unix_ns = "", None
        await _answer(batch.messages, "ack")

    async def _write(self, batch: Batch) -> None:
        """Where something in it no table can hold: find out what, and write the rest.

        Raises StoreError; what was written or rejected by then is known the next time.
        """
        try:
            await self._written(batch)
        except RecordError:
            for one in batch.singly():
                try:
                    await self._written(one)
                except RecordError as error:
                    batch.drop(one.messages[0])
                    self._reject(one.messages[0], Fault.UNSTORABLE, str(error))

    async def _written(self, batch: Batch) -> None:
        writing = asyncio.create_task(asyncio.to_thread(self._store.write, batch.measurements))
        while not (await asyncio.wait([writing], timeout=WORKING_S))[0]:
            await _answer(batch.messages, "in_progress")
        receipt = writing.result()
        self._counts["measurements"] += receipt.written
        self._counts["duplicates"] += receipt.already_there
        self._counts["samples"] += sum(len(one.samples) for one in batch.measurements)
        self._written_unix_ns = time.time_ns()
        if self._stored is not None:
            await self._stored(batch.measurements)

    async def _pause(self, failures: int, batch: Batch | None = None) -> None:
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 6), WORKING_S)
        try:
            await asyncio.wait_for(self._stopped.wait(), pause_s)
        except TimeoutError:
            if batch is not None:
                await _answer(batch.messages, "in_progress")

    def _note(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._say(trouble)
        self._trouble = trouble


async def _answer(messages: Sequence["Msg"], word: str) -> None:
    """An answer that is lost is harmless: the message comes again, and its id is known."""
    from nats.errors import Error

    try:
        async with asyncio.timeout(LONGEST_ANSWER_S):
            for message in messages:
                await getattr(message, word)()
    except (Error, OSError, TimeoutError):
        return


def _seen(task: "asyncio.Future[None]") -> None:
    """What could not be said to the bus will be said when the message comes again."""
    if not task.cancelled():
        task.exception()
