"""What-ifs: one budget before and after each lever, alone and all of them together."""

from collections.abc import Sequence

from pathbudget.analysis.line_place import carriage_words
from pathbudget.analysis.whole_budget.case import Case, Changed, Setting
from pathbudget.analysis.whole_budget.levers import Lever
from pathbudget.analysis.whole_budget.results import WhatIf
from pathbudget.analysis.whole_budget.whole import budget_and_figures
from pathbudget.probes.errors import ConfigError, Fault

TOGETHER = "all together"
PERCENTILES = (50.0, 95.0, 99.0)


def what_ifs(case: Case, levers: Sequence[tuple[Lever, Setting]]) -> tuple[WhatIf, ...]:
    """Each lever alone; where there are several, all of them in the order they were named.

    Raises ConfigError where a lever does not fit the case.
    """
    found = [
        _what_if(setting.written, lever.title, case, lever.apply(case, setting))
        for lever, setting in levers
    ]
    if len(levers) > 1:
        found.append(_together(case, levers))
    return tuple(found)


def _together(case: Case, levers: Sequence[tuple[Lever, Setting]]) -> WhatIf:
    before, after = case, case
    changes: list[Changed] = []
    for lever, setting in levers:
        change = lever.apply(after, setting)
        if change.before is not None:
            before = lever.apply(before, setting).before or before
        after = change.case
        changes.append(change)
    every = Changed(
        case=after,
        before=before,
        assumptions=tuple(dict.fromkeys(text for one in changes for text in one.assumptions)),
        confirm=tuple(dict.fromkeys(text for one in changes for text in one.confirm)),
        notes=tuple(dict.fromkeys(text for one in changes for text in one.notes)),
    )
    names = " ".join(setting.written for _, setting in levers)
    return _what_if(TOGETHER, names, case, every)


def _refuse_unmeasured(name: str, case: Case) -> None:
    """A changed network is never put at its allowance: nothing of it would be replayed."""
    network = case.network
    if network is None or not case.change.is_change:
        return
    if network.terms(case.tier, case.confidence, case.change) is None:
        wanted = network.weights(case.tier, case.change)
        words = " and ".join(carriage_words(one) for one in wanted)
        problem = f"no {words} connection was measured from {' to '.join(case.pair)}"
        raise ConfigError([Fault("command line", f"--lever {name}", problem, "a measured mode")])


def _what_if(name: str, title: str, case: Case, change: Changed) -> WhatIf:
    _refuse_unmeasured(name, change.case)
    before, after = (change.before or case).request(), change.case.request()
    wanted = sorted({*PERCENTILES, float(case.tier.percentile)})
    budget, shown = budget_and_figures(before, wanted)
    changed, after_figures = budget_and_figures(after, wanted)
    return WhatIf(
        lever=name,
        title=title,
        before=budget,
        after=changed,
        before_figures=shown,
        after_figures=after_figures,
        assumptions=change.assumptions,
        confirm=change.confirm,
        notes=change.notes,
    )
