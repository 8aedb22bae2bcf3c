"""What `budget whole` and `budget what-if` have in common: options, and which budgets are meant."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.budget_lines import Undecided
from pathbudget.agents.cli.exits import ExitCode, fail
from pathbudget.agents.cli.measured_store import no_sample
from pathbudget.agents.cli.options import DEFAULT_STORE, tell_misplaced
from pathbudget.agents.cli.report import catalogue_of, refuse_unknown
from pathbudget.analysis.whole_budget.results import Combine, WholeVerdict

if TYPE_CHECKING:
    from pathbudget.agents.whole_budgets import Given
    from pathbudget.analysis.results import Evaluation
    from pathbudget.analysis.whole_budget.evaluation import Networks, PairName
    from pathbudget.sites.catalogue import Tier


class Format(StrEnum):
    """What whole budgets can be printed as."""

    TABLE = "table"
    JSON = "json"


MaybeStore = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STORE]",
        help="Folder of measurements. Default: pathbudget-store, if it is there.",
        show_default=False,
    ),
]
AllowancesOption = Annotated[
    bool,
    typer.Option("--allowances", help="No store: the network, too, at its allowance."),
]
CombineOption = Annotated[
    Combine | None,
    typer.Option(
        "--combine", help="Default: joint where ids of requests allow it, else independent."
    ),
]
PercentileOption = Annotated[
    float | None,
    typer.Option("--percentile", help="Of the whole, like 99. Default: the tier's own."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print.")]
UndecidedOption = Annotated[
    Undecided,
    typer.Option("--undecided", help="What an undecided budget is: a warning, a pass or a fail."),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    store: Path | None
    catalogue: tuple[Path, ...]
    tiers: tuple[str, ...]
    regions: tuple[str, ...]
    sites: tuple[str, ...]
    campaign: str | None
    percentile: float | None
    allowances: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """What there is to make whole budgets of."""

    tiers: tuple["Tier", ...]
    given: "Given"
    networks: "Networks"
    evaluation: "Evaluation | None"
    asked: Asked

    def pairs(self, tier: str) -> "list[PairName]":
        """Region and site of each budget of a tier; one without a name where there is no store."""
        asked = self.asked
        if self.evaluation is None:
            return [("", "")]
        regions = [one.name for one in self.evaluation.regions]
        regions = [name for name in regions if name in asked.regions or not asked.regions]
        if asked.sites:
            return [(region, site) for region in regions for site in asked.sites]
        served = _served(self.evaluation, tier)
        return [(region, served[region]) for region in regions if region in served]


def _served(evaluation: "Evaluation", tier: str) -> dict[str, str]:
    """The site that serves each region, of the choice that a report opens with."""
    from pathbudget.analysis.report.lookup import Lookup

    return Lookup(evaluation).serving(tier)


def measured(asked: Asked, given: "Given") -> Measured:
    """Evaluate the store, if there is one to evaluate; exits with a message where that is wrong."""
    from pathbudget.agents.extras import require

    require("analysis", "numpy", "scipy")
    catalogue = catalogue_of(list(asked.catalogue))
    known = tuple(catalogue.tiers)
    refuse_unknown("tier", asked.tiers, known)
    tiers = tuple(
        _at(tier, asked.percentile)
        for tier in catalogue.tiers.values()
        if tier.name in asked.tiers or not asked.tiers
    )
    folder = _folder(asked)
    if folder is None:
        if asked.regions or asked.sites:
            raise fail("--region and --site need a store of measurements.", ExitCode.USAGE)
        tell_misplaced(given.terms, None, known)
        return Measured(tiers, given, {}, None, asked)
    require("store", "pyarrow")
    from pathbudget.agents.store.parquet import Store
    from pathbudget.agents.whole_budgets import measured_networks

    catalogue = replace(catalogue, tiers={tier.name: tier for tier in tiers})
    evaluation, networks = measured_networks(Store(folder), catalogue, campaign=asked.campaign)
    if not evaluation.provenance.samples:
        raise no_sample(folder, asked.campaign)
    refuse_unknown("region", asked.regions, tuple(one.name for one in evaluation.regions))
    refuse_unknown("site", asked.sites, tuple(one.name for one in evaluation.sites))
    tell_misplaced(given.terms, evaluation, known)
    return Measured(tiers, given, networks, evaluation, asked)


def _at(tier: "Tier", percentile: float | None) -> "Tier":
    if percentile is None:
        return tier
    if not 1 <= percentile < 100:
        raise fail(f"--percentile {percentile:g}: expected 1 to below 100", ExitCode.USAGE)
    return replace(tier, percentile=percentile)


def _folder(asked: Asked) -> Path | None:
    """The store to read; None where everything is assumed."""
    if asked.allowances:
        if asked.store is not None:
            raise fail("--allowances is for no store: name one of the two.", ExitCode.USAGE)
        return None
    if asked.store is None:
        return DEFAULT_STORE if DEFAULT_STORE.is_dir() else None
    if not asked.store.is_dir():
        message = f"{asked.store}: there is no store; measure first, or --allowances."
        raise fail(message, ExitCode.NOTHING_MEASURED)
    return asked.store


def exit_code(verdicts: list[WholeVerdict], undecided: Undecided) -> ExitCode:
    """1 for a budget that fails, or is undecided where that was asked for."""
    broken = WholeVerdict.FAIL in verdicts
    doubtful = WholeVerdict.UNDECIDED in verdicts and undecided is Undecided.FAIL
    return ExitCode.OBJECTIVE_NOT_MET if broken or doubtful else ExitCode.OK


def say_undecided(verdicts: list[WholeVerdict], undecided: Undecided) -> None:
    """How many are undecided, on stderr, for a build log."""
    number = verdicts.count(WholeVerdict.UNDECIDED)
    if number and undecided is not Undecided.PASS:
        word = "warning" if undecided is Undecided.WARN else "fail"
        typer.echo(f"{word}: {number} undecided (--undecided pass|fail|warn)", err=True)
