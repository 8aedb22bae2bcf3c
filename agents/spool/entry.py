"""What waits in a spool until somebody vouches for it, and how much of it there is."""

import msgspec


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One measurement on its way. Delivered at least once; its id makes the second one harmless."""

    number: int
    """Its place in the spool: rises by one, never used again, gaps where something was dropped."""
    id: str
    """`Measurement.id`."""
    samples: int
    """How many it holds, so that what is dropped can be counted without reading it."""
    appended_unix_ns: int
    payload: bytes
    """`codec.encode_line` of the measurement."""


class SpoolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much waits. `made` = `acknowledged` + `dropped` + `waiting`, in samples, always."""

    waiting_entries: int = 0
    waiting_bytes: int = 0
    waiting_samples: int = 0
    oldest_unix_ns: int | None = None
    """When the oldest that waits was appended."""
    made_samples: int = 0
    acknowledged_samples: int = 0
    dropped_samples: dict[str, int] = {}
    """By reason: ``bytes``, ``age``, ``disk_full``, ``disk_error``, ``torn``, ``undeliverable``."""
