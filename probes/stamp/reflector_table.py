"""What a reflector remembers of its senders, and whom it forgets when it has no room.

A flood from forged addresses begins thousands of sessions of a packet or two. It must push out
neither those that last nor, for long, a sender that begins honestly meanwhile. So who makes room is
the session with the fewest packets, counted in powers of two, and of those the one that has been
silent for longest. Finding it takes no work while packets are answered: sessions stand in queues as
they were when last looked at, and one that has grown since moves on when its turn comes.
"""

from collections import deque

from pathbudget.probes.stamp.authentication import Key, ReplayWindow

SECOND_NS = 1_000_000_000
SWEEP_NS = SECOND_NS
LEVELS = 12
"""Sessions of 2 ** 11 packets and more are all alike."""
FIRST = 1
"""Where sessions of one packet stand."""
SPARED = 16
"""How many are passed over, because they were heard since, before one of them has to go."""

Place = tuple[str, int, str, int]
"""Address and port of the sender, our address, SSID."""


class Session:
    """What is remembered of one sender."""

    __slots__ = (
        "asks",
        "key",
        "last_ns",
        "place",
        "queued_ns",
        "replays",
        "reply",
        "stamped",
        "transmitted",
    )

    def __init__(self, place: Place, key: Key | None, monotonic_ns: int) -> None:
        self.place = place
        self.key = key
        self.replays: ReplayWindow | None = None
        self.last_ns = self.queued_ns = monotonic_ns
        self.transmitted = 0
        self.asks = False
        """Whether it has asked for a Follow-Up: only then a stamp of its replies is awaited."""
        self.reply: tuple[int, int, int] = (0, 0, 0)
        """Sequence, T3 and method of the reply before; zero before the first."""
        self.stamped: tuple[int, int, int] | None = None
        """The same by the kernel's stamp, until it has been told."""


class SessionTable:
    """At most `most` sessions, at least one. One that was silent for `idle_ns` may be forgotten at
    any time; of others only as many as new ones need room. Times are those of a monotonic clock.
    """

    def __init__(self, most: int, idle_ns: int) -> None:
        self.by_place: dict[Place, Session] = {}
        self._most = max(1, most)
        self._idle_ns = idle_ns
        self._queues: tuple[deque[Session], ...] = tuple(deque() for _ in range(LEVELS + 1))
        self._swept_ns: int | None = None

    def begin(self, place: Place, key: Key | None, monotonic_ns: int) -> Session:
        """A new session."""
        if len(self.by_place) >= self._most:
            self._sweep(monotonic_ns)
            if len(self.by_place) >= self._most:
                self._make_room()
        session = self.by_place[place] = Session(place, key, monotonic_ns)
        self._queues[FIRST].append(session)
        return session

    def _sweep(self, monotonic_ns: int) -> None:
        """Forget the silent ones; not more often than once a second."""
        if self._swept_ns is not None and monotonic_ns - self._swept_ns < SWEEP_NS:
            return
        self._swept_ns = monotonic_ns
        oldest = monotonic_ns - self._idle_ns
        for queue in self._queues:
            for _ in range(len(queue)):
                session = queue.popleft()
                if session.last_ns < oldest:
                    del self.by_place[session.place]
                else:
                    queue.append(session)

    def _make_room(self) -> None:
        for level, queue in enumerate(self._queues):
            spared = 0
            while queue:
                session = queue.popleft()
                grown = max(level, min(session.transmitted.bit_length(), LEVELS))
                heard = session.last_ns != session.queued_ns and spared < SPARED
                if grown == level and not heard:
                    del self.by_place[session.place]
                    return
                spared += grown == level
                session.queued_ns = session.last_ns
                self._queues[grown].append(session)
