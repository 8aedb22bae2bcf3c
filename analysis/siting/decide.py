"""One decision about sites under all that was asked: the choice, its proof, its backups, its risks.

`answer` (programs.py) finds the choice; this says what it means in regions, sites and words.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as changed

from pathbudget.analysis.results import SiteInfo
from pathbudget.analysis.siting import decision_words as words
from pathbudget.analysis.siting.clashes import why_impossible
from pathbudget.analysis.siting.decision import (
    Decision,
    LossOf,
    Moved,
    Served,
    SiteLoad,
    TierShare,
)
from pathbudget.analysis.siting.decision_results import Robustness
from pathbudget.analysis.siting.judge import allowed, assign, judge
from pathbudget.analysis.siting.judged import measured_next, site_facts
from pathbudget.analysis.siting.programs import Aim, Answer, Program, answer
from pathbudget.analysis.siting.robustness import resample
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns, Score
from pathbudget.analysis.siting.steering import given_shares, steering_effect
from pathbudget.analysis.siting.wishes import Wishes, capacities_of, program_of

Matrix = npt.NDArray[np.float64]
Solver = Callable[[Program, float | None], Answer]

RIVALS = 4
"""Next choices that resampling looks at where the assignment is not the nearest site."""

SECONDS = 20.0
"""For the search of one choice; what is not proved by then is said with its gap."""


def solved(program: Program, seconds: float | None = SECONDS) -> Answer:
    """The answer within seconds."""
    return answer(program, seconds=seconds)


def decide(
    scene: Scene,
    wishes: Wishes,
    *,
    seconds: float = SECONDS,
    robust: bool = True,
    solver: Solver = solved,
) -> Decision:
    """The decision. Raises ValueError for wishes that the scene has no numbers for."""
    empty = Decision(
        objective=str(wishes.objective),
        k=wishes.k,
        tiers=_tiers(scene),
        asked=words.asked(scene, wishes),
        notes=words.notes(scene, wishes),
    )
    if not scene.sites or not scene.rows:
        return changed(empty, clashes=why_impossible(scene, wishes, ()))
    program = program_of(scene, wishes)
    best = solver(program, seconds)
    if not best.feasible:
        return changed(empty, clashes=_why_none(scene, wishes, best))
    if best.unserved_weight > 1 - 1e-9 and wishes.objective is not Aim.COVERING:
        return changed(empty, clashes=(words.nobody_served(scene),))
    second = solver(replace(program, forbidden=(best.columns,)), seconds) if robust else None
    shares = shares_of(scene, wishes, best)
    decision = changed(
        empty,
        sites=scene.names(best.columns),
        value=value_of(program, best),
        unit="share" if program.aim is Aim.COVERING else "ms",
        served_share=max(0.0, min(1.0, 1 - best.unserved_weight)),
        bound=_bound(program, best),
        gap=best.gap,
        proved=best.proved,
        method=best.method,
        price_per_month=_sum(site.price_per_month for site in _chosen(scene, best)),
        power_kw=_sum(site.power_kw for site in _chosen(scene, best)),
        assignments=_assignments(scene, shares, best.columns),
        loads=_loads(scene, wishes, shares, best.columns),
        failover=_failover(scene, wishes, program, best, solver),
        facts=site_facts(scene, best.columns, shares),
        steering=steering_effect(scene, wishes, best.columns),
    )
    if second is None:
        return decision
    if second.feasible:
        decision = changed(
            decision,
            next_best_sites=scene.names(second.columns),
            next_best_value=value_of(program, second),
            margin=_margin(program, best, second),
        )
    return changed(decision, robustness=_robust(scene, wishes, program, best, second, solver))


def value_of(program: Program, found: Answer) -> float | None:
    """Mean cost of the served weight in ms, largest cost in ms, or covered share."""
    if found.value is None or not math.isfinite(found.value):
        return None
    if program.aim is not Aim.P_MEDIAN:
        return found.value
    served = 1 - found.unserved_weight
    return found.value / served if served > 1e-9 else None


def _bound(program: Program, best: Answer) -> float | None:
    served = 1 - best.unserved_weight
    if best.bound is None or not math.isfinite(best.bound):
        return None
    return best.bound / served if program.aim is Aim.P_MEDIAN and served > 1e-9 else best.bound


def _margin(program: Program, best: Answer, second: Answer) -> float | None:
    """How far the next choice is behind; None where it serves other weight."""
    first, other = value_of(program, best), value_of(program, second)
    if first is None or other is None:
        return None
    if program.aim is Aim.COVERING:
        return max(0.0, first - other)
    if abs(best.unserved_weight - second.unserved_weight) > 1e-9:
        return None
    return max(0.0, other - first)


def shares_of(scene: Scene, wishes: Wishes, found: Answer) -> Matrix:
    """Which site serves which share of each row (rows x sites); rows without one are 0."""
    if found.shares is not None:
        return np.where(found.shares > 1e-9, found.shares, 0.0)
    if wishes.steering:
        return given_shares(scene, wishes, found.columns)
    shares = np.zeros(scene.value.shape)
    for row, column in enumerate(nearest(scene, found)):
        if column is not None:
            shares[row, column] = 1.0
    return shares


def nearest(scene: Scene, found: Answer) -> list[int | None]:
    """Site of each row; covering sends a row that none covers to the cheapest all the same."""
    cost = scene.cost[:, list(found.columns)]
    cheapest = [found.columns[int(one)] for one in np.argmin(cost, axis=1)]
    possible = np.isfinite(cost).any(axis=1)
    return [
        (cheapest[row] if possible[row] else None) if site is None else site
        for row, site in enumerate(found.assignment)
    ]


def _chosen(scene: Scene, found: Answer) -> list[SiteInfo]:
    return [scene.sites[column] for column in found.columns]


def _sum(numbers: Iterable[float | None]) -> float | None:
    """None where one is unknown."""
    every = list(numbers)
    known = [one for one in every if one is not None]
    return math.fsum(known) if len(known) == len(every) else None


def _tiers(scene: Scene) -> tuple[TierShare, ...]:
    shares = {row.tier: row.share for row in scene.rows}
    return tuple(TierShare(tier=name, share=share) for name, share in shares.items())


def _assignments(scene: Scene, shares: Matrix, columns: Columns) -> tuple[Served, ...]:
    found: list[Served] = []
    for row in range(len(scene.rows)):
        served = [int(column) for column in np.flatnonzero(shares[row])]
        backup = _backup(scene, row, columns, served)
        found += [
            _served(scene, row, column, float(shares[row, column]), backup) for column in served
        ]
        if not served:
            found.append(_served(scene, row, None, 0.0, backup))
    return tuple(found)


def _backup(scene: Scene, row: int, columns: Columns, served: Sequence[int]) -> int | None:
    """The cheapest chosen site that does not serve the row already."""
    others = [one for one in columns if one not in served and np.isfinite(scene.cost[row, one])]
    return min(others, key=lambda one: scene.cost[row, one], default=None)


def _served(scene: Scene, row: int, column: int | None, share: float, backup: int | None) -> Served:
    one = scene.rows[row]
    base = Served(region=one.region.name, tier=one.tier, weight=float(scene.weights[row]))
    if backup is not None:
        base = changed(
            base,
            backup=scene.sites[backup].name,
            backup_ms=_ms(scene.cost[row, backup]),
            backup_filled=bool(scene.filled[row, backup]),
        )
    if column is None:
        return base
    at = row, column
    return changed(
        base,
        site=scene.sites[column].name,
        share=share,
        cost_ms=_ms(scene.cost[at]),
        value_ms=_ms(scene.value[at]),
        low_ms=_ms(scene.low[at]),
        high_ms=_ms(scene.high[at]),
        samples=int(scene.counts[at]),
        filled=bool(scene.filled[at]),
        within=None if one.allowance_ms is None else _within(scene, at, one.allowance_ms),
    )


def _within(scene: Scene, at: tuple[int, int], allowance: float) -> str:
    """``yes``, ``no`` or ``undecided``: whether the pair keeps the allowance."""
    if scene.filled[at]:
        return "guess"
    if scene.high[at] <= allowance:
        return "yes"
    return "no" if scene.low[at] > allowance else "undecided"


def _ms(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _loads(scene: Scene, wishes: Wishes, shares: Matrix, columns: Columns) -> tuple[SiteLoad, ...]:
    most = capacities_of(scene, wishes)
    total = math.fsum(row.demand for row in scene.rows)
    found: list[SiteLoad] = []
    for column in columns:
        load = float(scene.weights @ shares[:, column])
        site = scene.sites[column]
        needed = None if wishes.power_kw is None else load * wishes.power_kw
        full = most is not None and load > float(most[column]) - 1e-6
        over = site.capacity is not None and load * total > site.capacity * (1 + 1e-9)
        found.append(
            SiteLoad(
                site=site.name,
                share=load,
                load=load * total,
                capacity=site.capacity,
                power_needed_kw=needed,
                power_kw=site.power_kw,
                full=full,
                over=over,
            )
        )
    return tuple(found)


def _failover(
    scene: Scene, wishes: Wishes, program: Program, best: Answer, solver: Solver
) -> tuple[LossOf, ...]:
    """Who goes where, and at what cost, while each chosen site is lost."""
    before = shares_of(scene, wishes, best)
    return tuple(
        _loss(scene, wishes, program, (best, before), lost, solver) for lost in best.columns
    )


def _loss(
    scene: Scene,
    wishes: Wishes,
    program: Program,
    now: tuple[Answer, Matrix],
    lost: int,
    solver: Solver,
) -> LossOf:
    name = scene.sites[lost].name
    left = tuple(column for column in now[0].columns if column != lost)
    every = tuple(scene.row_name(row) for row in range(len(scene.rows)))
    if not left:
        return LossOf(lost_site=name, unserved=every, unserved_share=1.0)
    rest = assigned(program, left, solver)
    if not rest.feasible:
        return LossOf(lost_site=name, unserved=every, unserved_share=1.0)
    after = shares_of(scene, wishes, rest)
    moved = [
        Moved(
            region=scene.rows[row].region.name,
            tier=scene.rows[row].tier,
            weight=float(scene.weights[row]),
            site=scene.sites[int(column)].name,
            share=float(after[row, column]),
            before_ms=_ms(float(_paid(scene, now[1], row))),
            after_ms=_ms(float(scene.cost[row, column])),
            filled=bool(scene.filled[row, column]),
        )
        for row in np.flatnonzero(now[1][:, lost] > 0)
        for column in np.flatnonzero(after[row])
    ]
    gone = [int(row) for row in np.flatnonzero(after.sum(axis=1) < 1 - 1e-6)]
    return LossOf(
        lost_site=name,
        value=value_of(program, rest),
        moved=tuple(moved),
        unserved=tuple(scene.row_name(row) for row in gone),
        unserved_share=float(sum(scene.weights[row] * (1 - after[row].sum()) for row in gone)),
    )


def _paid(scene: Scene, shares: Matrix, row: int) -> float:
    used = shares[row] > 0
    return float(shares[row][used] @ scene.cost[row][used] / shares[row][used].sum())


def assigned(program: Program, columns: Columns, solver: Solver = solved) -> Answer:
    """Who is served from where by exactly these sites; a program only where sites may be full."""
    given = fixed(program, columns)
    if given.capacities is not None:
        return solver(given, SECONDS)
    worth = judge(given, columns)
    sites = [int(site) for site in assign(given, columns)]
    return Answer(
        columns=columns,
        assignment=tuple(site if site >= 0 else None for site in sites),
        value=worth.value,
        unserved_weight=worth.unserved_weight,
        bound=worth.value,
        proved=True,
        method="assignment",
        seconds=0.0,
    )


def fixed(program: Program, columns: Columns) -> Program:
    """The same program with exactly these sites, and nothing asked but who serves whom."""
    others = tuple(one for one in range(program.sites) if one not in columns)
    return replace(
        program,
        k=len(columns),
        must_have=columns,
        must_not=others,
        price_cap=None,
        power_cap=None,
        backup=0,
        survive=None,
        serve_all=False,
        forbidden=(),
    )


def _why_none(scene: Scene, wishes: Wishes, best: Answer) -> tuple[str, ...]:
    if not best.conflicts and not best.proved:
        return ("No choice was found in time; more seconds may find one (--seconds).",)
    return why_impossible(scene, wishes, best.conflicts)


def _robust(
    scene: Scene,
    wishes: Wishes,
    program: Program,
    best: Answer,
    second: Answer,
    solver: Solver,
) -> Robustness:
    score = Score(
        program.aim, scene.weights, scene.allowances if program.aim is Aim.COVERING else None
    )
    answers = [best, *([second] if second.feasible else [])]
    if wishes.steering or wishes.limits_load:
        while answers[-1].feasible and len(answers) < RIVALS:
            barred = tuple(one.columns for one in answers)
            more = solver(replace(program, forbidden=barred), SECONDS / 4)
            if not more.feasible:
                break
            answers.append(more)
        fixed_shares = {one.columns: shares_of(scene, wishes, one) for one in answers}
        score = replace(score, fixed={c: _whole(s) for c, s in fixed_shares.items()})
    rivals = [one.columns for one in answers[1:]]
    resampled = resample(
        scene.tables,
        score,
        best.columns,
        rivals=rivals,
        allowed=lambda columns: allowed(replace(program, k=len(columns)), columns),
    )
    return measured_next(scene, score, resampled, rivals)


def _whole(shares: Matrix) -> Matrix:
    """Rows that are served in part count as if wholly; rows without a site pay nothing."""
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
