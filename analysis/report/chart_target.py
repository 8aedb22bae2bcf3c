"""The target of a tier, as charts of its budget show it."""

from pathbudget.analysis.report.chart import INK, QUIET, Trace
from pathbudget.analysis.report.words import given
from pathbudget.analysis.results import TierInfo


def target_line(tier: TierInfo) -> Trace:
    """A dotted line from top to bottom."""
    return {
        "type": "line",
        "x0": tier.target_ms,
        "x1": tier.target_ms,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": INK, "width": 1.5, "dash": "dot"},
    }


def target_word(tier: TierInfo) -> Trace:
    """What it is, below the line."""
    return {
        "x": tier.target_ms,
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -16,
        "text": f"target {given(tier.target_ms)}",
        "showarrow": False,
        "font": {"size": 12, "color": QUIET},
    }
