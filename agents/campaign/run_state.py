"""What must outlive a controller so that a campaign can be resumed: its plan, and how far it got.

One small JSON file per unfinished run in the spool, replaced atomically; gone when the run is done.
"""

from pathlib import Path

import msgspec

from pathbudget.agents.campaign.plan import CampaignPlan
from pathbudget.agents.store.disk import replace_file
from pathbudget.probes.errors import SpoolError

SUFFIX = ".run.json"


class RunState(msgspec.Struct, frozen=True):
    """An unfinished run. `reached_ns` per vantage: every send before it has been made."""

    plan: CampaignPlan
    campaign_file: str
    digest: str
    """Of the campaign file and its catalogue: a changed plan cannot be resumed."""
    reached_ns: dict[str, int]
    hosts: str = ""
    """The hosts file, where the vantages are measured from over SSH."""


def path_of(spool: Path, run_id: str) -> Path:
    """Where the state of a run is."""
    return spool / f"{run_id}{SUFFIX}"


def save(spool: Path, state: RunState) -> None:
    """Replace what was saved before, durably. Raises SpoolError."""
    target = path_of(spool, state.plan.run_id)
    try:
        replace_file(target, msgspec.json.encode(state))
    except OSError as error:
        raise SpoolError(f"cannot write {target}: {error.strerror}") from error


def unfinished(spool: Path, campaign_file: Path) -> RunState | None:
    """The latest unfinished run of a campaign file; None when there is none."""
    wanted = str(campaign_file.resolve())
    for path in sorted(spool.glob(f"*{SUFFIX}"), reverse=True):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=RunState)
        except (OSError, msgspec.DecodeError) as error:
            raise SpoolError(f"cannot read {path}: {error}; remove it to start anew") from error
        if state.campaign_file == wanted:
            return state
    return None


def remove(spool: Path, run_id: str) -> None:
    """The run is done."""
    path_of(spool, run_id).unlink(missing_ok=True)
