"""What one event of an OpenAI-compatible stream holds. Pure; nothing it says is taken on trust.

Services differ: a first delta with a role and no text, reasoning beside or before the answer,
several tokens in one event, tool calls instead of text, usage in an event without choices, errors
in the middle of a stream with status 200. Read here:

    choices[].delta.content     text, or a list of parts     the answer
    choices[].delta.tool_calls, function_call, refusal       the answer too
    choices[].text                                           the answer (older completions)
    choices[].delta.reasoning_content, reasoning, thinking parts      reasoning
    usage.prompt_tokens, usage.completion_tokens             annotation
    error, or an event of the name `error`                   the end
"""

from typing import NamedTuple, cast

import msgspec

from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.sse import ServerEvent

DONE = "[DONE]"
_ANSWER = ("tool_calls", "function_call", "refusal", "audio")
_REASONING = ("reasoning_content", "reasoning")


class Piece(NamedTuple):
    """What one event holds. `answer` and `reasoning` are lengths in characters (1 for a tool call
    without text); `error` is what went wrong, in the server's words.
    """

    answer: int = 0
    reasoning: int = 0
    done: bool = False
    finished: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str = ""


def read_event(event: ServerEvent) -> Piece:
    """Read one event.

    Raises:
        StreamFormatError: it is no JSON object.
    """
    text = event.data
    if text.strip() == DONE:
        return Piece(done=True)
    try:
        decoded: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise StreamFormatError(f"an event that is no JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise StreamFormatError("an event that is no JSON object")
    known = cast("dict[str, object]", decoded)
    failed = known.get("error")
    if failed or event.kind == "error":
        return Piece(error=error_text(failed or known))
    return _read_object(known)


def error_text(error: object) -> str:
    """The message of an error object, or what stands there instead; one line, not too long."""
    if isinstance(error, dict):
        known = cast("dict[str, object]", error)
        error = known.get("message") or known.get("code") or known.get("type") or "unnamed"
    return " ".join(str(error).split())[:200]


def _read_object(known: dict[str, object]) -> Piece:
    answer = reasoning = 0
    finished = False
    for choice in _objects(known.get("choices")):
        delta = choice.get("delta")
        if isinstance(delta, dict):
            said, thought = _read_delta(cast("dict[str, object]", delta))
            answer += said
            reasoning += thought
        answer += _length(choice.get("text"))
        finished = finished or choice.get("finish_reason") is not None
    usage = known.get("usage")
    counts = cast("dict[str, object]", usage) if isinstance(usage, dict) else {}
    return Piece(
        answer,
        reasoning,
        finished=finished,
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def _read_delta(delta: dict[str, object]) -> tuple[int, int]:
    """Lengths of answer and of reasoning."""
    content = delta.get("content")
    answer = _length(content)
    reasoning = sum(_length(delta.get(name)) for name in _REASONING)
    for part in _objects(content):
        if part.get("type") == "thinking":
            reasoning += 1
        else:
            answer += _length(part.get("text"))
    answer += sum(1 for name in _ANSWER if delta.get(name))
    return answer, reasoning


def _objects(value: object) -> list[dict[str, object]]:
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None
