"""`pathbudget sites`: what is printed, in 80 columns, and how it ends."""

import csv
import io
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pathbudget.agents.cli.sites import register

MATRIX = """\
region,site,rtt_ms,n,low_ms,high_ms,weight
london,ams,12,300,11,13,5
london,fra,18,300,17,20,5
london,par,9.5,300,8.8,12.9,5
berlin,ams,19,300,18,20,3
berlin,fra,11,300,10,12,3
madrid,par,24,300,22,27,2
madrid,ams,38,300,37,40,2
rome,fra,22,300,20,24,2
rome,par,25,80,20,31,2
"""
CATALOGUE = """\
name,latitude,longitude,price_per_month,power_kw,exchanges,networks
ams,52.37,4.9,300,20,AMS-IX; NL-ix,AS64500
fra,50.11,8.68,200,10,DE-CIX Frankfurt,AS64500 AS64501
par,48.86,2.35,100,30,,
"""


def run(*arguments: str) -> Result:
    application = typer.Typer()
    register(application)
    return CliRunner().invoke(application, ["sites", *arguments], env={"COLUMNS": "80"})


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    path = tmp_path / "matrix.csv"
    path.write_text(MATRIX)
    return str(path)


@pytest.fixture
def sites(tmp_path: Path) -> str:
    path = tmp_path / "sites.csv"
    path.write_text(CATALOGUE)
    return str(path)


def test_a_choice_in_words(matrix: str, sites: str) -> None:
    result = run("choose", matrix, "-c", sites, "--k", "1-2", "--budget", "350")
    assert result.exit_code == 0, result.output
    assert "Take fra and par: 16.88 ms, mean over the traffic." in result.stdout
    assert "Proved: no choice that keeps the constraints does better." in result.stdout
    assert "Together: 300 per month, 40 kW." in result.stdout
    assert "DE-CIX Frankfurt" in result.stdout
    assert "AS64500 AS64501" in result.stdout
    assert "Without fra:" in result.stdout
    assert "Resampled 200 times" in result.stdout
    assert "3 of 12 pairs have no upper limit" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_and_csv_say_the_same(matrix: str) -> None:
    told = json.loads(run("choose", matrix, "--k", "2", "--format", "json").stdout)
    assert told["shown"]["sites"] == ["fra", "par"]
    assert told["shown"]["robustness"]["resamples"] == 200
    rows = list(
        csv.DictReader(io.StringIO(run("choose", matrix, "--k", "2", "--format", "csv").stdout))
    )
    assert {row["region"]: row["site"] for row in rows} == {
        one["region"]: one["site"] for one in told["shown"]["assignments"]
    }


def test_an_empty_table_says_why_beside_it(matrix: str) -> None:
    for command in ("choose", "failover", "measure-next"):
        result = run(command, matrix, "--k", "9", "--format", "csv")
        assert result.exit_code == 1
        assert len(result.stdout.splitlines()) == 1
        assert "9 sites" in result.stderr or "9 of" in result.stderr


@pytest.mark.parametrize("option", ["--allowance", "--backup-within"])
def test_limits_are_times(matrix: str, option: str) -> None:
    for value in ("-3", "0", "nan", "inf"):
        result = run("choose", matrix, "--k", "2", "--backup", "1", option, value)
        assert result.exit_code == 2, value
        assert f"{option} {value}: expected milliseconds above 0" in result.stderr


def test_a_clash_ends_with_1_and_says_why(matrix: str) -> None:
    result = run("choose", matrix, "--k", "2", "--must-have", "ams", "--must-not", "ams")
    assert result.exit_code == 1
    assert "These cannot hold together: ams must be taken; ams must not be taken." in result.stdout


def test_routing_from_a_file(matrix: str, tmp_path: Path) -> None:
    steering = tmp_path / "answers.csv"
    steering.write_text("region,site,n\nlondon,fra,9\nlondon,par,1\n")
    result = run("choose", matrix, "--k", "2", "--must-have", "fra", "--must-have", "par")
    steered = run(
        *("choose", matrix, "--k", "2", "--must-have", "fra", "--must-have", "par"),
        *("--steering", str(steering)),
    )
    assert "As routed" not in result.stdout
    words = " ".join(steered.stdout.split())
    assert "Take fra and par: 19.54 ms" in words
    assert "As routed 19.54 ms, under full control 16.88 ms; 37.5 % of the traffic" in words


def test_the_frontier_marks_what_nothing_beats(matrix: str, sites: str) -> None:
    result = run("frontier", matrix, "-c", sites, "--k", "1-2")
    assert result.exit_code == 0, result.output
    assert "* no other point is as good and cheaper" in result.stdout
    points = json.loads(run("frontier", matrix, "-c", sites, "--format", "json").stdout)["points"]
    assert {point["k"] for point in points} == {1, 2, 3}


def test_failover_says_where_regions_go(matrix: str) -> None:
    result = run("failover", matrix, "--k", "2")
    assert result.exit_code == 0, result.output
    assert "fra and par: 16.88 ms with all sites up" in result.stdout
    assert "25 % of the traffic not served (berlin)" in result.stdout


def test_what_to_measure_next(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(
        "region,site,rtt_ms,n,low_ms,high_ms\nlon,ams,20,9,14,29\nlon,fra,21,900,20.9,21.1\n"
    )
    result = run("measure-next", str(path))
    assert result.exit_code == 0, result.output
    first = next(line for line in result.stdout.splitlines() if line.startswith("lon"))
    assert first.split()[:3] == ["lon", "ams", "9"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--k", "0"], "--k 0: expected a number"),
        (["--k", "4-2"], "--k 4-2: expected a number"),
        (["--tier", "x", "--tier-mix", "a=1"], "say one of them"),
        (["--tier-mix", "a"], "expected tier=share"),
        (["--tier-mix", "voice-ai=1,chat=1"], "--tier-mix needs a store"),
        (["--tier", "nothing"], "no tier nothing"),
        (["--must-have", "nowhere"], "no site nowhere"),
        (["--budget", "10"], "no price of ams, fra, par"),
        (["--objective", "covering"], "covering needs an allowance"),
        (["--fill"], "9 pairs are known; at least 12"),
        (["--power", "0"], "expected kilowatts"),
        (["--percentile", "100"], "expected between 0 and 100"),
        (["--steering", "nowhere.csv"], "cannot be read"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(matrix: str, options: list[str], said: str) -> None:
    result = run("choose", matrix, *options)
    assert result.exit_code == 2, result.output
    assert said in result.output.replace("\n", " ")


def test_a_frontier_wants_numbers_of_sites(matrix: str) -> None:
    result = run("frontier", matrix, "-k", "any")
    assert result.exit_code == 2
    assert "--k any: a number or a range here" in result.output


def test_a_store_that_is_not_there_ends_with_4(tmp_path: Path) -> None:
    result = run("choose", str(tmp_path / "store"))
    assert result.exit_code == 4
    assert "measure first" in result.output


@pytest.fixture
def with_gaps(tmp_path: Path) -> str:
    """Five regions on a line by four sites, the shortest pair of each site not measured."""
    lines = [
        f"r{i},s{j},{5 + 10 * abs(i - 1.3 * j):.1f},200"
        for i in range(5)
        for j in range(4)
        if i != j
    ]
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(["region,site,rtt_ms,n", *lines]))
    return str(path)


def test_no_filled_pair_is_silent(with_gaps: str) -> None:
    """Guesses are marked in every table, with the traffic that rests on them, and every format."""
    told = json.loads(run("choose", with_gaps, "--k", "2", "--fill", "--format", "json").stdout)
    shown = told["shown"]
    served = [(one["weight"], one["filled"], one["within"]) for one in shown["assignments"]]
    assert shown["filled_share"] == pytest.approx(sum(w for w, filled, _ in served if filled))
    assert shown["filled_share"] > 0
    assert any("4 of 20 pairs are filled by a model, marked ~" in note for note in shown["notes"])
    table = run("choose", with_gaps, "--k", "2", "--fill").stdout
    names = " and ".join(shown["sites"])
    assert f"Take {names}: ~{shown['value']:.2f} ms" in table
    assert f"Filled pairs (~) serve {shown['filled_share']:.0%}".replace("%", " %") in table
    lost = run("failover", with_gaps, "--k", "2", "--fill")
    assert f"{names}: ~{shown['value']:.2f} ms with all sites up" in lost.stdout
    assert f"Without {shown['sites'][0]}: ~" in lost.stdout
    rows = csv.DictReader(
        io.StringIO(run("failover", with_gaps, "--k", "2", "--fill", "--format", "csv").stdout)
    )
    marks = {row["region"]: (row["before_filled"], row["filled"]) for row in rows}
    guessed = {one["region"] for one in shown["assignments"] if one["filled"]}
    assert {name for name, (before, _) in marks.items() if before == "True"} == guessed
    points = json.loads(run("frontier", with_gaps, "--fill", "--format", "json").stdout)["points"]
    assert [point["filled_share"] > 0 for point in points[:2]] == [True, True]
    assert "~" in run("frontier", with_gaps, "--k", "1", "--fill").stdout
    assert "~" not in run("frontier", with_gaps, "--k", "1").stdout


def test_guesses_are_not_learned_from(with_gaps: str) -> None:
    """What to measure next rests on the filling that is stated, not on a second one on top."""
    with Path(with_gaps).open("a") as file:
        file.write("\nr9,s0,30,200")  # its other three pairs stay open
    told = run("measure-next", with_gaps, "--k", "1", "--fill").stdout
    assert "are filled by a model" in told
    assert "Unmeasured pairs are taken here as" not in told
    assert "Of 3 unmeasured pairs nothing can be said beforehand." in told
