"""Which constraints clash, where no choice of sites keeps them all.

A smallest conflicting set (irreducible: with one of it dropped, the rest can be kept) by the
deletion filter of Chinneck and Dravnieks (1991), halved as in QuickXplain (Junker 2004). Kinds of
constraints first, then the regions and sites within those kinds.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pathbudget.analysis.siting.choice_rows import add_cover
from pathbudget.analysis.siting.cover import add_served, cover_model
from pathbudget.analysis.siting.dense import Dense
from pathbudget.analysis.siting.judge import needed
from pathbudget.analysis.siting.vocabulary import Aim, Clash, Conflict, Mask, Program, Survive

Check = Callable[[Sequence[Conflict]], bool]
ROW_KINDS = (Clash.SERVE, Clash.BACKUP, Clash.SURVIVE)


def conflicts(program: Program) -> tuple[Conflict, ...]:
    """A smallest conflicting set of constraints; empty where there is a choice."""
    kinds = [Conflict(code) for code in Clash if _asked(program, code)]
    if not program.sites:
        return (Conflict(Clash.COUNT),)
    if _possible(program, kinds):
        return ()
    guilty = _smallest(kinds, lambda some: _possible(program, some))
    codes = {one.code for one in guilty}
    single = [one for one in guilty if Clash.CAPACITY in codes or not _parts(program, one.code)]
    parts = [part for one in guilty if one not in single for part in _parts(program, one.code)]
    found = _smallest([*single, *parts], lambda some: _possible(program, some))
    return tuple(
        sorted(found, key=lambda one: (list(Clash).index(one.code), one.row or 0, one.column or 0))
    )


def _asked(program: Program, code: Clash) -> bool:
    covering = not _must(program)
    return {
        Clash.COUNT: program.k is not None,
        Clash.MUST_HAVE: bool(program.must_have),
        Clash.MUST_NOT: bool(program.must_not),
        Clash.PRICE_CAP: program.price_cap is not None,
        Clash.POWER_CAP: program.power_cap is not None,
        Clash.CAPACITY: program.capacities is not None,
        Clash.SERVE: program.serve_all and program.survive is None,
        Clash.BACKUP: program.backup > 0 and not covering,
        Clash.SURVIVE: program.survive is not None and not covering,
        Clash.FORBIDDEN: bool(program.forbidden),
    }[code]


def _must(program: Program) -> bool:
    return program.serve_all or program.aim is not Aim.COVERING


def _parts(program: Program, code: Clash) -> list[Conflict]:
    """The single constraints of a kind that has several."""
    if code in ROW_KINDS:
        return [Conflict(code, row=int(row)) for row in np.flatnonzero(needed(program))]
    columns = {Clash.MUST_HAVE: program.must_have, Clash.MUST_NOT: program.must_not}.get(code, ())
    return [Conflict(code, column=column) for column in sorted(set(columns))]


def _smallest(candidates: Sequence[Conflict], possible: Check) -> list[Conflict]:
    """QuickXplain: a set of candidates that cannot hold together, though any fewer of it can."""

    def explain(kept: list[Conflict], grown: bool, some: list[Conflict]) -> list[Conflict]:
        if grown and not possible(kept):
            return []
        if len(some) == 1:
            return some
        half = len(some) // 2
        first, second = some[:half], some[half:]
        late = explain([*kept, *first], True, second)
        early = explain([*kept, *late], bool(late), first)
        return [*early, *late]

    return explain([], False, list(candidates)) if candidates else []


def _possible(program: Program, some: Sequence[Conflict]) -> bool:
    """Whether there is a choice that keeps some of the constraints."""
    codes = {one.code for one in some}
    relaxed = replace(
        program,
        k=program.k if Clash.COUNT in codes else None,
        must_have=_columns(some, Clash.MUST_HAVE, program.must_have),
        must_not=_columns(some, Clash.MUST_NOT, program.must_not),
        price_cap=program.price_cap if Clash.PRICE_CAP in codes else None,
        power_cap=program.power_cap if Clash.POWER_CAP in codes else None,
        capacities=program.capacities if Clash.CAPACITY in codes else None,
        forbidden=program.forbidden if Clash.FORBIDDEN in codes else (),
        aim=Aim.P_MEDIAN if _must(program) else program.aim,
        opening=None,
        backup=0,
        survive=Survive.WORST if Clash.SURVIVE in codes else None,
        serve_all=True,
    )
    served = _rows(program, some, Clash.SERVE) | _rows(program, some, Clash.SURVIVE)
    routed = relaxed.capacities is not None and relaxed.preference is not None
    if routed:  # where routing sends them, even those that need not be served load a site
        dense = Dense(replace(relaxed, serve_all=False, survive=_losses(program, relaxed)))
        model, y = dense.model, dense.y
        add_served(model, y, relaxed, program.usable, served)
    elif relaxed.capacities is not None and served.any():
        dense = Dense(rows_of(relaxed, served))
        model, y = dense.model, dense.y
    else:
        model, y = cover_model(relaxed, program.usable, served)
    backed = _rows(program, some, Clash.BACKUP)
    add_cover(model, y, program.backing, backed, program.backup + 1)
    return model.minimise(np.zeros(model.size)).x is not None


def _losses(program: Program, relaxed: Program) -> Survive | None:
    """Covering asks for nobody to be served after a loss, but routing loads sites all the same."""
    soft = program.survive is not None and not _asked(program, Clash.SURVIVE)
    return Survive.WORST if soft else relaxed.survive


def rows_of(program: Program, rows: Mask) -> Program:
    """The program of some regions alone."""
    limit = program.limit
    return replace(
        program,
        cost=program.cost[rows],
        weights=program.weights[rows],
        demands=program.demand[rows],
        limit=limit[rows] if isinstance(limit, np.ndarray) and limit.size > 1 else limit,
        preference=None if program.preference is None else program.preference[rows],
        backers=None if program.backers is None else program.backers[rows],
    )


def _rows(program: Program, some: Sequence[Conflict], code: Clash) -> Mask:
    """Regions that constraints of a kind are asked of: all when it stands for the kind."""
    mine = [one.row for one in some if one.code is code]
    if None in mine:
        return needed(program)
    chosen = np.zeros(program.rows, dtype=bool)
    chosen[[row for row in mine if row is not None]] = True
    return chosen


def _columns(some: Sequence[Conflict], code: Clash, every: tuple[int, ...]) -> tuple[int, ...]:
    mine = [one.column for one in some if one.code is code]
    return every if None in mine else tuple(column for column in mine if column is not None)
