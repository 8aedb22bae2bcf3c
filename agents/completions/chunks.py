"""What goes over the wire: the JSON of an OpenAI-compatible service. No socket, no clock."""

from collections.abc import Mapping, Sequence

import msgspec

COMPLETIONS_PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"
WORDS = ("The", " path", " is", " longer", " than", " it", " looks", ",", " and", " so", " on", ".")


class Message(msgspec.Struct):
    """One message of a request; text, or a list of parts."""

    content: str | list[dict[str, object]] | None = None


class StreamOptions(msgspec.Struct):
    """What a client wants to know beside the text."""

    include_usage: bool = False


class Asked(msgspec.Struct):
    """A request, as far as it matters here."""

    model: str = ""
    messages: list[Message] = []
    stream: bool = False
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream_options: StreamOptions | None = None

    @property
    def prompt_words(self) -> int:
        """Words of all messages: what counts as tokens here."""
        return sum(len(_text(message.content).split()) for message in self.messages)

    @property
    def limit(self) -> int | None:
        """How many tokens the client wants at most."""
        given = [n for n in (self.max_tokens, self.max_completion_tokens) if n is not None]
        return max(1, min(given)) if given else None


def _text(content: str | list[dict[str, object]] | None) -> str:
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content or ())


def read_request(body: bytes) -> Asked:
    """Raises ValueError where it is no request."""
    return msgspec.json.decode(body, type=Asked)


def words(first: int, count: int) -> str:
    """Text of so many tokens, from a place in the answer on."""
    return "".join(WORDS[n % len(WORDS)] for n in range(first, first + count))


class Envelope:
    """Writes the events of one answer."""

    def __init__(self, number: int, model: str, created: int) -> None:
        self._fixed = {
            "id": f"chatcmpl-{number:08x}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }

    def delta(self, delta: Mapping[str, str], finish: str | None = None) -> bytes:
        """A piece of the answer."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._event([choice])

    def usage(self, prompt: int, completion: int) -> bytes:
        """The counts of tokens, in an event without choices."""
        counts = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        return self._event([], usage=counts)

    def whole(self, text: str, prompt: int, completion: int) -> bytes:
        """An answer that is no stream."""
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        fixed = {**self._fixed, "object": "chat.completion"}
        return msgspec.json.encode({**fixed, "choices": choices, "usage": usage})

    def _event(self, choices: Sequence[object], **more: object) -> bytes:
        return event(msgspec.json.encode({**self._fixed, "choices": choices, **more}))


def event(data: bytes) -> bytes:
    """One server-sent event."""
    return b"data: " + data + b"\n\n"


def error_body(message: str, kind: str) -> bytes:
    """An error object."""
    return msgspec.json.encode({"error": {"message": message, "type": kind, "code": None}})


END_MARK = event(b"[DONE]")
