"""`pathbudget budget lines` of a store that memory does not hold: by processes, or on Dask."""

from collections.abc import Generator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathbudget.agents.cli.exits import ExitCode, fail
from pathbudget.agents.cli.measured_store import need_store, no_sample
from pathbudget.agents.cli.report import catalogue_of, refuse_unknown

if TYPE_CHECKING:
    from pathbudget.agents.lake.runners import Runner
    from pathbudget.analysis.results import Evaluation

PACKAGE = "pathbudget"
ANSWER_WITHIN = "10s"
"""How long a scheduler has to answer."""

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Read a store past memory, in N processes."),
]
DaskOption = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Read it on this Dask scheduler's cluster."),
]
ScratchOption = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        metavar="FOLDER",
        help="Room for 16 bytes a sample; all workers of --dask must reach it.",
    ),
]


@dataclass(frozen=True, slots=True)
class LakeWish:
    """How to read a store as a lake."""

    workers: int | None = None
    dask: str | None = None
    scratch: Path | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether it is to be read so at all."""
        return self.workers is not None or self.dask is not None

    def check(self, **others: bool) -> None:
        """Exit with a message where options cannot go together; `others` by what they are called
        and whether they were given.
        """
        if not self.is_wanted:
            if self.scratch is not None:
                raise fail("--scratch goes with --workers or --dask.", ExitCode.USAGE)
            return
        name = "--workers" if self.dask is None else "--dask"
        if self.workers is not None and self.dask is not None:
            raise fail("--workers or --dask, not both: a cluster has its own.", ExitCode.USAGE)
        for other, given in others.items():
            if given:
                option = f"--{other.replace('_', '-')}"
                raise fail(f"{option} cannot go with {name}; leave one out.", ExitCode.USAGE)
        if self.dask is not None and self.scratch is None:
            message = "--dask needs --scratch FOLDER: one that all its workers reach."
            raise fail(message, ExitCode.USAGE)
        if self.scratch is not None and not self.scratch.is_dir():
            raise fail(f"--scratch {self.scratch}: there is no such folder.", ExitCode.USAGE)


def lake_evaluated(
    folder: Path,
    catalogue_files: list[Path],
    tiers: tuple[str, ...],
    campaign: str | None,
    wish: LakeWish,
) -> "Evaluation":
    """The lines of a store and what they recommend; exits with a message where there are none."""
    from pathbudget.agents.extras import require

    catalogue = catalogue_of(catalogue_files)
    refuse_unknown("tier", tiers, tuple(catalogue.tiers))
    need_store(folder)
    require("analysis", "numpy", "scipy")
    require("store", "pyarrow")
    from pathbudget.agents.lake.envelopes import Wanted
    from pathbudget.agents.lake.evaluation import evaluation_of
    from pathbudget.agents.lake.pairs import Question
    from pathbudget.agents.lake.store import store_lines
    from pathbudget.agents.store.parquet import Store
    from pathbudget.analysis.evaluate import EvaluationOptions
    from pathbudget.analysis.places import tiers_of

    options, chosen = EvaluationOptions(), tiers_of(catalogue, tiers or None)
    question = Question(chosen, options.percentiles, options.confidence)
    with _runner(wish) as runner:
        found = store_lines(
            Store(folder.resolve()),
            question,
            runner=runner,
            wanted=Wanted(campaign=campaign),
            scratch=None if wish.scratch is None else wish.scratch.resolve(),
        )
    if not found.samples:
        raise no_sample(folder, campaign)
    return evaluation_of(found, catalogue, chosen, options)


@contextmanager
def _runner(wish: LakeWish) -> "Generator[Runner]":
    if wish.dask is not None:
        with _on_dask(wish.dask) as runner:
            yield runner
        return
    from pathbudget.agents.lake.runners import InProcesses

    try:
        with InProcesses(wish.workers or 1) as processes:
            yield processes
    except BrokenExecutor:
        message = "a worker process was ended, by want of memory perhaps: try fewer --workers."
        raise fail(message, ExitCode.TROUBLE) from None


@contextmanager
def _on_dask(address: str) -> "Generator[Runner]":
    from pathbudget.agents.extras import require

    require("lake", "dask", "distributed")
    from distributed import KilledWorker

    from pathbudget.agents.lake.runners import OnDask

    with _client(address) as client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise fail(f"--dask {address}: the scheduler has no workers.", ExitCode.TROUBLE)
        if stranger := other_version(client.get_versions(packages=[PACKAGE])):
            raise fail(f"--dask {address}: {stranger}; install the same.", ExitCode.TROUBLE)
        try:
            yield OnDask(threads)
        except KilledWorker:
            message = f"--dask {address}: workers were ended, by want of memory perhaps."
            raise fail(message, ExitCode.TROUBLE) from None


def other_version(versions: Mapping[str, Any]) -> str:
    """Who of a cluster has another pathbudget than this client, or none: tasks would end its
    workers one by one, and then wait for others for ever. Empty where all have the same.
    """
    everybody = {"its scheduler": versions["scheduler"]}
    everybody |= {f"its worker {name}": found for name, found in versions["workers"].items()}
    ours = versions["client"]["packages"].get(PACKAGE)
    for who, found in everybody.items():
        theirs = found["packages"].get(PACKAGE)
        if theirs != ours:
            other = f"{PACKAGE} {theirs}, and here is {ours}" if theirs else f"no {PACKAGE}"
            return f"{who} has {other}"
    return ""


def _client(address: str) -> Any:
    """A client of the scheduler; exits with a message where none answers."""
    from distributed import Client

    try:
        return Client(address, timeout=ANSWER_WITHIN)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        wrong = isinstance(error, ValueError)
        why = str(error).splitlines()[0] if wrong else "no scheduler answers there."
        code = ExitCode.USAGE if wrong else ExitCode.TROUBLE
        raise fail(f"--dask {address}: {why}", code) from None
