"""Which site a region is held to: the recommended one, or the least bad one where none will do.

A region whose every request failed, or that has too few samples for an upper end, is given no site
by a recommendation. It was measured all the same, and must not be taken for one that was not.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from pathbudget.analysis.results import BudgetLine, Recommendation

Ends = tuple[float, float, float]


def serving(
    choice: Recommendation | None,
    lines: Iterable[BudgetLine],
    *,
    among: Sequence[str] | None = None,
    usual: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Site of each region that was measured; `lines` are the headline lines of the tier.

    A region that `choice` gives no site is held to its `usual` one if that was measured, else to
    the least bad of the chosen sites; where those were not measured, of all, if none of them has
    an upper end. `among` names the sites that count.
    """
    found = {one.region: one.site for one in choice.assignments if one.site} if choice else {}
    measured: dict[str, list[BudgetLine]] = {}
    for line in lines:
        if line.n and line.region not in found and (among is None or line.site in among):
            measured.setdefault(line.region, []).append(line)
    chosen = choice.sites if choice else ()
    for region, some in measured.items():
        sites = {line.site for line in some}
        before = (usual or {}).get(region, "")
        near = [line for line in some if line.site in chosen]
        if not near and any(line.high_ms is not None for line in some):
            continue  # a site that would do was not chosen: nobody knows how the chosen ones do
        found[region] = before if before in sites else min(near or some, key=ends).site
    return found


def ends(line: BudgetLine) -> Ends:
    """Upper end, value and lower end, by which lines are ranked; ``inf`` for no limit."""
    high, value, low = (
        math.inf if end is None else end for end in (line.high_ms, line.value_ms, line.low_ms)
    )
    return high, value, low
