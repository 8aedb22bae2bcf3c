"""How this process gives memory back: not at all while it works on a lake, as before after it.

By itself the C library maps each large array anew and unmaps it when it is dropped, so that the
kernel clears every page of it again: a fourth of all the time of a lake, where arrays come and go
by the thousand. What is kept instead is as much as one portion needs at its height.
"""

import ctypes
from collections.abc import Callable

# malloc.h of glibc: two settings, and what they are without a word from anybody.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_USUAL = {_TRIM_THRESHOLD: 128 * 1024, _MMAP_MAX: 65_536}
_KEEPING = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_MAX: 0}


def keep_memory() -> None:
    """Keep freed memory for the next array."""
    _set(_KEEPING)


def give_memory_back() -> None:
    """Give it back to the system, now and from now on."""
    _set(_USUAL)
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def _set(settings: dict[int, int]) -> None:
    change = _function("mallopt")
    if change is not None:
        for name, value in settings.items():
            change(name, value)


def _function(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it has no such, as musl."""
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found
