"""Whether a message is a measurement of the agent whose subject it came by.

An agent may publish under its own name alone, but what is in the message is its own word.
"""

from collections.abc import Mapping
from enum import StrEnum

from pathbudget.agents.bus.packing import PackingError, unpacked
from pathbudget.agents.bus.subjects import RESULTS
from pathbudget.agents.plans.plan import AGENT_NAME
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import Measurement


class Fault(StrEnum):
    """What is wrong with a message; the same one again is no better."""

    SUBJECT = "subject"
    """Not one of results of an agent."""
    PACKING = "packing"
    """Damaged, too large, or of another encoding."""
    UNREADABLE = "unreadable"
    """No measurement of this version."""
    OTHER_AGENT = "other_agent"
    """A measurement of another vantage than the agent's."""
    UNSTORABLE = "unstorable"
    """A value that no table can hold."""


class RejectedError(ValueError):
    """`fault` says it in a word, the text in a sentence."""

    def __init__(self, fault: Fault, text: str) -> None:
        self.fault = fault
        super().__init__(text)


def measurement_of(subject: str, data: bytes, headers: Mapping[str, str] | None) -> Measurement:
    """Raises RejectedError."""
    agent = subject.removeprefix(f"{RESULTS}.")
    if agent == subject or not AGENT_NAME.fullmatch(agent):
        raise RejectedError(Fault.SUBJECT, f"subject {subject[:80]!r}")
    try:
        found = decode_line(unpacked(data, headers))
    except PackingError as error:
        raise RejectedError(Fault.PACKING, str(error)) from None
    except (RecordError, RecursionError, UnicodeDecodeError) as error:
        raise RejectedError(Fault.UNREADABLE, str(error)) from None
    if found.vantage.name != agent:
        name = found.vantage.name[:80]
        raise RejectedError(Fault.OTHER_AGENT, f"vantage {name!r} under the subject of {agent}")
    return found
