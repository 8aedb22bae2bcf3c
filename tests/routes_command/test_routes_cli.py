"""The command over a real store: a path that moves after half an hour, told once, with its cost."""

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from tests.routes_command.week import make_report
from typer.testing import CliRunner, Result

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application
from pathbudget.agents.cli.routes import _exit_code
from pathbudget.agents.routes import evaluation
from pathbudget.agents.routes.evaluation import RouteWish
from pathbudget.agents.routes.follow import LIVES_NS, new_monitor, news
from pathbudget.agents.routes.following import Looks
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.routes.route_report import RouteReport
from pathbudget.probes.record import AddressFamily, Measurement, Note, Sample, Target, Vantage
from pathbudget.sites.catalogue import Catalogue

AT = 1_790_000_000_000_000_000
SECOND, MS = 1_000_000_000, 1_000_000
TARGET = "198.51.100.9"
MOVES_AT = 1_800
"""Seconds; 3,600 in all."""
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "routes-schema.json"


def measurement(name: str, probe: str, samples: Iterator[Sample]) -> Measurement:
    return Measurement(
        id=name,
        vantage=Vantage(name="tokyo-1", region="tokyo"),
        target=Target(name="frankfurt", host=TARGET, site="frankfurt"),
        probe=probe,
        started_unix_ns=AT,
        samples=tuple(samples),
        campaign="spring",
        address=TARGET,
        family=AddressFamily.IPV4,
        duration_ns=3_600 * SECOND,
    )


def round_trips() -> Iterator[Sample]:
    """One a second, 12 ms longer after the move."""
    for n in range(3_600):
        value = 15 * MS + n * 7_919 % 200_000 + (12 * MS if n >= MOVES_AT else 0)
        yield Sample(n, "rtt", AT + n * SECOND, value_ns=value)


def traces() -> Iterator[Sample]:
    """One a minute, two flows."""
    for n in range(60):
        at = AT + n * 60 * SECOND
        middle = "10.1" if n * 60 < MOVES_AT else "10.2"
        for flow in (1, 2):
            hops = ("10.0.0.1", f"{middle}.0.{flow}", f"{middle}.1.1", None)
            for part, who in enumerate(hops, 1):
                yield Sample(
                    n,
                    "hop_rtt",
                    at + part * MS,
                    value_ns=part * MS,
                    responder=who,
                    flow=flow,
                    part=part,
                )
        notes: dict[str, Note] = {
            "stopped": "arrived",
            "complete": True,
            "confidence": 0.95,
            "protocol": "icmp",
        }
        yield Sample(n, "rtt", at, value_ns=15 * MS, flow=1, notes=notes)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routes") / "store"
    Store(folder).write(
        [measurement("m1", "icmp", round_trips()), measurement("m2", "trace", traces())]
    )
    return folder


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prefixes") / "prefixes.csv"
    file.write_text("10.0.0.0/16,65010,access\n10.1.0.0/16,65012,b\n10.2.0.0/16,65013,c\n")
    return file


def routes(*words: str | Path) -> Result:
    return CliRunner().invoke(application, ["routes", *map(str, words)])


def test_the_move_is_told_once_with_its_cost_and_who_did_it(store: Path, prefixes: Path) -> None:
    done = routes(store, "--prefixes", prefixes)
    assert done.exit_code == ExitCode.OK, done.output
    assert "1 incident, 1 still so" in " ".join(done.output.split())
    assert "path moved, +12.0 ms (" in done.output
    assert "AS6501" in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_json_fits_the_published_schema_and_a_page_is_written_whole(
    store: Path, prefixes: Path, tmp_path: Path
) -> None:
    page = tmp_path / "routes.html"
    done = routes(store, "--json", "--html", page, "--prefixes", prefixes)
    assert done.exit_code == ExitCode.OK, done.output
    content = json.loads(done.stdout)
    jsonschema.validate(content, json.loads(SCHEMA.read_bytes()))
    assert [one["cause"] for one in content["incidents"]] == ["path_moved"]
    text = page.read_text()
    assert "10.2.1.1" in text
    assert text.rstrip().endswith("</html>")


def test_a_report_joins_at_the_time_scale_that_it_is_given(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[float] = []

    def noting(opened: Store, wish: RouteWish, *rest: object) -> RouteReport:
        scales.append(wish.time_scale)
        return make_report()

    monkeypatch.setattr(evaluation, "routes_of_store", noting)
    words = ["report", str(store), "-o", str(tmp_path / "report.json"), "--time-scale", "0.05"]
    done = CliRunner().invoke(application, words)
    assert done.exit_code == ExitCode.OK, done.output
    assert scales == [0.05]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--series", "sydney"], ExitCode.NOTHING_MEASURED, "of sydney"),
        (["--until", "2020-01-01"], ExitCode.NOTHING_MEASURED, "holds no trace"),
        (["--tier", "gold"], ExitCode.USAGE, "gold"),
        (["--prefixes", "/nowhere.csv"], ExitCode.USAGE, "nowhere.csv"),
        (["--html", "/nowhere/routes.html"], ExitCode.USAGE, "no folder"),
        (["--follow", "--every", "soon"], ExitCode.USAGE, "--every"),
        (["--feeds", "/nowhere.toml"], ExitCode.USAGE, "nowhere.toml"),
        (["--granularity", "city"], ExitCode.USAGE, "address, router or as"),
        (["--granularity", "router"], ExitCode.USAGE, "--aliases FILE"),
        (["--granularity", "as"], ExitCode.USAGE, "--prefixes FILE"),
    ],
    ids=["series", "until", "tier", "prefixes", "html", "every", "feeds", "hop", "router", "as"],
)
def test_what_cannot_be_is_one_message(
    store: Path, words: list[str], code: ExitCode, said: str
) -> None:
    done = routes(store, *words)
    assert done.exit_code == code, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_move_within_one_router_is_no_move_where_routers_are_known(
    store: Path, tmp_path: Path
) -> None:
    aliases = tmp_path / "aliases"
    paths = [
        one["paths"] for one in json.loads(routes(store, "--json").stdout)["stability"][0]["routes"]
    ]
    words = sorted(
        {hop for route in paths for path in route for hop in path if hop.count(".") == 3}
    )
    aliases.write_text("everywhere: " + " ".join(words) + "\n")
    done = routes(store, "--json", "--granularity", "router", "--aliases", aliases)
    assert done.exit_code == ExitCode.OK, done.output
    stability = json.loads(done.stdout)["stability"][0]
    assert stability["granularity"] == "router"
    assert stability["changes"] == 0


def test_no_store_is_said(tmp_path: Path) -> None:
    done = routes(tmp_path / "nothing")
    assert done.exit_code == ExitCode.NOTHING_MEASURED
    assert "there is no store" in done.output


def test_the_exit_code_is_of_open_incidents_that_break_a_line(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert routes(store, "--exit-code", "--series", "frankfurt").exit_code in (0, 1)
    assert _exit_code(make_report(incidents=False)) == ExitCode.OK
    assert _exit_code(make_report()) == ExitCode.OBJECTIVE_NOT_MET
    assert "fail: sick link member: Voice AI, tokyo > frankfurt" in capsys.readouterr().err


def test_following_tells_the_same_once(store: Path) -> None:
    wish = RouteWish()
    looks, monitor = Looks(Store(store), wish), new_monitor(wish, Catalogue(), None)
    now = AT + 3_600 * SECOND + LIVES_NS // 2
    told = [*news(looks, monitor, now), *news(looks, monitor, now + 10 * SECOND)]
    assert [one.cause for one in told] == ["path_moved"]
