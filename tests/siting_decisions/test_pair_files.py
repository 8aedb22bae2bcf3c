"""Plain tables of region and site: what is read, and what is said of broken ones."""

from pathlib import Path

import pytest

from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.decision_words import notes
from pathbudget.analysis.siting.matrix_scene import EXACT, exact_notes, scene_of_matrix, strangers
from pathbudget.analysis.siting.wishes import Wishes
from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.pair_files import PairRow, read_matrix, read_steering


def written(folder: Path, text: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text(text, "utf-8")
    return path


def faults(path: Path, *, steering: bool = False) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        (read_steering if steering else read_matrix)(path)
    return [f"{fault.where}: {fault.problem}" for fault in caught.value.faults]


def test_a_matrix_of_pairs(tmp_path: Path) -> None:
    text = "Region;Site;RTT_ms;n;low_ms;high_ms;weight\nlon;ams;12.5;300;12;13;2\nlon;fra;;;;;\n\n"
    pairs = read_matrix(written(tmp_path, "\ufeff" + text))
    assert pairs == (PairRow("lon", "ams", 12.5, 300, 12.0, 13.0, 2.0),)
    assert exact_notes(pairs) == ()


def test_a_square_table_is_a_matrix_too(tmp_path: Path) -> None:
    pairs = read_matrix(written(tmp_path, "from,ams,fra\nlon,12,18\nber,,11.5\n"))
    assert [(one.region, one.site, one.rtt_ms) for one in pairs] == [
        ("lon", "ams", 12.0),
        ("lon", "fra", 18.0),
        ("ber", "fra", 11.5),
    ]
    assert exact_notes(pairs) == (EXACT,)


def test_every_fault_of_a_matrix_is_told_with_its_line(tmp_path: Path) -> None:
    text = (
        "region,site,rtt_ms,n,low_ms,high_ms\n"
        "lon,ams,-1,1,,\nlon,fra,x,1,,\nlon,par,9,0.5,,\nlon,mad,9,1,10,11\n"
        "ber,ams,nan,1,,\nber,fra,5,1,,\nber,fra,6,1,,\n,ams,5,1,,\nshort,row\n"
    )
    told = faults(written(tmp_path, text))
    assert [one.split(":")[0] for one in told] == [
        "line 2, rtt_ms",
        "line 3, rtt_ms",
        "line 4",
        "line 5",
        "line 6, rtt_ms",
        "line 9",
        "line 10",
        "line 8",
    ]
    assert told[-1].endswith('"ber" to "fra" is on line 7 already')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("region,site\nlon,ams\n", "has the columns region, site"),
        ("region,site,rtt_ms,speed\nlon,ams,1,1\n", "has the columns"),
        ("1,2,3\n4,5,6\n", "is no header of a matrix"),
        ("region,site,rtt_ms\nlon,ams,\n", "has no pair"),
        ('region,site,rtt_ms\n"lon,ams,1\n', "not CSV"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in one for one in faults(written(tmp_path, text)))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in faults(tmp_path / "nowhere.csv")[0]


def test_who_answers_whom(tmp_path: Path) -> None:
    counts = read_steering(written(tmp_path, "region,site,n\nlon,ams,30\nlon,fra,10\n"))
    assert counts == {"lon": {"ams": 0.75, "fra": 0.25}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("region,site,share\nlon,ams,0\n", "answered by nobody"),
        ("region,site,share\nlon,ams,-1\n", '"-1"'),
        ("region,site,share\nlon,ams,1\nlon,ams,1\n", "stands there twice"),
        ("region,site\nlon,ams\n", "has the columns"),
        ("region,site,share\n", "has no line"),
    ],
)
def test_broken_steering_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in one for one in faults(written(tmp_path, text), steering=True))


def test_a_catalogue_lends_places_prices_and_weights() -> None:
    catalogue = Catalogue(
        regions={"lon": Region("lon", 51.5, -0.1, weight=3.0)},
        sites={"ams": Site("ams", 52.4, 4.9, price_per_month=10.0, power_kw=5.0)},
    )
    pairs = [PairRow("lon", "ams", 12.0), PairRow("ber", "ams", 20.0, weight=1.0)]
    scene = scene_of_matrix(pairs, catalogue)
    assert scene.weights.tolist() == [0.75, 0.25]
    assert scene.sites[0].price_per_month == 10.0
    assert scene.sites[0].power_kw == 5.0
    assert scene.floors is not None
    assert 3 < scene.floors[0, 0] < 4
    with pytest.raises(ValueError, match="all weights are 0"):
        scene_of_matrix([PairRow("lon", "ams", 12.0, weight=0.0)])


def test_a_region_has_one_weight(tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    path.write_text("region,site,rtt_ms,weight\nr1,a,10,100\nr1,b,30,1\nr2,a,40,2\nr2,b,12,2\n")
    with pytest.raises(ConfigError) as caught:
        read_matrix(path)
    assert 'line 3, weight: 1 for "r1", which has 100 on line 2' in str(caught.value)
    assert len(caught.value.faults) == 1


def test_what_a_matrix_leaves_open_is_told() -> None:
    pairs = [PairRow("r1", "a", 10.0), PairRow("r2", "a", 12.0, low_ms=11.0, high_ms=13.0)]
    assert exact_notes(pairs)[0].startswith("1 of 2 pairs give no interval")
    catalogue = Catalogue(regions={"R1": Region("R1", 51.5, -0.1, weight=60.0)})
    assert strangers(pairs, Catalogue()) == ()
    assert strangers(pairs, catalogue)[0].startswith("r1, r2 are no region of the catalogue")


def test_names_of_the_routing_that_fit_nothing_are_told() -> None:
    pairs = [PairRow("r1", "a", 10.0), PairRow("r1", "b", 30.0)]
    steering = {"r1": {"aa": 0.9, "b": 0.1}, "R2": {"b": 1.0}}
    told = " ".join(notes(scene_of_matrix(pairs), Wishes(k=1, steering=steering)))
    assert "R2, aa are names of the routing that fit no region or site here: not used." in told


def test_what_is_routed_to_a_site_that_nobody_measured_is_not_served() -> None:
    pairs = [PairRow("r1", "a", 10.0), PairRow("r2", "a", 40.0), PairRow("r2", "b", 12.0)]
    steering = {"r1": {"b": 1.0}, "r2": {"b": 1.0}}
    decision = decide(scene_of_matrix(pairs), Wishes(k=2, steering=steering))
    assert decision.value == pytest.approx(12.0)
    assert decision.served_share == pytest.approx(0.5)
    (without_a,) = [one for one in decision.failover if one.lost_site == "a"]
    assert without_a.unserved == ("r1",)
