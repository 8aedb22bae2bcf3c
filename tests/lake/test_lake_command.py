"""`pathbudget budget lines` with processes or a cluster prints what it prints without."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pathbudget.agents.cli.lake_lines import other_version
from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store

NOBODY = "tcp://127.0.0.1:1"


def budget(*words: object) -> Result:
    result = CliRunner().invoke(application, ["budget", "lines", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(result: Result) -> dict[str, Any]:
    """What was printed; the effective size, a sum of many, but for its last places."""
    found: dict[str, Any] = json.loads(result.stdout)
    for line in found["lines"]:
        line["n_effective"] = float(f"{line['n_effective']:.9g}")
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with a worker of one thread, in this process, on a port of the loopback."""
    from distributed import LocalCluster

    options: dict[str, Any] = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": None}
    cluster: Any = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=1, processes=False, **options
    )
    with cluster:
        yield cluster.scheduler_address


def test_processes_print_the_same(store: Store) -> None:
    words = (store.layout.root, "--all-lines", "--sites", "all", "--campaign", "two")
    plain = budget(*words, "--format", "json")
    found = budget(*words, "--format", "json", "--workers", 1)
    assert (found.exit_code, found.stderr) == (plain.exit_code, plain.stderr)
    assert document(found) == document(plain)


def test_a_cluster_prints_the_same(store: Store, tmp_path: Path, address: str) -> None:
    words = (store.layout.root, "--sites", "all", "--format", "json")
    plain = budget(*words)
    found = budget(*words, "--dask", address, "--scratch", tmp_path)
    assert found.exit_code == plain.exit_code
    assert len(document(plain)["lines"]) > 5
    assert document(found) == document(plain)
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_the_same(store: Store) -> None:
    plain = budget(store.layout.root, "--sites", "all")
    assert budget(store.layout.root, "--sites", "all", "--workers", 1).stdout == plain.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workers", 2, "--dask", NOBODY), "--workers or --dask, not both"),
        (("--scratch", "."), "--scratch goes with --workers or --dask"),
        (("--dask", NOBODY), "--dask needs --scratch FOLDER"),
        (("--workers", 2, "--scratch", "no-such"), "no-such: there is no such folder"),
        (("--workers", 2, "--always-valid"), "--always-valid cannot go with --workers"),
        (
            ("--dask", NOBODY, "--scratch", ".", "--require-busy-hours"),
            "--require-busy-hours cannot go with --dask",
        ),
        (("--dask", "no://where", "--scratch", "."), "unknown address scheme 'no'"),
        (("--workers", 2, "--tier", "no-such"), "unknown tier no-such"),
    ],
)
def test_what_cannot_go_together(store: Store, words: tuple[object, ...], said: str) -> None:
    result = budget(store.layout.root, *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_scheduler_that_does_not_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathbudget.agents.cli.lake_lines.ANSWER_WITHIN", "100ms")
    result = budget(store.layout.root, "--dask", NOBODY, "--scratch", ".")
    assert result.exit_code == 5
    assert result.stderr == f"--dask {NOBODY}: no scheduler answers there.\n"


@pytest.mark.parametrize(
    ("scheduler", "worker", "said"),
    [
        ("0.1.0", "0.1.0", ""),
        (None, "0.1.0", "its scheduler has no pathbudget"),
        ("0.1.0", None, "its worker tcp://a has no pathbudget"),
        ("0.1.0", "0.2.0", "its worker tcp://a has pathbudget 0.2.0, and here is 0.1.0"),
    ],
)
def test_a_cluster_with_another_version(
    scheduler: str | None, worker: str | None, said: str
) -> None:
    def of(version: str | None) -> dict[str, Any]:
        return {"packages": {"pathbudget": version}}

    versions = {"client": of("0.1.0"), "scheduler": of(scheduler), "workers": {}}
    versions["workers"]["tcp://a"] = of(worker)
    assert other_version(versions) == said


def test_nothing_to_read(store: Store, tmp_path: Path) -> None:
    assert budget(tmp_path / "none", "--workers", 1).exit_code == 4
    no_store = budget(tmp_path, "--workers", 1)
    assert no_store.exit_code == 5
    assert "is no store" in no_store.stderr
    nothing = budget(store.layout.root, "--workers", 1, "--campaign", "no-such")
    assert nothing.exit_code == 4
    assert "the store holds no sample of a campaign 'no-such'" in nothing.stderr


def test_without_the_extra(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = budget(store.layout.root, "--dask", NOBODY, "--scratch", ".")
    assert result.exit_code == 5
    assert "needs distributed; run: pip install 'pathbudget[lake]'" in result.stderr
