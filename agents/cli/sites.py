"""`pathbudget sites`: which sites, at what price, what a loss costs, what to measure next."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.options import CampaignOption, CatalogueOption
from pathbudget.agents.cli.sites_options import (
    AllowanceOption,
    BackupOption,
    BackupWithinOption,
    BudgetOption,
    CapacityOption,
    FillOption,
    Format,
    FormatOption,
    KOption,
    MixOption,
    MustHaveOption,
    MustNotOption,
    Objective,
    ObjectiveOption,
    OneKOption,
    PercentileOption,
    PowerCapOption,
    PowerOption,
    RangeOption,
    SecondsOption,
    ServeAllOption,
    SourceArgument,
    SteeringOption,
    TierOption,
)
from pathbudget.agents.extras import require

if TYPE_CHECKING:
    from pathbudget.agents.sites_source import Source
    from pathbudget.analysis.siting.scene import Scene
    from pathbudget.analysis.siting.wishes import Wishes


T = TypeVar("T")

SIZES = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
LARGEST_MS = 1e7
MOST_SITES = 1_000


def register(application: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Choose sites: constraints, frontier, failover, what to measure.")
    group.command("choose")(choose)
    group.command("frontier")(frontier)
    group.command("failover")(failover)
    group.command("measure-next")(measure_next)
    application.add_typer(group, name="sites", no_args_is_help=True)


@reports_errors
def choose(
    source: SourceArgument,
    catalogue: CatalogueOption = None,
    campaign: CampaignOption = None,
    k: KOption = "1-3",
    objective: ObjectiveOption = Objective.P_MEDIAN,
    tier: TierOption = "",
    tier_mix: MixOption = "",
    must_have: MustHaveOption = None,
    must_not: MustNotOption = None,
    budget: BudgetOption = None,
    power: PowerOption = None,
    power_cap: PowerCapOption = None,
    capacity: CapacityOption = False,
    backup: BackupOption = 0,
    backup_within: BackupWithinOption = None,
    serve_all: ServeAllOption = False,
    fill: FillOption = False,
    steering: SteeringOption = None,
    allowance: AllowanceOption = None,
    percentile: PercentileOption = 50.0,
    seconds: SecondsOption = 20.0,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Choose sites under constraints; exit 1 when the constraints clash, and say which.

    With a range of --k, the fewest sites are shown in full beyond which a further one gains little.
    """
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.cli import sites_output
    from pathbudget.agents.timed_solver import timed
    from pathbudget.analysis.siting.sweep import sweep

    where = _source(source, catalogue, campaign, tier, tier_mix, allowance, percentile)
    scene = _scene(where, fill=fill)
    wishes = _wishes(
        objective,
        must_have=must_have,
        must_not=must_not,
        budget=budget,
        power=power,
        power_cap=power_cap,
        capacity=capacity,
        backup=backup,
        backup_within=backup_within,
        serve_all=serve_all,
        steering=steering,
    )
    answer = _tried(
        lambda: sweep(scene, wishes, _sizes(k, len(scene.sites)), seconds=seconds, solver=timed)
    )
    sites_output.print_sweep(answer, format, notes=where.notes)
    raise typer.Exit(int(ExitCode.OK if answer.shown.sites else ExitCode.OBJECTIVE_NOT_MET))


@reports_errors
def frontier(
    source: SourceArgument,
    catalogue: CatalogueOption = None,
    campaign: CampaignOption = None,
    k: RangeOption = "1-4",
    objective: ObjectiveOption = Objective.P_MEDIAN,
    tier: TierOption = "",
    tier_mix: MixOption = "",
    must_have: MustHaveOption = None,
    must_not: MustNotOption = None,
    budget: BudgetOption = None,
    fill: FillOption = False,
    allowance: AllowanceOption = None,
    percentile: PercentileOption = 50.0,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Print the best choice for every number of sites and every price, from quick to cheap."""
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.cli import sites_output
    from pathbudget.agents.timed_solver import timed
    from pathbudget.analysis.siting.frontier import frontier as points_of

    where = _source(source, catalogue, campaign, tier, tier_mix, allowance, percentile)
    scene = _scene(where, fill=fill)
    wishes = _wishes(objective, must_have=must_have, must_not=must_not, budget=budget)
    sizes = [size for size in _sizes(k, len(scene.sites)) if size is not None]
    if not sizes:
        raise fail(f"--k {k}: a number or a range here", ExitCode.USAGE)
    points = _tried(lambda: points_of(scene, wishes, sizes, solver=timed))
    if not points:
        raise fail("no choice keeps the constraints; sites choose says why.", _not_met())
    sites_output.print_frontier(points, objective, format, notes=_notes(where, scene, wishes))


@reports_errors
def failover(
    source: SourceArgument,
    catalogue: CatalogueOption = None,
    campaign: CampaignOption = None,
    k: OneKOption = "2",
    objective: ObjectiveOption = Objective.P_MEDIAN,
    tier: TierOption = "",
    tier_mix: MixOption = "",
    must_have: MustHaveOption = None,
    capacity: CapacityOption = False,
    backup: BackupOption = 0,
    fill: FillOption = False,
    steering: SteeringOption = None,
    allowance: AllowanceOption = None,
    percentile: PercentileOption = 50.0,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Print who goes where, and at what cost, after the loss of each chosen site."""
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.cli import sites_output
    from pathbudget.agents.timed_solver import timed
    from pathbudget.analysis.siting.decide import decide

    where = _source(source, catalogue, campaign, tier, tier_mix, allowance, percentile)
    scene = _scene(where, fill=fill)
    asked = _wishes(
        objective, must_have=must_have, capacity=capacity, backup=backup, steering=steering
    )
    decision = _tried(lambda: decide(scene, _sized(asked, k, scene), robust=False, solver=timed))
    sites_output.print_failover(decision, format, notes=where.notes)
    raise typer.Exit(int(ExitCode.OK if decision.sites else ExitCode.OBJECTIVE_NOT_MET))


@reports_errors
def measure_next(
    source: SourceArgument,
    catalogue: CatalogueOption = None,
    campaign: CampaignOption = None,
    k: OneKOption = "1",
    objective: ObjectiveOption = Objective.P_MEDIAN,
    tier: TierOption = "",
    tier_mix: MixOption = "",
    must_have: MustHaveOption = None,
    must_not: MustNotOption = None,
    budget: BudgetOption = None,
    fill: FillOption = False,
    allowance: AllowanceOption = None,
    percentile: PercentileOption = 50.0,
    format: FormatOption = Format.TABLE,  # noqa: A002
) -> None:
    """Print the pairs whose measurement lowers the expected regret of the choice most."""
    require("analysis", "numpy", "scipy")
    from pathbudget.agents.cli import sites_output
    from pathbudget.agents.timed_solver import timed
    from pathbudget.analysis.siting.decide import decide

    where = _source(source, catalogue, campaign, tier, tier_mix, allowance, percentile)
    scene = _scene(where, fill=fill)
    asked = _wishes(objective, must_have=must_have, must_not=must_not, budget=budget)
    decision = _tried(lambda: decide(scene, _sized(asked, k, scene), solver=timed))
    sites_output.print_measure_next(decision, format, notes=where.notes)
    raise typer.Exit(int(ExitCode.OK if decision.sites else ExitCode.OBJECTIVE_NOT_MET))


def _source(
    path: Path,
    catalogue: list[Path] | None,
    campaign: str | None,
    tier: str,
    tier_mix: str,
    allowance: float | None,
    percentile: float,
) -> "Source":
    from pathbudget.agents.sites_source import source_of

    if not 0 < percentile < 100:
        raise fail(f"percentile {percentile:g}: expected between 0 and 100", ExitCode.USAGE)
    if allowance is not None and not 0 < allowance < LARGEST_MS:
        raise fail(f"--allowance {allowance:g}: expected milliseconds above 0", ExitCode.USAGE)
    if tier and tier_mix:
        raise fail("--tier and --tier-mix: say one of them", ExitCode.USAGE)
    mix = {tier: 1.0} if tier else _mix(tier_mix)
    return _tried(
        lambda: source_of(
            path, catalogue or [], mix, campaign, allowance_ms=allowance, percentile=percentile
        )
    )


def _mix(text: str) -> dict[str, float]:
    """``voice-ai=0.6,chat=0.4``."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, share = part.strip().rpartition("=")
        try:
            number = float(share)
        except ValueError:
            number = -1.0
        if not name or not 0 < number < 1e9 or name in found:
            message = f"--tier-mix {part!r}: expected tier=share, each once, like voice-ai=0.6"
            raise fail(message, ExitCode.USAGE)
        found[name] = number
    return found


def _scene(where: "Source", *, fill: bool) -> "Scene":
    if not fill:
        return where.scene
    from pathbudget.analysis.siting.fill_scene import fill_scene

    filled = fill_scene(where.scene)
    if isinstance(filled, str):
        raise fail(f"--fill: {filled}", ExitCode.USAGE)
    return filled


def _wishes(
    objective: Objective,
    *,
    must_have: list[str] | None = None,
    must_not: list[str] | None = None,
    budget: float | None = None,
    power: float | None = None,
    power_cap: float | None = None,
    capacity: bool = False,
    backup: int = 0,
    backup_within: float | None = None,
    serve_all: bool = False,
    steering: Path | None = None,
) -> "Wishes":
    from pathbudget.analysis.siting.vocabulary import Aim
    from pathbudget.analysis.siting.wishes import Wishes
    from pathbudget.sites.pair_files import read_steering

    for name, value in (("--power", power), ("--power-cap", power_cap)):
        if value is not None and not 0 < value < 1e12:
            raise fail(f"{name} {value:g}: expected kilowatts above 0", ExitCode.USAGE)
    if backup_within is not None and not 0 < backup_within < LARGEST_MS:
        message = f"--backup-within {backup_within:g}: expected milliseconds above 0"
        raise fail(message, ExitCode.USAGE)
    return Wishes(
        objective=Aim(objective.value),
        must_have=tuple(dict.fromkeys(must_have or ())),
        must_not=tuple(dict.fromkeys(must_not or ())),
        budget=budget,
        power_kw=power,
        power_cap_kw=power_cap,
        capacity=capacity,
        backup=backup,
        backup_within_ms=backup_within,
        serve_all=serve_all,
        steering={} if steering is None else read_steering(steering),
    )


def _sizes(text: str, candidates: int) -> list[int | None]:
    """``2``, ``1-4``, or ``any``; a range ends where the candidates do."""
    if text == "any":
        return [None]
    found = SIZES.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= last <= MOST_SITES:
        raise fail(f"--k {text}: expected a number, a range like 1-4, or any", ExitCode.USAGE)
    return list(range(first, max(first, min(last, candidates)) + 1))


def _sized(wishes: "Wishes", k: str, scene: "Scene") -> "Wishes":
    """With one number of sites."""
    from dataclasses import replace

    sizes = _sizes(k, len(scene.sites))
    if len(sizes) > 1:
        raise fail(f"--k {k}: one number here", ExitCode.USAGE)
    return replace(wishes, k=sizes[0])


def _notes(where: "Source", scene: "Scene", wishes: "Wishes") -> tuple[str, ...]:
    from pathbudget.analysis.siting.decision_words import notes

    return (*where.notes, *notes(scene, wishes))


def _not_met() -> ExitCode:
    return ExitCode.OBJECTIVE_NOT_MET


def _tried(work: Callable[[], T]) -> T:
    """What the siting code refuses to do, as a usage error."""
    try:
        return work()
    except ValueError as error:
        raise fail(str(error), ExitCode.USAGE) from None
