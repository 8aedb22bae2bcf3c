"""Paths with wild hops: what agrees, and which stand for which."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.routes.as_paths import as_path
from pathbudget.analysis.routes.canonical import (
    Canonical,
    Sight,
    agree,
    differences,
    representatives,
)
from pathbudget.analysis.routes.model import FlowPath, Granularity
from pathbudget.probes.errors import ConfigError
from pathbudget.sites.aliases import read_aliases
from pathbudget.sites.prefix_files import asns_of
from pathbudget.sites.prefix_table import Origin


def flow(text: str, *, reached: bool = True, gap: int | None = None) -> FlowPath:
    """``a * b,c d``: wild and several."""
    hops = tuple(
        frozenset[str]() if word == "*" else frozenset(word.split(",")) for word in text.split()
    )
    return FlowPath(1, hops, reached, gap=gap)


def path(text: str, *, reached: bool = True, gap: int | None = None) -> Canonical:
    return Sight().canonical(flow(text, reached=reached, gap=gap))


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ("a b d", "a b d", []), ("a * d", "a b d", []), ("a b,c d", "a c d", []),
        ("a b d", "a c d", [1]), ("a b d", "a b c d", [2, 3]), ("a * d", "a b c d", [2, 3]),
        ("a b,c d", "a e d", [1]),
    ],
)  # fmt: skip
def test_wild_matches_anything_and_what_was_seen_must_fit(
    one: str, other: str, where: list[int]
) -> None:
    assert differences(path(one), path(other)) == where
    assert differences(path(other), path(one)) == where
    assert agree(path(one), path(other)) == (not where)


def test_behind_the_last_answer_of_an_unreached_path_is_anything() -> None:
    assert agree(path("a b * *", reached=False), path("a b c d"))
    assert agree(path("a b", reached=False), path("a b * x", reached=False))
    assert not agree(path("a x", reached=False), path("a b c d"))
    assert not agree(path("a b d e", reached=False), path("a b d"))
    assert path("a b * *", reached=False).words == ("a", "b", "...")


def test_a_gap_of_unknown_length_is_anything() -> None:
    """Atlas gives up after some silent hops and tries the destination with hop limit 255."""
    early, late = path("a * * * d", gap=1), path("a b * * * d", gap=2)
    assert early.words == ("a", "...", "d")
    assert agree(early, late)
    assert agree(early, path("a b c d"))
    assert not agree(late, path("a x y d"))
    assert not agree(late, path("a d"))


def test_the_dominant_complete_path_stands_for_those_with_wild_hops() -> None:
    """A-*-C agrees with both, which do not agree with each other."""
    found = representatives([(path("a * c"), 5), (path("a b c"), 2), (path("a d c"), 3)])
    assert found == {path("a d c"): 8, path("a b c"): 2}
    assert representatives([(path("a * c"), 5), (path("* b c"), 2)]) == {path("a * c"): 7}


def path_of(hops: list[str], reached: bool) -> Canonical:
    return path(" ".join(hops), reached=reached)


hop = st.sampled_from(["*", "a", "b", "a,b"])
paths = st.builds(
    path_of,
    st.lists(hop, min_size=1, max_size=4),
    st.booleans(),
)


@given(paths, paths)
def test_agreement_is_symmetric_and_everything_agrees_with_itself(
    one: Canonical, other: Canonical
) -> None:
    assert agree(one, one)
    assert agree(one, other) == agree(other, one)


@given(st.lists(st.tuples(paths, st.integers(1, 9)), max_size=6))
def test_nothing_is_lost_and_representatives_disagree_or_are_no_more_complete(
    counted: list[tuple[Canonical, int]],
) -> None:
    found = representatives(counted)
    assert sum(found.values()) == sum(count for _, count in counted)
    assert not any(agree(one, other) for one, other in itertools.combinations(found, 2))


class Table:
    """``8.1.x`` is AS81, and so on; names of several ASes with an underscore."""

    def __init__(self, **known: str) -> None:
        self.known = known

    def look_up(self, address: str) -> Origin | None:
        text = self.known.get(address)
        return None if text is None else Origin("8.0.0.0/8", asns_of(text) if text else ())


TABLE = Table(a1="1", a2="1", b1="2", b2="2", c1="3", moas="2_9", exchange="")


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        ("a1 a2 b1 c1", "AS1 AS2 AS3"), ("a1 * a2 b1", "AS1 AS2"), ("a1 * b1", "AS1 * AS2"),
        ("a1 exchange b1", "AS1 * AS2"), ("x * a1", "* AS1"), ("a1 moas b1", "AS1 AS2"),
        ("b1 moas c1", "AS2 AS3"), ("a1 moas c1", "AS1 AS2_AS9 AS3"),
        ("a1 * * x b1 * b2", "AS1 * AS2"),
        ("a1,b1 c1", "AS1_AS2 AS3"), ("a1 b1 a2", "AS1 AS2 AS1"), ("* *", "*"),
    ],
)  # fmt: skip
def test_as_paths(hops: str, expected: str) -> None:
    assert as_path(flow(hops), TABLE) == tuple(expected.split())


AS = Sight(Granularity.AS, TABLE)


@pytest.mark.parametrize(
    ("one", "other", "agreed"),
    [
        ("a1 * b1", "a1 b1", True), ("a1 * b1", "a1 c1 b1", True), ("a1 c1 b1", "a1 b1", False),
        ("a1 * c1", "* a1 c1", True), ("a1 * c1", "a1 b1", False), ("a1 a2 b1", "a1 b1 b2", True),
        ("* b1", "a1 * b1", True), ("a1 moas c1", "a1 b1 c1", True),
    ],
)  # fmt: skip
def test_at_as_granularity_wild_is_any_number_of_ases(one: str, other: str, agreed: bool) -> None:
    left, right = AS.canonical(flow(one)), AS.canonical(flow(other))
    assert agree(left, right) == agreed
    assert agree(right, left) == agreed


def test_paths_of_ases_need_a_table() -> None:
    with pytest.raises(ValueError, match="table of prefixes"):
        Sight(Granularity.AS)


def test_aliases_out_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "aliases"
    file.write_text(
        "# mine\ncore1: 192.0.2.1 192.0.2.5\nnode N7:  198.51.100.1 2001:DB8::1\n203.0.113.1\n"
    )
    routers = read_aliases(file)
    assert routers == {
        "192.0.2.1": "core1", "192.0.2.5": "core1", "198.51.100.1": "node N7",
        "2001:db8::1": "node N7", "203.0.113.1": "203.0.113.1",
    }  # fmt: skip
    sight = Sight(Granularity.ROUTER, routers=routers)
    one = sight.canonical(flow("192.0.2.1 8.8.8.8"))
    assert one.words == ("core1", "8.8.8.8")
    assert agree(one, sight.canonical(flow("192.0.2.5 8.8.8.8")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 192.0.2.1\nb: 192.0.2.1", "line 2: 192.0.2.1 is a already"),
        ("a: x", "'x' is no address"), ("a:", "no address"), ("", "no router in it"),
    ],
)  # fmt: skip
def test_aliases_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "aliases"
    file.write_text(text)
    with pytest.raises(ConfigError, match="aliases") as caught:
        read_aliases(file)
    assert words in str(caught.value)
