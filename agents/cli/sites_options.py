"""The options of `pathbudget sites`, and what a person is told of each."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Objective(StrEnum):
    """What a choice optimises."""

    P_MEDIAN = "p-median"
    P_CENTER = "p-center"
    COVERING = "covering"


SourceArgument = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="A store, or a matrix: region,site,rtt_ms CSV.")
]
KOption = Annotated[
    str,
    typer.Option(
        "--k",
        "-k",
        metavar="N|A-B|any",
        help="How many sites. Unsure? A range such as 1-4 shows from where on a further one gains "
        "under 5 %; any leaves it to the budget.",
    ),
]
OneKOption = Annotated[
    str, typer.Option("--k", "-k", metavar="N|any", help="How many sites; any: no number.")
]
RangeOption = Annotated[
    str, typer.Option("--k", "-k", metavar="N|A-B", help="How many sites: a number or a range.")
]
ObjectiveOption = Annotated[
    Objective, typer.Option("--objective", help="Mean, worst region, or traffic in allowance.")
]
TierOption = Annotated[
    str, typer.Option("--tier", help="One tier; default: the catalogue's first.")
]
MixOption = Annotated[
    str, typer.Option("--tier-mix", metavar="T=S,...", help="Tiers with their traffic shares.")
]
MustHaveOption = Annotated[
    list[str] | None, typer.Option("--must-have", metavar="SITE", help="Take it; repeatable.")
]
MustNotOption = Annotated[
    list[str] | None, typer.Option("--must-not", metavar="SITE", help="Not this; repeatable.")
]
BudgetOption = Annotated[
    float | None, typer.Option("--budget", help="Most per month for all sites.", min=0)
]
PowerOption = Annotated[
    float | None,
    typer.Option("--power", metavar="KW", help="All traffic needs this; sites have power_kw."),
]
PowerCapOption = Annotated[
    float | None, typer.Option("--power-cap", metavar="KW", help="Most of all sites together.")
]
CapacityOption = Annotated[
    bool, typer.Option("--capacity", help="Keep the sites' capacities; regions may be split.")
]
BackupOption = Annotated[
    int, typer.Option("--backup", metavar="R", help="Further sites for every region.", min=0)
]
BackupWithinOption = Annotated[
    float | None, typer.Option("--backup-within", metavar="MS", help="A backup is this near.")
]
ServeAllOption = Annotated[
    bool, typer.Option("--serve-all", help="No region may be left without a site.")
]
FillOption = Annotated[
    bool, typer.Option("--fill", help="Guess unmeasured pairs by a model, with its error.")
]
SteeringOption = Annotated[
    Path | None,
    typer.Option("--steering", metavar="FILE", help="Who answers whom: region,site,share CSV."),
]
AllowanceOption = Annotated[
    float | None, typer.Option("--allowance", metavar="MS", help="Of a matrix: for covering.")
]
PercentileOption = Annotated[
    float, typer.Option("--percentile", help="Of a matrix: what its numbers are.")
]
SecondsOption = Annotated[
    float, typer.Option("--seconds", help="Longest search per choice.", min=0.1)
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]
