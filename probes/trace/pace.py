"""When the next packets may leave: one rate for all traces, slower where routers ration answers.

Pace      packets per second of the whole probe, both families together
HopPaces  of one trace: hop limits at which answers stopped coming are asked less often
"""

SECOND_NS = 1_000_000_000
BURST_NS = 4_000_000
"""What was not used of the rate is not saved up for longer: about as late as a busy loop is."""
FIRST_SPACING_NS = 50_000_000
SPACING_OF_SILENCE_NS = 200_000_000
"""At most, while nothing says that who was silent would ever answer."""
LONGEST_SPACING_NS = 1_200_000_000
"""Linux answers one packet a second per destination by default, once its burst is used up."""
NO_SPACING_NS = 20_000_000


class Pace:
    """Permits, at most `per_second` of them over any time longer than `BURST_NS`."""

    def __init__(self, per_second: int) -> None:
        self._gap_ns = SECOND_NS / per_second
        self._next_ns = 0.0

    def take(self, now_ns: int, most: int) -> int:
        """How many may leave now, `most` at most; they are taken to have left."""
        begins = max(self._next_ns, now_ns - BURST_NS)
        count = min(most, int((now_ns - begins) / self._gap_ns) + 1) if begins <= now_ns else 0
        if count > 0:
            self._next_ns = begins + count * self._gap_ns
        return max(0, count)

    def next_ns(self) -> int:
        """When the next one may leave."""
        return int(self._next_ns) + 1


class HopPaces:
    """By hop limit, how far apart packets have to be, and when the next may leave."""

    def __init__(self) -> None:
        self._spacing: dict[int, int] = {}
        self._free: dict[int, int] = {}

    def due_ns(self, limit: int, now_ns: int) -> int:
        """When a packet with this hop limit may leave; it is taken to leave then."""
        spacing = self._spacing.get(limit)
        if not spacing:
            return now_ns
        due = max(now_ns, self._free.get(limit, 0))
        self._free[limit] = due + spacing
        return due

    def unanswered(self, limit: int, *, rationed: bool) -> None:
        """No answer, though others have been answered there; `rationed`: some only when they asked
        again.
        """
        longest = LONGEST_SPACING_NS if rationed else SPACING_OF_SILENCE_NS
        spacing = self._spacing.get(limit, 0)
        self._spacing[limit] = min(max(FIRST_SPACING_NS, 2 * spacing), longest)

    def answered(self, limit: int) -> None:
        """An answer: a little faster again."""
        spacing = self._spacing.get(limit)
        if spacing:
            slower = spacing * 3 // 4
            self._spacing[limit] = slower if slower > NO_SPACING_NS else 0
