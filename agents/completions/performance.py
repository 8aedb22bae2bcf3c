"""One answer after its script: a queue for a slot, then chunks at their times."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.agents.completions.chunks import END_MARK, Asked, Envelope, error_body, event, words
from pathbudget.agents.completions.script import MILLISECOND_NS, Script
from pathbudget.probes.clock import Clock

REMEMBERED = 10_000
"""Answers that are remembered."""


class TroubleError(Exception):
    """The script wants the connection closed here; `reset`: at once."""

    def __init__(self, *, reset: bool) -> None:
        self.reset = reset
        super().__init__("scripted trouble")


@dataclass(slots=True)
class Served:
    """What became of one request. Monotonic times, ns."""

    prompt_words: int
    received_ns: int
    slot_ns: int = 0
    chunk_ns: list[int] = field(default_factory=list[int])
    """Just before each chunk with text was written."""
    tokens: int = 0
    trouble: str = ""


class Stage:
    """What all answers of one server share: slots, dice, and what was served."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self.script = script
        self.clock = clock
        self.rng = random.Random(script.seed)
        self.slots = asyncio.Semaphore(script.slots)
        self.waiting = 0
        self.number = 0
        self.served: deque[Served] = deque(maxlen=REMEMBERED)

    @property
    def full(self) -> bool:
        """Whether one more request would wait, and as many wait as may."""
        return self.slots.locked() and self.waiting >= self.script.queue


class Performance:
    """One answer. `write` sends bytes of its body."""

    def __init__(self, stage: Stage, asked: Asked, write: Callable[[bytes], None]) -> None:
        self._stage = stage
        self._script = stage.script
        self._asked = asked
        self._write = write
        stage.number += 1
        created = stage.clock.unix_ns() // 1_000_000_000
        self._envelope = Envelope(stage.number, stage.script.model, created)
        self.served = Served(asked.prompt_words, stage.clock.monotonic_ns())
        stage.served.append(self.served)
        trouble = self._script.trouble
        self._troubled = trouble.kind != "none" and stage.rng.random() < trouble.share
        self._due_ns = 0

    @property
    def status(self) -> int:
        """That of the answer."""
        trouble = self._script.trouble
        return trouble.status if self._troubled and trouble.kind == "status" else 200

    async def give(self) -> None:
        """Wait for a slot, then write the whole body of a stream.

        Raises:
            TroubleError: the script ends the connection here.
        """
        self._stage.waiting += 1
        try:
            await self._stage.slots.acquire()
        finally:
            self._stage.waiting -= 1
        try:
            await self._perform()
        finally:
            self._stage.slots.release()

    async def give_whole(self) -> bytes:
        """An answer that is no stream, after as long as its stream would have taken."""
        taken: list[bytes] = []
        self._write = taken.append
        await self.give()
        served = self.served
        return self._envelope.whole(words(0, served.tokens), served.prompt_words, served.tokens)

    async def _perform(self) -> None:
        script, rng = self._script, self._stage.rng
        self.served.slot_ns = self._due_ns = self._stage.clock.monotonic_ns()
        if script.answer.role_first:
            self._write(self._envelope.delta({"role": "assistant", "content": ""}))
        prefill_ns = round(self.served.prompt_words * script.prompt_token_us * 1_000)
        self._due_ns += script.first_token.draw_ns(rng) + prefill_ns
        await self._tokens(script.answer.reasoning_tokens, script.answer.reasoning_field)
        await self._tokens(self._length(), "content")
        self._write(self._envelope.delta({}, "stop"))
        options = self._asked.stream_options
        wanted = options is not None and options.include_usage
        if script.answer.usage == "always" or (script.answer.usage == "asked" and wanted):
            self._write(self._envelope.usage(self.served.prompt_words, self.served.tokens))
        if script.answer.end_mark:
            self._write(END_MARK)

    def _length(self) -> int:
        tokens, limit = self._script.answer.tokens, self._asked.limit
        return tokens if limit is None else min(tokens, limit)

    async def _tokens(self, count: int, name: str) -> None:
        """Write so many tokens in chunks, each when its last token is due."""
        script = self._script
        done = 0
        while done < count:
            size = min(script.answer.tokens_per_chunk, count - done)
            await self._wait_for_trouble()
            for n in range(size):
                if self.served.tokens + n:
                    self._due_ns += self._pause_ns(self.served.tokens + n)
            await self._until_due()
            self.served.chunk_ns.append(self._stage.clock.monotonic_ns())
            self._write(self._envelope.delta({name: words(done, size)}))
            done += size
            self.served.tokens += size

    def _pause_ns(self, token: int) -> int:
        stall = self._script.stall
        extra = stall.ms if stall.every and token % stall.every == 0 else 0.0
        return self._script.token.draw_ns(self._stage.rng) + round(extra * MILLISECOND_NS)

    async def _until_due(self) -> None:
        left_ns = self._due_ns - self._stage.clock.monotonic_ns()
        await asyncio.sleep(max(0, left_ns) / 1e9)

    async def _wait_for_trouble(self) -> None:
        trouble = self._script.trouble
        if not self._troubled or self.served.tokens < trouble.after_tokens:
            return
        self.served.trouble = trouble.kind
        if trouble.kind == "silence":
            await asyncio.Event().wait()
        if trouble.kind == "event":
            self._write(event(error_body(trouble.message, "server_error")))
        raise TroubleError(reset=trouble.kind == "reset")
