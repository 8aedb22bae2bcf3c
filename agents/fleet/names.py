"""How agents are named, and what the bus calls what is theirs.

A name goes into subjects, files and credentials, so it is letters, digits and hyphens and nothing
else: no dot (NATS), no slash (paths), no wildcard.
"""

import re

from pathbudget.probes.errors import ConfigError, Fault

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
RULE = "1 to 63 of a-z, 0-9 and hyphens, no hyphen first or last"

MEASUREMENT_STREAM = "PATHBUDGET_MEASUREMENTS"
PLAN_BUCKET = "pathbudget-plans"
HEARTBEAT_BUCKET = "pathbudget-heartbeats"


def checked_name(name: str, place: str = "agent") -> str:
    """`name` if an agent can be called so. Raises ConfigError with `place` and the rule."""
    if not NAME.fullmatch(name):
        raise ConfigError([Fault("", place, f"{name!r} is no name of an agent", RULE)])
    return name


def measurement_subject(agent: str) -> str:
    """Where an agent publishes what it measured."""
    return f"pathbudget.measurements.{agent}"


def request_subject(agent: str) -> str:
    """Where an agent is asked to probe something now."""
    return f"pathbudget.requests.{agent}"
