"""`pathbudget budget whole`: the request as a whole against its target, term by term."""

from typing import TYPE_CHECKING, Annotated

import typer

from pathbudget.agents.cli.budget_lines import Undecided
from pathbudget.agents.cli.exits import ExitCode, fail, reports_errors
from pathbudget.agents.cli.options import (
    CampaignOption,
    CatalogueOption,
    RecommendedSiteOption,
    RegionOption,
    SpansOption,
    TermsOption,
    TierOption,
    TracesOption,
    given_of,
    tell_left_out,
)
from pathbudget.agents.cli.whole_options import (
    AllowancesOption,
    Asked,
    CombineOption,
    Format,
    FormatOption,
    MaybeStore,
    Measured,
    PercentileOption,
    UndecidedOption,
    exit_code,
    measured,
    say_undecided,
)

if TYPE_CHECKING:
    from pathbudget.agents.whole_budgets import Given
    from pathbudget.analysis.whole_budget.results import Combine, WholeBudget

DetailsOption = Annotated[
    bool, typer.Option("--details", help="Term by term, also where there are many.")
]


def register_whole(group: typer.Typer) -> None:
    """Add the command."""
    group.command("whole")(whole)


@reports_errors
def whole(
    store: MaybeStore = None,
    catalogue: CatalogueOption = None,
    tier: TierOption = None,
    region: RegionOption = None,
    site: RecommendedSiteOption = None,
    terms: TermsOption = None,
    traces: TracesOption = None,
    span_map: SpansOption = None,
    combine: CombineOption = None,
    percentile: PercentileOption = None,
    campaign: CampaignOption = None,
    allowances: AllowancesOption = False,
    details: DetailsOption = False,
    format: FormatOption = Format.TABLE,  # noqa: A002
    undecided: UndecidedOption = Undecided.WARN,
) -> None:
    """Judge the request as a whole: network, gateway, model, guardrail; exit 1 when it fails.

    The network is measured (STORE), other terms come from --terms and --traces; what is left
    stands at the tier's allowance and is named as assumed.
    """
    given = given_of(terms, traces, span_map)
    asked = Asked(
        store=store,
        catalogue=tuple(catalogue or ()),
        tiers=tuple(tier or ()),
        regions=tuple(region or ()),
        sites=tuple(site or ()),
        campaign=campaign,
        percentile=percentile,
        allowances=allowances,
    )
    budgets = _budgets(measured(asked, given), combine)
    if not budgets:
        raise fail("no site is recommended: name one with --site.", ExitCode.NOTHING_MEASURED)
    _print(budgets, given, format, details=details)
    verdicts = [budget.verdict for budget in budgets]
    say_undecided(verdicts, undecided)
    raise typer.Exit(exit_code(verdicts, undecided))


def _budgets(found: Measured, combine: "Combine | None") -> "list[WholeBudget]":
    from pathbudget.analysis.whole_budget.evaluation import pair_request
    from pathbudget.analysis.whole_budget.whole import whole_budget

    return [
        whole_budget(
            pair_request(
                pair, found.networks.get(pair), tier, given=found.given.terms, combine=combine
            )
        )
        for tier in found.tiers
        for pair in found.pairs(tier.name)
    ]


def _print(budgets: "list[WholeBudget]", given: "Given", kind: Format, *, details: bool) -> None:
    if kind is Format.JSON:
        from pathbudget.analysis.whole_budget.whole_json import budgets_json

        typer.echo(budgets_json(budgets, given.notes), nl=False)
        return
    from pathbudget.agents.cli.whole_table import print_budgets

    print_budgets(budgets, details=details)
    tell_left_out(given)
