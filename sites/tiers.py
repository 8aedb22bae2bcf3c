"""What a tier adds up to, and whether that fits its target.

A tier fits when its allowances together stay within its target. Allowances are set by people, so
they do add up; *measured* percentiles do not, and the analysis never adds those.
"""

import math

from pathbudget.sites.catalogue import Tier

NETWORK = "network"
"""The component that this product measures."""

MODES = ("cold", "resumed", "early_data", "idle", "warm")
"""Connection modes that can be measured, and so can be part of a mixture."""

TRANSPORTS = ("tls", "quic")
"""What carries requests: TLS over TCP, or QUIC."""

HEADLINE_MODES = (*MODES, "mixture")

Carriage = tuple[str, str]
"""Transport and connection mode."""


def mixture_keys(transport: str) -> dict[str, Carriage]:
    """Every word that may stand in a mixture, and what it means in a tier of that transport.

    ``cold`` is over the transport of the tier; ``quic-cold`` says which.
    """
    own = {mode: (transport, mode) for mode in MODES}
    return own | {f"{its}-{mode}": (its, mode) for its in TRANSPORTS for mode in MODES}


def shares(tier: Tier) -> dict[Carriage, float]:
    """Share of the traffic by transport and connection mode, without those of no traffic."""
    meaning = mixture_keys(tier.transport)
    return {meaning[key]: share for key, share in tier.mixture.items() if share > 0}


def total_ms(tier: Tier) -> float:
    """Sum of the allowances in ms, rounded only as far as binary fractions force it."""
    return math.fsum(tier.components.values())


def headroom_ms(tier: Tier) -> float:
    """What the allowances leave of the target; negative when they do not fit."""
    return tier.target_ms - total_ms(tier)


def fits(tier: Tier) -> bool:
    """Whether the allowances fit the target (equality fits; 1e-9 ms are forgiven)."""
    return headroom_ms(tier) >= -1e-9
