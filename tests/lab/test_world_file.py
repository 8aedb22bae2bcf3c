"""World files: what they mean, and every fault of a bad one in one go."""

import contextlib
import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.lab.link import BurstLoss, DirectionModel, Order, Variation, VariationKind
from pathbudget.agents.lab.world_file import load_world, parse_world
from pathbudget.agents.reflector.clocks import Skew
from pathbudget.probes.errors import ConfigError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "world.toml"

SMALL = """
[[region]]
name = "tokyo"
[[router]]
name = "east"
carrier = "a"
asn = 64500
[[site]]
name = "osaka"
responder = false
[[link]]
between = ["tokyo", "east"]
delay = "2ms"
loss = 0.01
reverse = { delay = "3.5ms", rate = "10 Mbit/s" }
[[link]]
between = ["east", "osaka"]
delay = "1ms"
variation = { kind = "pareto", scale = "100us", shape = 3, share = 0.5 }
bursts = { to_bad = 0.01, to_good = 0.2, loss_bad = 0.7 }
queue = "50ms"
reorder = { share = 0.05, by = "4ms" }
order = "link"
"""


def faults_of(text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_world(text, "w.toml")
    assert all(fault.file == "w.toml" for fault in caught.value.faults)
    return {fault.where: f"{fault.problem}; {fault.expected}" for fault in caught.value.faults}


def test_every_key_arrives_where_it_belongs() -> None:
    world = parse_world(SMALL)
    assert world.regions == ["tokyo"]
    assert world.sites == ["osaka"]
    assert not world.nodes["osaka"].responder
    assert not world.nodes["osaka"].reflects
    assert world.nodes["osaka"].clock == Skew()
    first, second = world.links
    assert first.forward == DirectionModel(delay_ns=2_000_000, loss=0.01)
    assert first.reverse == DirectionModel(3_500_000, loss=0.01, rate_bits=10_000_000)
    assert second.forward == second.reverse
    assert second.forward == DirectionModel(
        delay_ns=1_000_000,
        variation=Variation(VariationKind.PARETO, 100_000, 3.0, 0.5),
        bursts=BurstLoss(0.01, 0.2, 0.7, 0.0),
        queue_ns=50_000_000,
        reorder=0.05,
        reorder_by_ns=4_000_000,
        order=Order.LINK,
    )


def test_a_site_reflects_where_it_responds_unless_it_says_otherwise() -> None:
    def reflects(keys: str) -> bool:
        return parse_world(SMALL.replace("responder = false", keys)).nodes["osaka"].reflects

    assert reflects("")
    assert reflects("responder = false\nreflector = true")
    assert not reflects("reflector = false")
    assert not parse_world(SMALL).nodes["tokyo"].reflects


def test_the_clock_of_a_reflector_is_as_wrong_as_the_file_says() -> None:
    keys = 'clock = { offset = "-3ms", ppm = 80, step = "5ms", step_after = "10s" }'
    clock = parse_world(SMALL.replace("responder = false", keys)).nodes["osaka"].clock
    assert clock == Skew(-3_000_000, 80.0, 5_000_000, 10_000_000_000)
    keys = 'clock = { stated_error = "1ms" }'
    clock = parse_world(SMALL.replace("responder = false", keys)).nodes["osaka"].clock
    assert clock == Skew(stated_error_ns=1_000_000)


def test_faults_of_a_clock_have_their_place() -> None:
    keys = 'reflector = 1\nclock = { offset = "-3", ppm = "fast", drift = 1 }'
    faults = faults_of(SMALL.replace("responder = false", keys))
    assert "true or false" in faults["site[1].reflector"]
    assert "12.5ms" in faults["site[1].clock.offset"]
    assert "-1000 to 1000" in faults["site[1].clock.ppm"]
    assert "ppm" in faults["site[1].clock.drift"]


def test_the_example_is_sound() -> None:
    world = load_world(EXAMPLE)
    assert len(world.regions) >= 2
    assert len(world.sites) >= 2


def test_all_faults_come_at_once_each_with_its_place() -> None:
    faults = faults_of(
        """
seeed = 3
[[region]]
name = "tokyo"
longtitude = 3
[[router]]
name = "east"
asn = 0
[[site]]
name = "osaka"
responder = "yes"
latitude = 91
[[link]]
between = ["tokyo", "east"]
delay = 5
forward = { loss = 1.5, order = "flows" }
[[link]]
between = ["east"]
rate = "fast"
variation = { kind = "gamma" }
bursts = { to_bad = 0.1 }
reorder = { by = "1ms" }
[[route]]
at = "east"
"""
    )
    assert "seed" in faults["seeed"]
    assert "did you mean" in faults["region[1].longtitude"]
    assert "0 is out of range" in faults["router[1].asn"]
    assert "true or false" in faults["site[1].responder"]
    assert "-90 to 90" in faults["site[1].latitude"]
    assert "12.5ms" in faults["link[1].delay"]
    assert "1.5 is out of range" in faults["link[1].forward.loss"]
    assert '"flow"' in faults["link[1].forward.order"]
    assert "pair of names" in faults["link[2].between"]
    assert "is missing" in faults["link[2].delay"]
    assert "100 Mbit/s" in faults["link[2].rate"]
    assert "unknown" in faults["link[2].variation.kind"]
    assert "is missing" in faults["link[2].bursts.to_good"]
    assert "is missing" in faults["link[2].reorder.share"]
    assert {"route[1].to", "route[1].via"} <= set(faults)


def test_a_common_fault_of_both_directions_is_told_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_world(SMALL.replace("loss = 0.01", "loss = 2"))
    assert len(caught.value.faults) == 1


CASES = [
    ('between = ["tokyo", "east"]', 'between = ["tokio", "east"]', "link[1].between", "tokyo"),
    ('name = "osaka"', 'name = "tokyo"', "site[1].name", "region[1] already"),
    ('between = ["tokyo", "east"]', 'between = ["tokyo", "osaka"]', "link[1].between", "router"),
    ('between = ["tokyo", "east"]', 'between = ["east", "east"]', "link[1].between", "different"),
    ('between = ["tokyo", "east"]', 'between = ["osaka", "east"]', "link[2].between", "link[1]"),
    ('name = "tokyo"', 'name = "tokyo"\ncarrier = "b"', "region", "no link to carrier"),
    ('[[site]]\nname = "osaka"', '[[region]]\nname = "osaka"', "site", "at least one [[site]]"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "where", "words"), CASES)
def test_faults_of_the_whole(old: str, new: str, where: str, words: str) -> None:
    text = SMALL.replace("responder = false\n", "") if "[[site]]" in old else SMALL
    assert old in text
    assert words in faults_of(text.replace(old, new))[where]


def test_a_place_without_a_way_is_a_fault() -> None:
    text = SMALL + '[[site]]\nname = "kobe"\n'
    with pytest.raises(ConfigError, match="no way from tokyo to kobe"):
        parse_world(text)


def test_static_routes_in_a_circle_are_a_fault() -> None:
    text = (
        SMALL
        + """
[[router]]
name = "west"
[[link]]
between = ["east", "west"]
delay = "1ms"
[[route]]
at = "east"
to = "osaka"
via = "west"
"""
    )
    assert "in a circle" in faults_of(text)["link"]


def test_a_static_route_wants_a_neighbour() -> None:
    text = SMALL + '[[route]]\nat = "tokyo"\nto = "osaka"\nvia = "osaka"\n'
    assert "no link between" in faults_of(text)["route[1].via"]


@pytest.mark.parametrize("content", [b"= nonsense", b"\xff\xfe", b"region = 3"])
def test_what_is_no_world_file_is_one_message(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_world(file)
    assert all(fault.file == str(file) for fault in caught.value.faults)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml.*No such file"):
        load_world(tmp_path / "none.toml")


@pytest.mark.parametrize("value", [True, 1.5, "word", [], {}, float("nan"), 10**400])
def test_no_value_of_the_wrong_type_gets_through_or_crashes(value: object) -> None:
    document: dict[str, Any] = tomllib.loads(SMALL)
    for table in ("region", "router", "site", "link"):
        for key in list(document[table][0]):
            changed = copy.deepcopy(document)
            changed[table][0][key] = value
            with contextlib.suppress(ConfigError):
                parse_world(_toml(changed))


def _toml(document: dict[str, Any]) -> str:
    return "\n".join(
        f"[[{name}]]\n" + "\n".join(f"{key} = {_value(value)}" for key, value in table.items())
        for name, tables in document.items()
        for table in tables
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value) if value != 10**400 else "9" * 18
