"""Which constraints cannot hold together, in words, and what each would have to give."""

from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.vocabulary import Aim, Clash, Conflict
from pathbudget.analysis.siting.wishes import Wishes, capacities_of
from pathbudget.analysis.siting.words import listing

LISTED = 4


def why_impossible(scene: Scene, wishes: Wishes, conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """A sentence that names the clash, then one per constraint in it. Dropping any one would do."""
    if not scene.sites:
        return ("No site was measured, so there is nothing to choose from.",)
    if not conflicts:
        return ("No choice of sites keeps all constraints.",)
    codes = list(dict.fromkeys(conflict.code for conflict in conflicts))
    parts = {code: [one for one in conflicts if one.code is code] for code in codes}
    named = [_named(scene, wishes, code, parts[code]) for code in codes]
    if len(named) == 1:
        return (f"This cannot be kept: {named[0]}.", *_hints(scene, wishes, codes))
    lead = f"These cannot hold together: {'; '.join(named)}."
    return (lead, "Without any one of them there is a choice.", *_hints(scene, wishes, codes))


def _named(scene: Scene, wishes: Wishes, code: Clash, parts: Sequence[Conflict]) -> str:
    columns = [one.column for one in parts if one.column is not None]
    rows = [one.row for one in parts if one.row is not None]
    sites = listing(scene.names(columns)) or "the sites named"
    regions = _some([scene.row_name(row) for row in rows]) or "every region"
    sayings = {
        Clash.COUNT: f"{wishes.k} of {len(scene.sites)} candidate sites",
        Clash.MUST_HAVE: f"{sites} must be taken",
        Clash.MUST_NOT: f"{sites} must not be taken",
        Clash.PRICE_CAP: f"at most {wishes.budget or 0:,.10g} per month",
        Clash.POWER_CAP: f"at most {wishes.power_cap_kw or 0:,.10g} kW together",
        Clash.CAPACITY: _capacity(scene, wishes),
        Clash.SERVE: f"{regions} must be served{_limit(wishes)}",
        Clash.BACKUP: f"{regions} must have {_further(wishes)}",
        Clash.SURVIVE: f"{regions} must be served after the loss of any one site",
        Clash.FORBIDDEN: "a choice other than those already named",
    }
    return sayings[code]


def _limit(wishes: Wishes) -> str:
    """Covering serves only what is within the allowance."""
    return " within the allowance" if wishes.objective is Aim.COVERING else ""


def _further(wishes: Wishes) -> str:
    noun = "site" if wishes.backup == 1 else "sites"
    within = wishes.backup_within_ms
    limit = "" if within is None else f" within {within:g} ms"
    return f"{wishes.backup} further {noun} that could serve it{limit}"


def _capacity(scene: Scene, wishes: Wishes) -> str:
    what = "capacities" if wishes.power_kw is None else "power"
    most = capacities_of(scene, wishes)
    if most is None or wishes.k is None:
        return f"the {what} of the sites"
    largest = float(np.sort(most)[::-1][: wishes.k].sum())
    known = f" (the {wishes.k} largest carry {largest:.0%} of the traffic)" if largest < 10 else ""
    return f"the {what} of the sites{known}"


def _hints(scene: Scene, wishes: Wishes, codes: Sequence[Clash]) -> tuple[str, ...]:
    """Numbers that say how far off the caps are."""
    found: list[str] = []
    if Clash.PRICE_CAP in codes and wishes.k is not None:
        prices = [(site.price_per_month or 0.0, site.name) for site in scene.sites]
        found.append(_cheapest(prices, wishes, "per month"))
    if Clash.POWER_CAP in codes and wishes.k is not None:
        powers = [(site.power_kw or 0.0, site.name) for site in scene.sites]
        found.append(_cheapest(powers, wishes, "kW"))
    if Clash.SERVE in codes or Clash.BACKUP in codes:
        usable = np.isfinite(scene.cost)
        lost = [scene.row_name(int(i)) for i in np.flatnonzero(~usable.any(axis=1))]
        if lost:
            verb = "has" if len(lost) == 1 else "have"
            found.append(f"{_some(lost)} {verb} no measured site with an upper limit.")
    return tuple(found)


def _cheapest(numbers: list[tuple[float, str]], wishes: Wishes, unit: str) -> str:
    """The least that the wanted number of sites adds up to, with the ones that must be taken."""
    forced = [one for one in numbers if one[1] in wishes.must_have]
    free = sorted(one for one in numbers if one[1] not in {*wishes.must_have, *wishes.must_not})
    chosen = (forced + free)[: max(wishes.k or 1, len(forced))]
    total = sum(number for number, _ in chosen)
    names = listing([name for _, name in chosen])
    return f"The least possible: {names}, {total:,.10g} {unit}."


def _some(names: Sequence[str]) -> str:
    if len(names) <= LISTED:
        return listing(names)
    return f"{', '.join(names[:LISTED])} and {len(names) - LISTED} more"
