"""What a tier adds up to, and whether that fits its target.

A tier fits when its allowances together stay within its target. Allowances are set by people, so
they do add up; *measured* percentiles do not, and the analysis never adds those.
"""

import math

from pathbudget.sites.catalogue import Tier

NETWORK = "network"
"""The component that this product measures."""

MODES = ("cold", "resumed", "warm")
"""Connection modes that can be measured, and so can be part of a mixture."""

HEADLINE_MODES = (*MODES, "mixture")


def total_ms(tier: Tier) -> float:
    """Sum of the allowances in ms, rounded only as far as binary fractions force it."""
    return math.fsum(tier.components.values())


def headroom_ms(tier: Tier) -> float:
    """What the allowances leave of the target; negative when they do not fit."""
    return tier.target_ms - total_ms(tier)


def fits(tier: Tier) -> bool:
    """Whether the allowances fit the target (equality fits; 1e-9 ms are forgiven)."""
    return headroom_ms(tier) >= -1e-9
