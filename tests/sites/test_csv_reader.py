"""Tables as spreadsheets save them, and everything that can be wrong in one."""

from collections.abc import Callable

import pytest

from pathbudget.probes.record import Target
from pathbudget.sites.catalogue import Catalogue

Load = Callable[..., Catalogue]
Faults = Callable[..., list[str]]

EUROPEAN = (
    "\ufeffName;Title;Latitude;Longitude;Price per month;Capacity;Targets\r\n"
    'dallas-a;"Cage; third floor";32,8008;-96,8195;1200,50;70;edge.example.net:443 192.0.2.7\r\n'
    "own;;39;-77,4875;;;[2001:db8::1]:443, 2001:db8::2\r\n"
    ";;;;;;\r\n"
)


def test_semicolons_and_decimal_commas(load: Load) -> None:
    sites = load(sites_csv=EUROPEAN).sites
    first, second = sites["dallas-a"], sites["own"]
    assert (first.title, first.latitude, first.longitude) == (
        "Cage; third floor",
        32.8008,
        -96.8195,
    )
    assert (first.price_per_month, first.capacity) == (1200.50, 70)
    assert first.targets == (
        Target("edge.example.net:443", "edge.example.net", "dallas-a", 443),
        Target("192.0.2.7", "192.0.2.7", "dallas-a"),
    )
    assert (second.latitude, second.longitude, second.price_per_month) == (39, -77.4875, None)
    assert second.targets == (
        Target("[2001:db8::1]:443", "2001:db8::1", "own", 443),
        Target("2001:db8::2", "2001:db8::2", "own"),
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(separator: str, load: Load) -> None:
    text = "name,latitude,longitude,weight\nr,1.5,-2.5,1e3\n".replace(",", separator)
    region = load(regions_csv=text).regions["r"]
    assert (region.latitude, region.longitude, region.weight) == (1.5, -2.5, 1000)


def test_excels_hint_of_the_separator(load: Load, faults: Faults) -> None:
    text = "sep=;\nname;place;weight\na;dallas;{}\n"
    assert load(regions_csv=text.format("2,5")).regions["a"].weight == 2.5
    (message,) = faults(regions_csv=text.format("x"))
    assert message.startswith("regions.csv: line 3, column weight")


def test_a_place_and_a_line_break_in_a_cell(load: Load) -> None:
    text = 'name,place,weight\na,dallas,2\n\nb,"ashburn",3'
    regions = load(any_csv=text).regions
    assert [(region.name, region.weight) for region in regions.values()] == [("a", 2), ("b", 3)]
    assert regions["b"].country == "US"


@pytest.mark.parametrize(
    ("header", "name", "kind"),
    [
        ("name,place,weight", "x_csv", "regions"),
        ("name,place,operator", "x_csv", "sites"),
        ("name,place", "our-regions_csv", "regions"),
        ("name,place", "Sites 2026_csv", "sites"),
        ("name,place,weight", "sites_csv", "regions"),
    ],
)
def test_which_table_it_is(header: str, name: str, kind: str, load: Load) -> None:
    row = "a,dallas" + ",1" * (header.count(",") - 1)
    catalogue = load(**{name: f"{header}\n{row}\n"})
    assert list(getattr(catalogue, kind)) == ["a"]
    assert len(catalogue.regions) + len(catalogue.sites) == 1


HEADER = "name,latitude,longitude,weight\n"

CASES = [
    (HEADER + "a,1,2,x\n", "line 2, column weight", '"x" is no number', "0 or more"),
    (HEADER + "a,1,2,-1\n", "line 2, column weight", '"-1" is out of range', "0 or more"),
    (HEADER + "a,1,2,\nb,1,,1", "line 3, column longitude", "is missing", "-180 to 180"),
    (HEADER + "a,nan,2,1\n", "line 2, column latitude", '"nan" is no number', "-90 to 90"),
    (HEADER + "a,-96.8,32.8,1\n", "line 2, column latitude", "-96.8", "look swapped"),
    (HEADER + "a,1,2,1_000\n", "line 2, column weight", "no number", "0 or more"),
    (HEADER + "a,1,2,1\na,1,2,1\n", "line 3, column name", "already the name", "each name once"),
    (HEADER + ",1,2,1\n", "line 2, column name", "is missing", "text"),
    (HEADER + "a,32,8,-96,8,1\n", "line 2", "6 cells under 4 columns", "quotation marks"),
    ('"\t"\n""0', "line 2", r"not CSV: '\t' expected after", "quotation marks in pairs"),
    (HEADER + 'a,"32,8",2,1\n', "line 2, column latitude", "has a decimal comma", "semicolons"),
    (
        "name;latitude;longitude;weight\na;1,5;2;1\nb;1.5;2;1\n",
        "line 2, column latitude",
        '"1,5" has a decimal comma, beside 1.5 in line 3',
        "decimal points throughout",
    ),
    (
        "name;latitude;longitude;weight\na;1;2;1.200,50\n",
        "line 2, column weight",
        "no number",
        "0 or more",
    ),
    ("name,weigh,place\na,1,dallas", "line 1, column 2", '"weigh"', '"weight"'),
    ("name,place,weight,weight\na,dallas,1,2", "line 1, column 4", 'second "weight"', "once"),
    ("name,,place,weight\na,1,dallas,1", "line 1, column 2", "has no name", "a name for each"),
    ("place,weight\ndallas,1", "line 1", "has no column name", "a column name"),
    ("name,place,weight,operator\na,dallas,1,x", "line 1", "columns operator, weight", "two files"),
    ('name,place,weight\n"a,dallas,1\n', "line 2", "not CSV", "in pairs"),
    ('name,place,weight\n"a"b,dallas,1\n', "line 2", "not CSV", "in pairs"),
    ("", "line 1", "is empty", "column names"),
    ("\n\n ,\n", "line 1", "is empty", "column names"),
]


@pytest.mark.parametrize(("text", "where", "problem", "expected"), CASES)
def test_each_fault(text: str, where: str, problem: str, expected: str, faults: Faults) -> None:
    (message,) = faults(regions_csv=text)
    assert message.startswith(f"regions.csv: {where}: ")
    said, _, remedy = message.partition("; expected ")
    assert problem in said
    assert expected in remedy


def test_a_table_that_could_be_either(faults: Faults) -> None:
    (message,) = faults(x_csv="name,place\na,dallas\n")
    assert "could hold regions or sites; expected a column weight (regions) or targets" in message


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("https://a.example.net", '"https://a.example.net" is no target'),
        ("a.example.net:0", "port 0 of"),
        ("a.example.net:99999", "port 99999 of"),
        ("a.example.net:443 a.example.net:443", "two targets are called"),
        ("[2001:db8::1:443", "is no target"),
        ("a.example.net:https", "is no target"),
    ],
)
def test_bad_targets(cell: str, problem: str, faults: Faults) -> None:
    (message,) = faults(sites_csv=f"name,place,targets\ns,dallas,{cell}\n")
    assert message.startswith("sites.csv: line 2, column targets: ")
    assert problem in message


def test_a_line_is_where_its_row_begins(faults: Faults) -> None:
    text = 'name,place,weight,title\na,dallas,1,"two\nlines"\nb,dallas,x,\n'
    messages = faults(regions_csv=text)
    assert [message.split(": ")[1] for message in messages] == [
        "line 2, column title",
        "line 4, column weight",
    ]
