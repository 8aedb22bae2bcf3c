"""Options that several commands share, each with its one help text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.exits import tell
from pathbudget.agents.cli.wording import in_a_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathbudget.agents.whole_budgets import Given
    from pathbudget.analysis.results import Evaluation
    from pathbudget.analysis.whole_budget.terms import Term

DEFAULT_STORE = Path("pathbudget-store")

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of measurements.")]
CatalogueOption = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", "-c", help="Regions, sites, tiers: TOML or CSV; repeatable."),
]
TierOption = Annotated[
    list[str] | None, typer.Option("--tier", help="Only this tier; repeatable. Default: all.")
]
CampaignOption = Annotated[
    str | None, typer.Option("--campaign", help="Only measurements of this campaign.")
]
RegionOption = Annotated[
    list[str] | None, typer.Option("--region", help="Only this region; repeatable.")
]
RecommendedSiteOption = Annotated[
    list[str] | None,
    typer.Option("--site", help="This site; repeatable. Default: the recommended one."),
]
TermsOption = Annotated[
    list[Path] | None,
    typer.Option("--terms", metavar="FILE", help="Terms as TOML or CSV; repeatable."),
]
TracesOption = Annotated[
    list[Path] | None,
    typer.Option("--traces", metavar="FILE", help="OpenTelemetry export; repeatable."),
]
SpansOption = Annotated[
    Path | None,
    typer.Option("--span-map", metavar="FILE", help="Which spans are which terms (TOML)."),
]
AlwaysValidOption = Annotated[
    bool,
    typer.Option("--always-valid", help="Intervals of lines hold however often you look."),
]
BusyHoursOption = Annotated[
    bool,
    typer.Option("--require-busy-hours", help="No line passes without its region's evening."),
]


@dataclass(frozen=True, slots=True)
class Rigour:
    """How lines are judged beyond the usual."""

    always_valid: bool = False
    require_busy_hours: bool = False


def given_of(terms: list[Path] | None, traces: list[Path] | None, span_map: Path | None) -> "Given":
    """Terms of the files that were named. Raises ConfigError for their faults."""
    from pathbudget.agents.whole_budgets import given_terms

    return given_terms(terms or [], traces or [], span_map)


def tell_misplaced(
    terms: "Sequence[Term]", evaluation: "Evaluation | None", tiers: tuple[str, ...]
) -> None:
    """Terms for a region, site or tier that is not known here, on stderr: a misspelt name would
    leave its term at the allowance, unseen.
    """
    regions = () if evaluation is None else tuple(one.name for one in evaluation.regions)
    sites = () if evaluation is None else tuple(one.name for one in evaluation.sites)
    known = {"region": regions, "site": sites, "tier": tiers}
    told = dict.fromkeys(
        f"{term.name} of {what} {name}"
        for term in terms
        for what, names in known.items()
        if (name := getattr(term.scope, what)) and name not in names
    )
    for which in told:
        tell(in_a_line(f"Left out: {which}, which is not known here"))


def tell_left_out(given: "Given") -> None:
    """What of those files is in no term, on stderr."""
    for note in given.notes:
        tell(f"Left out: {note}")
