"""Which answer of a session waits for the kernel's T3, and whether waiting is worth it.

A Follow-Up tells of the reply before when it really left. A reflector that knows no Follow-Up or
keeps no state says so, and one without kernel stamps tells again the T3 that the reply carried
itself: then nothing waits, until it has something to tell after all.
"""

from pathbudget.probes.stamp.flights import Flight
from pathbudget.probes.stamp.tlvs import FollowUp

USELESS = 4
"""So many Follow-Ups in a row that tell nothing, and the next answers do not wait for one."""


class FollowUps:
    """The Follow-Ups of one session. `known` is whether the reflector may send any."""

    __slots__ = ("_before", "_useless", "held", "known")

    def __init__(self, *, known: bool) -> None:
        self.known = known
        self.held: Flight | None = None
        """The last answered packet, while it waits."""
        self._before = (-1, 0)
        """The reflector's number and T3 of the answer before."""
        self._useless = 0

    def answered(self, flight: Flight, follow_up: FollowUp | None) -> Flight | None:
        """The next answer has come: that of `flight`, which may have to wait now. Returns the one
        that has waited; it is told the T3 of the kernel where that is known.
        """
        answer, waited, self.held = flight.answer, self.held, None
        assert answer is not None
        own, left = answer.own, answer.left
        if follow_up is None or (own != 0 and follow_up[1] == 0):
            self.known = False
            return waited
        sequence, timestamp, _ = follow_up
        before, self._before = self._before, (own, left)
        if sequence == before[0]:
            if timestamp == before[1]:
                self._useless += 1
            else:
                self._useless = 0
                if waited is not None:
                    waited.left_by_kernel = timestamp
        if self._useless < USELESS:
            self.held = flight
        return waited

    def wait_no_longer(self, flight: Flight) -> None:
        """Its deadline has come."""
        if self.held is flight:
            self.held = None
