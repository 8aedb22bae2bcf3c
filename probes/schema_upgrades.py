"""Steps that lift a record of an older schema version to the current one, one version at a time.

A step gets the decoded JSON object of one measurement and returns that of the next version. Steps
are never changed once a version is out: files of that version exist.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import SCHEMA_VERSION

Raw = dict[str, Any]
"""One measurement as JSON gives it."""


def _lift_schedule(raw: Raw) -> Raw:
    """1 -> 2: the schedule was an option of the probe; now it is a field of the measurement."""
    options = raw.get("options")
    if not isinstance(options, dict) or "schedule" not in options:
        return raw
    others = {name: value for name, value in options.items() if name != "schedule"}
    return {**raw, "options": others, "schedule": options["schedule"]}


def _as_it_is(raw: Raw) -> Raw:
    """Only fields that may be absent came in.

    2 -> 3: stamps, flow, error, direction. 3 -> 4: transport, part, notes. 4 -> 5: agents' words.
    """
    return raw


STEPS: Mapping[int, Callable[[Raw], Raw]] = {
    1: _lift_schedule,
    **dict.fromkeys((2, 3, 4), _as_it_is),
}
"""Key: the version that the step starts from."""


def upgrade(raw: Raw) -> Raw:
    """`raw` in the current schema version. Raises RecordError for a version unknown here."""
    version = checked_version(raw.get("schema"))
    for step in range(version, SCHEMA_VERSION):
        raw = {**STEPS[step](raw), "schema": step + 1}
    return raw


def checked_version(version: object) -> int:
    """`version` when it is one this program can read; else RecordError saying why not."""
    if version is None:
        raise RecordError("schema: missing; every record says its schema version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise RecordError(f"schema: {version!r} is no version; expected 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"schema: written by a newer pathbudget; schema {version}, "
            f"this one reads up to {SCHEMA_VERSION}"
        )
    return version
