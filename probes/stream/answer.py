"""One request for a completion: a `StreamAttempt` that reads the events of an OpenAI-compatible
endpoint. Chunks are what came on the wire; tokens are annotation.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import Failure, FailureKind, Metric, Note, Stage
from pathbudget.probes.stream import chunk_times as times
from pathbudget.probes.stream.attempt import Arrived, StreamAttempt
from pathbudget.probes.stream.completion_events import Piece, error_text, read_event
from pathbudget.probes.stream.delivery import gap_flags
from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.prompts import Draw, prompt_of
from pathbudget.probes.stream.samples import missing, read_late_ns, timed
from pathbudget.probes.stream.shots import Shared
from pathbudget.probes.stream.sse import EventParser

MOST_CHUNKS = 100_000
EVENT_STREAM = "text/event-stream"
_MICROSECOND, _MILLISECOND = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Question:
    """What every request asks for, and how its answer is looked at."""

    path: str
    model: str
    lengths: Draw
    max_tokens: int
    usage: bool
    count_reasoning: bool
    deadline_ns: int
    """Of the first token, from the moment that the request has left; 0: none of its own."""
    stall_ns: int
    headers: tuple[tuple[str, str], ...] = ()

    def body(self, prompt: str) -> bytes:
        """The request's body."""
        asked: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.max_tokens,
            "stream": True,
        }
        if self.usage:
            asked["stream_options"] = {"include_usage": True}
        return msgspec.json.encode(asked)


class CompletionAttempt(StreamAttempt):
    """One request. Its samples: see docs/probes/completion.md."""

    def __init__(self, shared: Shared, shot: Shot, question: Question, rng: random.Random) -> None:
        super().__init__(shared, shot)
        self._question = question
        self._tokens = question.lengths(rng)
        self._body = question.body(prompt_of(self._tokens, rng))
        self._events = EventParser()
        self._first_reasoning: Moment | None = None
        self._pieces = 0
        self._answer_size = 0
        self._reasoning_events = 0
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._finished = self._done = False

    def request(self) -> Request:
        """See `StreamAttempt.request`."""
        question = self._question
        headers = (
            ("accept", EVENT_STREAM),
            ("content-type", "application/json"),
            *question.headers,
        )
        return Request("POST", self.authority, question.path, headers, self._body)

    def left(self, first: Moment, last: Moment) -> None:
        """See `carriers.AnswerListener.left`. From now on the first token has its own deadline."""
        super().left(first, last)
        if self._question.deadline_ns and not self.arrived:
            self.set_deadline(last, self._question.deadline_ns, self._too_late)

    def accepts(self, headers: tuple[tuple[str, str], ...]) -> Failure | None:
        """See `StreamAttempt.accepts`."""
        kind = dict(headers).get("content-type", "")
        if kind.partition(";")[0].strip().lower() == EVENT_STREAM:
            return None
        detail = f"the answer is no stream of events (content-type {kind[:80]!r})"
        return Failure(FailureKind.PROTOCOL, Stage.PARSE, detail=detail)

    def read(self, data: bytes, moment: Moment) -> None:
        """See `StreamAttempt.read`."""
        for event in self._events.feed(data):
            if self.over:
                return
            if self._done:
                continue  # behind its end a stream says nothing that counts
            self._take_piece(read_event(event), moment)

    def _take_piece(self, piece: Piece, moment: Moment) -> None:
        if piece.error:
            detail = f"error in the stream: {piece.error}"
            self.give_up(Failure(FailureKind.STATUS, Stage.WAIT, detail=detail))
            return
        self._done = piece.done
        self._finished = self._finished or piece.finished
        self._note_usage(piece)
        if piece.reasoning:
            self._reasoning_events += 1
            self._first_reasoning = self._first_reasoning or moment
        if piece.answer or (piece.reasoning and self._question.count_reasoning):
            if len(self.arrived) >= MOST_CHUNKS:
                raise StreamFormatError(f"more than {MOST_CHUNKS} chunks")
            self._answer_size += piece.answer
            self.chunk_came(moment)
            self.clear_deadline()

    def _note_usage(self, piece: Piece) -> None:
        if piece.prompt_tokens is not None:
            self._prompt_tokens = piece.prompt_tokens
        if piece.completion_tokens is not None:
            self._completion_tokens = piece.completion_tokens

    def _too_late(self) -> None:
        limit = self._question.deadline_ns / _MILLISECOND
        detail = f"no token within {limit:g} ms (ttft_deadline_ms)"
        self.give_up(Failure(FailureKind.TIMEOUT, Stage.WAIT, detail=detail))

    def check_whole(self) -> Failure | None:
        """See `StreamAttempt.check_whole`: a stream cut short ends in good order too."""
        if self._done or self._finished:
            return None
        detail = "the stream ended without an end mark"
        return Failure(FailureKind.CLOSED, Stage.WAIT, detail=detail)

    def refusal_text(self, said: bytes) -> str:
        """See `StreamAttempt.refusal_text`: the message of an error object."""
        try:
            known = msgspec.json.decode(said, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return super().refusal_text(said)
        return error_text(known.get("error") or known)

    # What is told at the end

    def emit_chunks(self, failure: Failure | None) -> None:
        """See `StreamAttempt.emit_chunks`."""
        for part in range(1, len(self.arrived)):
            self._emit_gap(part, self.arrived[part - 1], self.arrived[part])
        if failure is not None and self.arrived:
            began = self.arrived[-1].moment.unix_ns
            part = len(self.arrived)
            self._emit(
                missing(self._shot, Metric.DELIVERY_GAP, began, failure, mode=self._mode, part=part)
            )

    def _emit_gap(self, part: int, before: Arrived, now: Arrived) -> None:
        self._emit(
            timed(
                self._shot,
                Metric.DELIVERY_GAP,
                before.moment,
                now.moment,
                mode=self._mode,
                flags=gap_flags(before, now),
                part=part,
            )
        )

    def summary(self) -> Mapping[str, Note]:
        """See `StreamAttempt.summary`."""
        notes: dict[str, Note] = {
            "model": self._question.model,
            "prompt_words": self._tokens,
            "body_bytes": len(self._body),
            "chunks_received": len(self.arrived),
            "answer_characters": self._answer_size,
            "first": "reasoning_or_answer" if self._question.count_reasoning else "answer",
        }
        if self._prompt_tokens is not None:
            notes["prompt_tokens"] = self._prompt_tokens
        if self._completion_tokens is not None:
            notes["completion_tokens"] = self._completion_tokens
        if self._reasoning_events:
            notes["reasoning_chunks"] = self._reasoning_events
        if self._first_reasoning is not None and self._left is not None:
            waited = self._first_reasoning.unix_ns - self._left[1].unix_ns
            notes["first_reasoning_us"] = waited // _MICROSECOND
        if len(self.arrived) > 1:
            moments = [one.moment.unix_ns for one in self.arrived]
            gaps = times.gaps_of(moments)
            notes["stalls"] = times.stalls_in(gaps, self._question.stall_ns)
            notes["burst_index"] = round(times.burst_index_of(gaps), 4)
            notes["coalesced"] = sum(one.joined for one in self.arrived)
            late = max(read_late_ns(one.moment) for one in self.arrived)
            notes["read_late_max_us"] = late // _MICROSECOND
        return notes
