"""Why a plan is not taken. The agent goes on with the one that it has."""

from enum import StrEnum

from pathbudget.probes.errors import PathbudgetError


class RefusalReason(StrEnum):
    """A closed list, for logs, heartbeats and alerts."""

    UNREADABLE = "unreadable"
    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    WRONG_SIGNATURE = "wrong_signature"
    OTHER_AGENT = "other_agent"
    EXPIRED = "expired"
    NOT_YET = "not_yet"
    REPLAYED = "replayed"
    OUT_OF_POLICY = "out_of_policy"
    BUSY = "busy"
    """Of a request alone: another one is being carried out."""


class PlanRefusedError(PathbudgetError):
    """A plan is not to be carried out. `reason` is the word for machines, the text for people."""

    def __init__(self, reason: RefusalReason, text: str) -> None:
        super().__init__(f"plan refused ({reason}): {text}")
        self.reason = reason
