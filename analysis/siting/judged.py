"""The recommendations of an evaluation, with how they stand up to their measurements."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import fewest_samples
from pathbudget.analysis.results import Evaluation, Recommendation
from pathbudget.analysis.siting.decision_results import MeasureNext, Robustness, SiteFact
from pathbudget.analysis.siting.fill_scene import Prior, prior_of
from pathbudget.analysis.siting.filling_known import EARTH_RADIUS_KM
from pathbudget.analysis.siting.information import Worth, worth_of_pairs
from pathbudget.analysis.siting.recommend import AIMS
from pathbudget.analysis.siting.robustness import Resampled, resample, robustness_of
from pathbudget.analysis.siting.scene import Scene, scene_of
from pathbudget.analysis.siting.score import Columns, Score
from pathbudget.analysis.siting.vocabulary import Aim

Matrix = npt.NDArray[np.float64]

LISTED = 10
"""Pairs that a list of what to measure next has."""

NEGLIGIBLE = 0.01
"""Pairs that are worth less than this share of the best one are not listed."""

MOST_RIVALS = 200
"""Choices, the best on average, that are looked at again with the guesses at unmeasured pairs."""


def with_robustness(evaluation: Evaluation) -> Evaluation:
    """The same evaluation; every recommendation of sites has its robustness and site facts."""
    scenes: dict[str, tuple[Scene, Prior]] = {}
    judged: list[Recommendation] = []
    for choice in evaluation.recommendations:
        if not choice.sites:
            judged.append(choice)
            continue
        if choice.tier not in scenes:
            scene = scene_of(evaluation, {choice.tier: 1.0})
            scenes[choice.tier] = scene, prior_of(scene)
        judged.append(_judged(*scenes[choice.tier], choice))
    return msgspec.structs.replace(evaluation, recommendations=tuple(judged))


def _judged(scene: Scene, prior: Prior, choice: Recommendation) -> Recommendation:
    columns = columns_of(scene, choice.sites)
    aim = AIMS[choice.objective]
    score = Score(aim, scene.weights, scene.allowances if aim is Aim.COVERING else None)
    rivals = [columns_of(scene, choice.next_best_sites)] if choice.next_best_sites else []
    resampled = resample(scene.tables, score, columns, rivals=rivals)
    return msgspec.structs.replace(
        choice,
        robustness=measured_next(scene, score, resampled, rivals, prior=prior),
        facts=site_facts(scene, columns, serving_shares(scene, columns)),
    )


def measured_next(
    scene: Scene,
    score: Score,
    resampled: Resampled,
    rivals: Sequence[Columns] = (),
    *,
    prior: Prior | None = None,
) -> Robustness:
    """The robustness of a choice with the pairs that are worth measuring next."""
    base = robustness_of(resampled, scene.names)
    prior = prior_of(scene) if prior is None else prior
    if prior.words:
        order = np.argsort(resampled.values.mean(axis=0), kind="stable")[:MOST_RIVALS]
        looked_at = [*rivals, *(resampled.choices[int(index)] for index in order)]
        resampled = resample(prior.tables, score, resampled.choices[0], rivals=looked_at)
    batch = fewest_samples(scene.percentile / 100)
    worths = np.where(scene.counts > 0, scene.sizes / np.maximum(scene.counts, 1), 1.0)
    found = worth_of_pairs(resampled, score, prior.tables, scene.sizes, batch, worths)
    worthwhile = [one for one in found[:LISTED] if one.reduction >= NEGLIGIBLE * found[0].reduction]
    listed = tuple(_words(scene, score, one, batch) for one in worthwhile)
    return msgspec.structs.replace(
        base, measure_next=listed, prior=prior.words, not_ranked=prior.unknown
    )


def _words(scene: Scene, score: Score, one: Worth, batch: int) -> MeasureNext:
    counts, site = int(scene.counts[one.row, one.column]), scene.sites[one.column].name
    region = scene.row_name(one.row)
    reduction = amount(score.aim, one.reduction)
    now = "not measured yet" if counts == 0 else f"{counts:,} samples now"
    text = (
        f"{region} to {site} ({now}): {batch:,} samples more lower the expected regret "
        f"by {reduction}."
    )
    return MeasureNext(
        region=region,
        site=site,
        samples=batch,
        reduction=one.reduction,
        per_sample=one.reduction / batch,
        measured=counts,
        text=text,
    )


def amount(aim: Aim, value: float) -> str:
    """A regret in its unit; what is too small to print is said to be small."""
    if aim is Aim.COVERING:
        return f"{100 * value:.2g} % of the traffic" if value >= 1e-4 else "under 0.01 %"
    return f"{value:.2g} ms" if value >= 0.01 else "under 0.01 ms"


def columns_of(scene: Scene, names: Sequence[str]) -> Columns:
    """Columns of sites by name."""
    places: Mapping[str, int] = {site.name: i for i, site in enumerate(scene.sites)}
    return tuple(sorted(places[name] for name in names))


def serving_shares(scene: Scene, columns: Columns) -> Matrix:
    """1 where a site serves a row: the cheapest of the chosen; rows that nobody can serve are 0."""
    shares = np.zeros(scene.value.shape)
    cost = scene.cost[:, list(columns)]
    for row in np.flatnonzero(np.isfinite(cost).any(axis=1)):
        shares[row, columns[int(cost[row].argmin())]] = 1.0
    return shares


def site_facts(scene: Scene, columns: Columns, shares: Matrix) -> tuple[SiteFact, ...]:
    """What the catalogue says of the chosen sites, and how far their users are."""
    return tuple(_fact(scene, column, shares[:, column] * scene.weights) for column in columns)


def _fact(scene: Scene, column: int, load: Matrix) -> SiteFact:
    site = scene.sites[column]
    far = np.array([_distance_km(scene, row, column) for row in range(len(scene.rows))])
    served = (load > 0) & ~np.isnan(far)
    total = float(load[served].sum())
    return SiteFact(
        site=site.name,
        exchanges=site.exchanges,
        networks=site.networks,
        mean_distance_km=float(load[served] @ far[served]) / total if total > 0 else None,
        farthest_km=float(far[served].max()) if served.any() else None,
        price_per_month=site.price_per_month,
        capacity=site.capacity,
        power_kw=site.power_kw,
        share=float(load.sum()),
    )


def _distance_km(scene: Scene, row: int, column: int) -> float:
    """Great circle on the mean sphere; ``nan`` without coordinates."""
    region, site = scene.rows[row].region, scene.sites[column]
    places = (region.latitude, region.longitude, site.latitude, site.longitude)
    if any(one is None for one in places):
        return math.nan
    a, b, c, d = (math.radians(one or 0.0) for one in places)
    half = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(half)))
