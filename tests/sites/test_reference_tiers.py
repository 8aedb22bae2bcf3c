"""The reference tiers are the ones that were agreed, to the millisecond."""

import pytest

from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.tiers import fits, headroom_ms, shares, total_ms

AGREED = {
    # name: target, sum, network, gateway, retrieval, tokenization, TTFT, 10 tokens, guardrail
    "voice-ai": (400, 318, 25, 5, None, 3, 90, 180, 15),
    "chat": (800, 513, 45, 10, 40, 8, 160, 220, 30),
    "rag": (1500, 1110, 70, 15, 250, 35, 380, 280, 80),
}
PARTS = (
    "network",
    "gateway_and_auth",
    "retrieval",
    "tokenization",
    "ttft",
    "first_10_tokens",
    "guardrail",
)
PROMPTS = {"voice-ai": (800,), "chat": (4000,), "rag": (32000, 64000)}
"""200, 1,000, and 8,000 and 16,000 tokens at 4 bytes."""


@pytest.mark.parametrize("name", AGREED)
def test_every_allowance_the_sum_and_the_verdict(name: str) -> None:
    tier = load_catalogue([]).tiers[name]
    target, total, *parts = AGREED[name]
    assert tier.target_ms == target
    assert total_ms(tier) == total
    assert tuple(tier.components.get(part) for part in PARTS) == tuple(parts)
    assert set(tier.components) <= set(PARTS)
    assert headroom_ms(tier) == target - (total or 0)
    assert fits(tier)


def test_percentile_modes_prompts_and_mixture() -> None:
    tiers = load_catalogue([]).tiers
    assert list(tiers) == ["voice-ai", "chat", "rag"]
    for name, tier in tiers.items():
        assert (tier.percentile, tier.mode, tier.transport) == (95, "warm", "tls")
        assert tier.prompt_sizes == PROMPTS[name]
        assert tier.mixture == {"warm": 0.90, "resumed": 0.08, "cold": 0.02}
        assert shares(tier) == {(tier.transport, mode): w for mode, w in tier.mixture.items()}
        assert tier.network_allowance_ms == tier.components["network"]
