"""What BGP speakers settle on, what BIRD is told, and what can be wrong with it in a file.

That BIRD decides alike is shown with real ones (test_lab_routes.py, benchmarks/lab_bgp.py).
"""

import dataclasses
from pathlib import Path

import pytest

from pathbudget.agents.lab.bgp import Listener
from pathbudget.agents.lab.bgp_routes import best_routes, settled
from pathbudget.agents.lab.bird_config import bird_config
from pathbudget.agents.lab.birds import MISSING, bird_program
from pathbudget.agents.lab.topology import Link, LinkState
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import load_world, parse_world
from pathbudget.probes.errors import ConfigError, LabError

ROUTES = Path(__file__).resolve().parents[2] / "examples" / "lab" / "routes.toml"

TRIANGLE = """
[bgp]
[[region]]
name = "region"
asn = 64601
[[router]]
name = "left"
asn = 65001
[[router]]
name = "right"
asn = 65002
[[site]]
name = "site"
asn = 64701
[[site]]
name = "quiet"
[[link]]
between = ["region", "left"]
delay = "1ms"
[[link]]
between = ["region", "right"]
delay = "1ms"
[[link]]
between = ["left", "right"]
delay = "1ms"
[[link]]
between = ["right", "site"]
delay = "1ms"
[[link]]
between = ["left", "quiet"]
delay = "1ms"
"""


def triangle(extra: str = "") -> World:
    return parse_world(TRIANGLE + extra)


def way(world: World, source: str = "region", destination: str = "site") -> list[str]:
    return [step.destination for step in world.path(source, destination)]


def with_link(world: World, ends: tuple[str, str], **change: object) -> World:
    links = [
        dataclasses.replace(link, **change) if {link.a, link.b} == set(ends) else link  # type: ignore[arg-type]
        for link in world.links
    ]
    return dataclasses.replace(world, links=tuple(links))


def test_the_shorter_as_path_wins_and_stubs_carry_nobody() -> None:
    world = triangle()
    assert way(world) == ["right", "site"]
    assert best_routes(world, "site")["region"].as_path == (65002, 64701)
    cut = with_link(world, ("left", "right"), session=False)
    with pytest.raises(LookupError):
        cut.path("left", "site")  # region would be on the way


def test_a_higher_preference_wins_over_length() -> None:
    world = with_link(triangle(), ("region", "left"), preferences=(200, None))
    assert way(world) == ["left", "right", "site"]
    assert way(world, "site", "region") == ["right", "region"]


def test_prepends_make_a_way_long() -> None:
    world = with_link(triangle(), ("region", "right"), prepends=(2, 0))
    assert way(world) == ["left", "right", "site"]
    assert best_routes(world, "site")["region"].as_path == (65001, 65002, 64701)


def test_the_carrier_of_a_region_is_preferred() -> None:
    text = TRIANGLE.replace('name = "left"\n', 'name = "left"\ncarrier = "l"\n')
    text = text.replace('name = "region"\n', 'name = "region"\ncarrier = "l"\n')
    assert way(parse_world(text)) == ["left", "right", "site"]


@pytest.mark.parametrize("state", [LinkState.DOWN, LinkState.SILENT])
def test_packets_go_around_a_link_that_is_away(state: LinkState) -> None:
    assert way(with_link(triangle(), ("region", "right"), state=state)) == ["left", "right", "site"]


def test_who_announces_nothing_is_not_reached() -> None:
    world = triangle()
    silent = dataclasses.replace(world.nodes["site"], announces=False)
    gone = dataclasses.replace(world, nodes={**world.nodes, "site": silent})
    assert settled(gone, "site") == {}
    with pytest.raises(LookupError, match="it ends at region"):
        gone.path("region", "site")


def test_another_origin_draws_who_is_near_to_it() -> None:
    world = triangle()
    thief = dataclasses.replace(world.nodes["left"], also_announces=("site",))
    stolen = dataclasses.replace(world, nodes={**world.nodes, "left": thief})
    assert best_routes(stolen, "site")["region"].as_path == (65001,)
    with pytest.raises(LookupError, match="it ends at left"):
        stolen.path("region", "site")
    with pytest.raises(LookupError, match="it ends at left"):
        stolen.path("right", "site")  # as short a path, and left has the lower number


def test_a_site_without_a_number_is_announced_by_its_router() -> None:
    world = triangle()
    assert way(world, "region", "quiet") == ["left", "quiet"]
    assert best_routes(world, "quiet")["region"].as_path == (65001,)
    assert way(world, "quiet", "region") == ["left", "region"]


def test_inside_an_as_the_nearest_exit_is_taken() -> None:
    world = load_world(ROUTES)
    assert way(world, "west", "paris") == ["atlas-1", "atlas-2", "atlas-3", "paris"]
    assert best_routes(world, "paris")["west"].as_path == (65010, 64702)
    farther = with_link(world, ("atlas-1", "atlas-2"), cost=100.0)
    assert way(farther, "west", "paris") == ["atlas-1", "atlas-4", "atlas-3", "paris"]


def test_equal_routes_are_used_together_where_told_so() -> None:
    links = '[[link]]\nbetween = ["left", "right"]\ndelay = "1ms"\n'
    cut = '[[link]]\nbetween = ["region", "right"]\ndelay = "1ms"\n'
    text = TRIANGLE.replace(cut, "") + links
    assert len(parse_world(text).paths("region", "site")) == 1
    both = parse_world("ecmp = true\n" + text)
    assert len(both.paths("region", "site")) == 2
    assert "merge paths yes" in bird_config(both, "left")
    assert "merge paths" not in bird_config(parse_world(text), "left")


def test_preferences_in_a_circle_never_settle() -> None:
    """Griffin's BAD GADGET: each of three prefers the way over its neighbour to its own."""
    numbers = {"one": 1, "two": 2, "three": 3}
    text = '[bgp]\n[[region]]\nname = "region"\n[[site]]\nname = "site"\nasn = 9\n'
    text += "".join(f'[[router]]\nname = "{name}"\nasn = {asn}\n' for name, asn in numbers.items())
    text += '[[link]]\nbetween = ["region", "one"]\ndelay = "1ms"\n'
    for name, following in (("one", "two"), ("two", "three"), ("three", "one")):
        text += f'[[link]]\nbetween = ["{name}", "site"]\ndelay = "1ms"\n'
        text += f'[[link]]\nbetween = ["{name}", "{following}"]\ndelay = "1ms"\n'
        text += "forward = { local_preference = 200 }\n"
        text += "reverse = { local_preference = 50 }\n"
    with pytest.raises(ConfigError, match="never settles"):
        parse_world(text)


def test_what_bird_is_told() -> None:
    world = with_link(
        triangle(), ("region", "right"), prepends=(2, 0), preferences=(150, None), session=False
    )
    right, region = bird_config(world, "right"), bird_config(world, "region")
    assert "bgp_path.prepend(65002); bgp_path.prepend(65002); accept;" in right
    assert "bgp_local_pref = 150;" in region
    assert "if source = RTS_STATIC then" in region
    assert "disabled;" in right
    assert right.count("protocol bgp") == 6  # three links with a speaker, two families
    assert f"route {world.prefix_of('quiet', 'ipv4')} via" in bird_config(world, "left")  # type: ignore[arg-type]


def test_a_listener_is_called_by_its_router() -> None:
    listener = Listener("feed", "site", "left", 1791, add_paths=True)
    world = dataclasses.replace(triangle(), listeners=(listener,))
    text = bird_config(world, "left")
    assert f"neighbor {world.address_of('site')} port 1791 as 65001; multihop;" in text
    assert text.count("add paths tx;") == 2
    assert "disabled" not in text
    cut = dataclasses.replace(world, cut_listeners=frozenset({"feed"}))
    assert "disabled" in bird_config(cut, "left")


def _nowhere(name: str, path: str = "") -> None:
    """No program is anywhere."""


def test_without_bird_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", _nowhere)
    with pytest.raises(LabError, match="bird2"):
        bird_program()
    assert "apt-get" in MISSING


HEARD = '[[listener]]\nname = "f"\nat = "site"\nrouter = "left"'
FAULTS = [
    ("asn = 65001\n", "", "router[1].asn", "is missing"),
    ("[bgp]", "[bgp]\nhold = 3", "bgp.hold", "3 is no such duration"),
    ("[bgp]", '[bgp]\nhold = "2s"', "bgp.hold", "whole seconds"),
    ("[bgp]", "[bgp]\nmrt = 1", "bgp.mrt", "true or false"),
    ("[bgp]", "[bgp]\nfast = 1", "bgp.fast", "unknown key"),
    ("asn = 64601\n", "", "region[1].asn", "2 links and no AS number"),
    ("asn = 65001", 'asn = 65001\nbalancing = "packet"', "router[1].balancing", "does not go"),
    ("", '[[listener]]\nname = "f"\nat = "left"\nrouter = "left"', "listener[1].at", "itself"),
    ("", '[[listener]]\nname = "f"\nat = "sit"\nrouter = "left"', "listener[1].at", "no node"),
    ("", '[[listener]]\nname = "f"\nat = "site"\nrouter = "quiet"', "listener[1].router", "no BGP"),
    ("", f"{HEARD}\nport = 0", "listener[1].port", "1 to 65535"),
    ("", f"{HEARD}\nhold = 5", "listener[1].hold", "no such duration"),
    ("", f"{HEARD}\n{HEARD}", "listener[2].name", "listener[1] already"),
    ("[bgp]", HEARD, "listener[1]", "there is no BGP"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "where", "words"), FAULTS, ids=[f"{at}-{f[2]}" for at, f in enumerate(FAULTS)]
)
def test_faults(old: str, new: str, where: str, words: str) -> None:
    text = TRIANGLE.replace(old, new, 1) if old else TRIANGLE + new
    with pytest.raises(ConfigError) as caught:
        parse_world(text)
    found = {fault.where: f"{fault.problem}; {fault.expected}" for fault in caught.value.faults}
    assert words in found[where]


def test_preferences_without_bgp_are_a_fault() -> None:
    text = TRIANGLE.replace("[bgp]\n", "") + "forward = { local_preference = 5, prepend = 1 }\n"
    with pytest.raises(ConfigError) as caught:
        parse_world(text)
    places = {fault.where for fault in caught.value.faults}
    assert {"link[5].local_preference", "link[5].prepend"} <= places


def test_costs_are_told_for_both_directions() -> None:
    link = triangle().links[0]
    assert link.costs == (1.0, 1.0)
    assert isinstance(link, Link)
