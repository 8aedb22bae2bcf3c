"""How far the run of one vantage is; everybody who takes part in it writes here."""

from dataclasses import dataclass, field

from pathbudget.probes.record import NoiseFloor


@dataclass(slots=True)
class Progress:
    """`reached_ns` is the offset up to which every send has been made."""

    fired: int = 0
    octets: int = 0
    """What all that was fired has put on the wire, by the cost of the probes (`contract.Cost`)."""
    samples: int = 0
    failures: dict[str, int] = field(default_factory=dict[str, int])
    """Probes that failed, by kind of failure."""
    unresolved: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Those of them that were not sent because a name led nowhere: by host, then by kind."""
    reached_ns: int = 0
    problems: list[str] = field(default_factory=list[str])
    noise: NoiseFloor | None = None
    """What this host has been like in the last few seconds."""
