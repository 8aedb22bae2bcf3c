"""Which pathbudget this is."""

import functools
from importlib.metadata import version


@functools.cache
def software_name() -> str:
    """What goes into `Measurement.software`: ``pathbudget 0.1.0``."""
    return f"pathbudget {version('pathbudget')}"
