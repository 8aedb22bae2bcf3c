"""Where decisions about sites get their numbers from: a store, or a plain matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.analysis.siting.matrix_scene import exact_notes, scene_of_matrix, strangers
from pathbudget.analysis.siting.scene import Scene, scene_of
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import load_catalogue
from pathbudget.sites.pair_files import read_matrix


@dataclass(frozen=True, slots=True)
class Source:
    """A scene, and what is to be said about where it comes from."""

    scene: Scene
    notes: tuple[str, ...] = ()


def source_of(
    path: Path,
    catalogue_files: Sequence[Path],
    mix: Mapping[str, float],
    campaign: str | None,
    *,
    allowance_ms: float | None = None,
    percentile: float = 50.0,
) -> Source:
    """A store is a folder; any other path is a matrix file.

    Raises ConfigError for faults of files, ValueError for options that do not fit the source.
    """
    if path.is_dir() or not path.suffix:
        if allowance_ms is not None:
            raise ValueError("--allowance is for a matrix: the tiers of a store have their own")
        return _of_store(path, list(catalogue_files), mix, campaign)
    if len(mix) > 1:
        raise ValueError("--tier-mix needs a store: a matrix has one number per pair")
    if campaign is not None:
        raise ValueError("--campaign needs a store")
    return _of_matrix(path, catalogue_files, mix, allowance_ms, percentile)


def _of_matrix(
    path: Path,
    catalogue_files: Sequence[Path],
    mix: Mapping[str, float],
    allowance_ms: float | None,
    percentile: float,
) -> Source:
    pairs = read_matrix(path)
    catalogue = load_catalogue(list(catalogue_files)) if catalogue_files else Catalogue()
    tier = next(iter(mix), "")
    if tier:
        known = catalogue.tiers or load_catalogue([]).tiers
        if tier not in known:
            raise ValueError(f"no tier {tier}; known: {', '.join(known)}")
        allowance_ms = known[tier].network_allowance_ms if allowance_ms is None else allowance_ms
    scene = scene_of_matrix(
        pairs,
        catalogue,
        tier=tier or "matrix",
        allowance_ms=allowance_ms,
        percentile=percentile,
    )
    return Source(scene, (*exact_notes(pairs), *strangers(pairs, catalogue)))


def _of_store(
    path: Path, catalogue_files: list[Path], mix: Mapping[str, float], campaign: str | None
) -> Source:
    from pathbudget.agents.cli.report import evaluated

    evaluation = evaluated(path, catalogue_files, tuple(mix), campaign)
    chosen = mix or {evaluation.tiers[0].name: 1.0}
    return Source(scene_of(evaluation, chosen))
