"""What a look has left open, and what would close it."""

import shlex
from collections.abc import Sequence

from pathbudget.analysis.results import BudgetLine, Evaluation, Verdict

LONGER_S = (60, 300, 600)
"""What is suggested, each after a look of less."""


def more_would_help(evaluation: Evaluation) -> bool:
    """Whether a headline line is open because its interval is too wide."""
    return any(_too_wide(line) for line in evaluation.lines)


def advice(evaluation: Evaluation, hosts: Sequence[str], lasted_s: float) -> str:
    """The command that probably decides, as a sentence; empty where more samples would not."""
    open_hosts = [
        host
        for host in hosts
        if any(line.site == host and _too_wide(line) for line in evaluation.lines)
    ]
    if not open_hosts:
        return ""
    longer_s = next((one for one in LONGER_S if one >= 2 * lasted_s), None)
    if longer_s is None:
        return "More time may decide it: measure by a campaign (docs/campaign.md)."
    command = shlex.join(["pathbudget", "check", *open_hosts, "--duration", f"{longer_s}s"])
    return f"More time may decide it: {command}"


def _too_wide(line: BudgetLine) -> bool:
    """The allowance lies in the interval; a refusal, or noise of the host, is another matter."""
    if not line.headline or line.verdict is not Verdict.UNDECIDED or line.allowance_ms is None:
        return False
    if line.low_ms is None or line.low_ms > line.allowance_ms:
        return False
    return line.high_ms is None or line.high_ms > line.allowance_ms
