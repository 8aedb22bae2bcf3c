"""Which datagram of ours an ICMP error quotes, where nothing but its payload is known. No I/O."""

from collections import deque
from dataclasses import dataclass, field

REMEMBERED = 65_536
"""Datagrams, of all flows together."""

Place = tuple[int, str, int]
"""Our port, the other address, its port."""


@dataclass(slots=True)
class _Flow:
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """By payload."""
    lengths: set[int] = field(default_factory=set[int])


class SentPayloads:
    """What was sent, until it is too long ago. Within a flow payloads have to differ."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._flows: dict[Place, _Flow] = {}
        self._order: deque[tuple[Place, bytes]] = deque()

    def add(self, place: Place, payload: bytes, headers: bytes) -> None:
        """A datagram leaves; `headers` is what stands before its payload."""
        flow = self._flows.get(place)
        if flow is None:
            flow = self._flows[place] = _Flow()
        if payload not in flow.headers:
            self._order.append((place, payload))
        flow.headers[payload] = headers
        flow.lengths.add(len(payload))
        if len(self._order) > self._remembered:
            self._forget(*self._order.popleft())

    def find(self, place: Place, quoted: bytes) -> bytes | None:
        """The headers of the one datagram that this quotes; None of none, or of several."""
        flow = self._flows.get(place)
        if flow is None:
            return None
        for length in sorted(flow.lengths, reverse=True):
            headers = flow.headers.get(quoted[:length]) if length <= len(quoted) else None
            if headers is not None:
                return headers
        # Cut short, and perhaps filled up with zeros (RFC 4884 section 5.1).
        begun = quoted.rstrip(b"\0")
        if not begun:
            return None
        fits = [head for payload, head in flow.headers.items() if payload.startswith(begun)]
        return fits[0] if len(fits) == 1 else None

    def _forget(self, place: Place, payload: bytes) -> None:
        flow = self._flows[place]
        del flow.headers[payload]
        if not flow.headers:
            del self._flows[place]
