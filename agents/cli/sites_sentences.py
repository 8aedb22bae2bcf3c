"""What is said of a choice of sites in words: its value, its proof, what a loss leaves."""

from pathbudget.agents.cli import sites_cells as cells
from pathbudget.analysis.report.words import listed, share
from pathbudget.analysis.siting.decision import Decision, FrontierPoint, LossOf

GUESS = "~"
"""Stands before every number that a model filled in."""


def of_what(decision: Decision) -> str:
    """What the value is of, with what goes before it."""
    words = {"p-median": "mean over the traffic", "p-center": "the region that is worst off"}
    what = words.get(decision.objective, "of the traffic within the allowance")
    if decision.within_share is not None:
        what += f" and with its backups ({share(decision.within_share)} within it at all)"
    if decision.unit == "share" or decision.served_share > 1 - 1e-9:
        return f" {what}" if decision.unit == "share" else f", {what}"
    return f", {what} served ({share(decision.served_share)})"


def marked(one: Decision | LossOf | FrontierPoint, unit: str) -> str:
    """A value, marked where any of its traffic is served by a filled pair."""
    return (GUESS if one.filled_share > 0 else "") + cells.figure(one.value, unit)


def guessed(decision: Decision) -> str:
    """How much of the traffic is served by filled pairs; empty for none."""
    part = decision.filled_share
    return f" Filled pairs (~) serve {share(part)} of it." if part > 0 else ""


def proof_sentence(decision: Decision) -> str:
    """Whether a better choice is known not to be."""
    if decision.method.startswith("least mean"):
        if decision.proved:
            return "Of all choices that keep the constraints it has the least mean over the draws."
        return "It has the least mean over the draws of the choices looked at: no proof."
    if decision.proved:
        return "Proved: no choice that keeps the constraints does better."
    if decision.gap is None:
        return "Not proved within the time, and no bound is known (--seconds)."
    return f"Not proved within the time: no choice is better by more than {decision.gap:.2%}."


def proof(proved: bool, gap: float | None) -> str:
    """The same in a word or two, for a table."""
    return "proved" if proved else "no bound" if gap is None else f"gap {gap:.1%}"


def loss_sentence(decision: Decision, lost: LossOf) -> str:
    """What is left without a site, and who is not served."""
    if lost.value is None:
        return f"Without {lost.lost_site}: nobody is served."
    text = f"Without {lost.lost_site}: {marked(lost, decision.unit)}"
    if decision.within_share is not None:
        text += ", with backups or without"
    if lost.unserved_share > 1e-9:
        text += (
            f", {share(lost.unserved_share)} of the traffic not served ({listed(lost.unserved)})"
        )
    return text + "."
