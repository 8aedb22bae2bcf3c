"""When bytes came, and who says so."""

from typing import NamedTuple

from pathbudget.agents.reflector.clocks import StampClock


class Came(NamedTuple):
    """One arrival: monotonic as it was read, and by the reflector's wall clock; that is the
    kernel's stamp where `kernel` is true.
    """

    monotonic_ns: int
    unix_ns: int
    kernel: bool


def came_now(clock: StampClock, kernel_unix_ns: int | None) -> Came:
    """What was read a moment ago, with the kernel's stamp if there is one."""
    if kernel_unix_ns is None:
        return Came(clock.monotonic_ns(), clock.unix_ns(), kernel=False)
    return Came(clock.monotonic_ns(), clock.of_kernel(kernel_unix_ns), kernel=True)
