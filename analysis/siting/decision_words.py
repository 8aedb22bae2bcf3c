"""What was asked of a decision and what its numbers rest on, in sentences."""

import numpy as np

from pathbudget.analysis.siting.filling import Filling
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.vocabulary import Aim
from pathbudget.analysis.siting.wishes import Wishes
from pathbudget.analysis.siting.words import listing

OBJECTIVES = {
    Aim.P_MEDIAN: "the smallest mean over the traffic",
    Aim.P_CENTER: "the smallest cost of the region that is worst off",
    Aim.COVERING: "the most traffic within the allowance",
}


def asked(scene: Scene, wishes: Wishes) -> tuple[str, ...]:
    """The constraints, one sentence each."""
    count = "any number of sites" if wishes.k is None else _count(wishes.k)
    found = [f"{count}: {OBJECTIVES[wishes.objective]}"]
    if len(scene.tiers) > 1:
        shares = {row.tier: row.share for row in scene.rows}
        mix = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        found.append(f"one choice for {mix} of the traffic")
    if wishes.must_have:
        found.append(f"with {listing(wishes.must_have)}")
    if wishes.must_not:
        found.append(f"without {listing(wishes.must_not)}")
    if wishes.budget is not None:
        found.append(f"at most {wishes.budget:,.10g} per month")
    if wishes.power_cap_kw is not None:
        found.append(f"at most {wishes.power_cap_kw:,.10g} kW together")
    if wishes.power_kw is not None:
        found.append(
            f"the traffic needs {wishes.power_kw:,.10g} kW; no site gives more than it has"
        )
    if wishes.capacity:
        found.append("no site above its capacity")
    if wishes.backup:
        further = "site" if wishes.backup == 1 else "sites"
        within = wishes.backup_within_ms
        limit = "" if within is None else f" within {within:g} ms"
        counted = wishes.objective is Aim.COVERING and not wishes.serve_all
        whom = "for every region that counts" if counted else "for every region"
        found.append(f"{wishes.backup} further {further} {whom}{limit}")
    if wishes.serve_all:
        found.append("every region served")
    return tuple(found)


MOST_NAMES = 10


def _count(k: int) -> str:
    return "1 site" if k == 1 else f"{k} sites"


def notes(scene: Scene, wishes: Wishes) -> tuple[str, ...]:
    """What the numbers rest on."""
    found: list[str] = []
    if scene.filling is not None:
        found += filling_notes(scene, scene.filling)
    if unknown := _unknown_pairs(scene):
        every = scene.value.size
        found.append(
            f"{unknown} of {every} pairs have no upper limit and cannot serve"
            + ("." if scene.filling is not None else " (--fill guesses them, with its error).")
        )
    if wishes.steering:
        found.append(
            "Who is answered by which site is given, not chosen. Sites are chosen as if a region "
            "went wholly to the one that answers it most; the mean is that of the shares."
        )
        found += _unknown_in_steering(scene, wishes)
    if scene.left_out:
        verb = "was" if len(scene.left_out) == 1 else "were"
        found.append(f"{listing(scene.left_out)} {verb} not measured, so no candidate.")
    return tuple(found)


def _unknown_in_steering(scene: Scene, wishes: Wishes) -> list[str]:
    """Names of the routing that fit nothing: what they say is not used."""
    regions = {row.region.name for row in scene.rows}
    sites = {*(site.name for site in scene.sites), *scene.left_out}
    strange = [name for name in wishes.steering if name not in regions]
    strange += [name for shares in wishes.steering.values() for name in shares if name not in sites]
    names = list(dict.fromkeys(strange))
    if not names:
        return []
    verb = "is a name" if len(names) == 1 else "are names"
    some = names[:MOST_NAMES]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return [
        f"{', '.join(some)}{more} {verb} of the routing that fit no region or site here: not used."
    ]


def filling_notes(scene: Scene, filling: Filling) -> list[str]:
    """How many pairs are guesses, by which model, how far it is off, and what else was tried."""
    count, error = int(np.count_nonzero(filling.filled)), filling.error
    first = (
        f"{count} of {scene.value.size} pairs are filled by a model, marked ~: {error.model}, "
        f"off by {error.median:.1%} (median) and {error.p90:.0%} (90 %) at known pairs it did not "
        "see."
    )
    others = ", ".join(f"{one.model} {one.median:.1%}" for one in filling.errors[1:])
    found = [
        first,
        "With filled pairs the least expected cost is chosen, not upper ends.",
    ]
    return [*found, f"Other models: {others}."] if others else found


def _unknown_pairs(scene: Scene) -> int:
    return int(np.count_nonzero(~np.isfinite(scene.cost)))
