"""The clock that a reflector puts into its packets: that of this host, or one wrong on purpose.

Every stamp of a reflector passes through one `StampClock`: the kernel's, and its own readings. So a
test or a lab can give a site the clock of a badly kept host, and nothing else has to know.
"""

from dataclasses import dataclass
from typing import Protocol

from pathbudget.probes.clock import Clock


class StampClock(Clock, Protocol):
    """A clock that also says what it would have shown when the kernel took a stamp."""

    @property
    def clock(self) -> Clock:
        """That of the host, which it is made of: somebody may set it."""
        ...

    def of_kernel(self, kernel_unix_ns: int) -> int:
        """The stamp as this clock shows it."""
        ...


@dataclass(frozen=True, slots=True)
class HostClock:
    """The clock of this host, as it is."""

    clock: Clock

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return self.clock.monotonic_ns()

    def unix_ns(self) -> int:
        """See `Clock.unix_ns`."""
        return self.clock.unix_ns()

    def of_kernel(self, kernel_unix_ns: int) -> int:
        """See `StampClock.of_kernel`."""
        return kernel_unix_ns


@dataclass(frozen=True, slots=True)
class Skew:
    """How wrong a clock is: `offset_ns` at the start, running `ppm` too fast, and one step of
    `step_ns` when `step_after_ns` of true time have passed. `stated_error_ns` is the bound that it
    claims for itself, true or not; None: nobody vouches for it.
    """

    offset_ns: int = 0
    ppm: float = 0.0
    step_ns: int = 0
    step_after_ns: int = 0
    stated_error_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SkewedClock:
    """An affine map of the clock of this host from `start_unix_ns` on. The monotonic clock is left
    alone: it only measures how long a session has been silent.
    """

    clock: Clock
    skew: Skew
    start_unix_ns: int

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return self.clock.monotonic_ns()

    def unix_ns(self) -> int:
        """See `Clock.unix_ns`."""
        return self.of_kernel(self.clock.unix_ns())

    def of_kernel(self, kernel_unix_ns: int) -> int:
        """See `StampClock.of_kernel`."""
        passed = kernel_unix_ns - self.start_unix_ns
        shown = kernel_unix_ns + self.skew.offset_ns + round(passed * self.skew.ppm / 1e6)
        return shown + self.skew.step_ns if passed >= self.skew.step_after_ns else shown
