"""What a whole budget is asked for."""

from dataclasses import dataclass

from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.whole_budget.results import Combine
from pathbudget.analysis.whole_budget.selection import Selection
from pathbudget.sites.catalogue import Tier


@dataclass(frozen=True, slots=True)
class Request:
    """What a whole budget is asked for. `combine` None: joint where ids allow it."""

    region: str
    site: str
    tier: Tier
    selection: Selection
    combine: Combine | None = None
    confidence: float = 0.95
    noise_floor_ns: float = 0.0
    cautions: tuple[str, ...] = ()
    """Reasons not to believe a pass."""

    @property
    def p(self) -> float:
        """The tier's percentile as a share."""
        return self.tier.percentile / 100

    @property
    def target_ns(self) -> float:
        """What the whole may take."""
        return self.tier.target_ms * NS_PER_MS
