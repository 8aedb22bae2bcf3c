"""Events: what they make of a world, when, what the ledger says of it, and faults in files."""

import contextlib
import dataclasses
import itertools
from pathlib import Path

import pytest

from pathbudget.agents.lab.becoming import changes
from pathbudget.agents.lab.direction import Direction
from pathbudget.agents.lab.event import Event, EventKind
from pathbudget.agents.lab.events import at_time, timeline
from pathbudget.agents.lab.ledger import Entry, Happening, Ledger, changed_pairs, planned
from pathbudget.agents.lab.link import DirectionModel, Swell
from pathbudget.agents.lab.topology import LinkState
from pathbudget.agents.lab.weeks import CALM_NS, HARMLESS, LENGTH_NS, SICK_NS, random_week
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import load_world, parse_world
from pathbudget.probes.errors import ConfigError, LabError

MS, SECOND = 1_000_000, 1_000_000_000
ROUTES = Path(__file__).resolve().parents[2] / "examples" / "lab" / "routes.toml"

LINE = """
[[region]]
name = "region"
[[router]]
name = "near"
[[router]]
name = "far"
[[site]]
name = "site"
[[link]]
between = ["region", "near"]
delay = "1ms"
[[link]]
between = ["near", "far"]
name = "bundle"
delay = "2ms"
members = 3
[[link]]
between = ["near", "far"]
name = "spare"
delay = "9ms"
[[link]]
between = ["far", "site"]
delay = "1ms"
"""


def line(*events: str) -> World:
    return parse_world(LINE + "".join(f"[[event]]\n{event}\n" for event in events))


def entries(world: World) -> list[Entry]:
    return planned(world, timeline(world))


def test_the_world_is_that_of_all_events_under_way() -> None:
    world = line(
        'at = "2s"\nkind = "link_down"\nfor = "3s"\nlink = "bundle"',
        'at = "4s"\nkind = "icmp_rate"\nnode = "near"\nrate = "1s"',
    )
    states = [at_time(world, second * SECOND).links[1].state for second in range(7)]
    assert states == [LinkState.UP] * 2 + [LinkState.DOWN] * 3 + [LinkState.UP] * 2
    rates = [at_time(world, second * SECOND).nodes["near"].hop.icmp_rate_ns for second in (3, 6)]
    assert rates == [None, SECOND]
    moments = timeline(world)
    assert [(m.at_ns // SECOND, m.begins, m.ends) for m in moments] == [
        (2, (0,), ()), (4, (1,), ()), (5, (), (0,)),
    ]  # fmt: skip
    assert at_time(world, 0) is world


def test_a_lost_link_moves_packets_and_the_ledger_says_what_it_costs() -> None:
    found = entries(line('at = "2s"\nkind = "link_down"\nfor = "3s"\nlink = "bundle"'))[0]
    effect = found.effects[0]
    assert (found.subject, found.causes) == ("near - far (bundle)", ("path_moved", "flap"))
    assert (effect.before.rtt_ms, effect.after.rtt_ms) == (8.0, 22.0)
    assert effect.moved
    assert effect.before.nodes == effect.after.nodes == ("near", "far", "site")
    assert effect.before.addresses != effect.after.addresses


def test_a_link_that_is_lost_silently_takes_the_packets_with_it() -> None:
    """Without a routing protocol nobody finds out."""
    found = entries(line('at = "2s"\nkind = "link_down"\nsilent = true\nlink = "bundle"'))[0]
    after = found.effects[0].after
    assert (after.rtt_ms, after.loss, found.causes) == (None, 1.0, ("withdrawn", "outage"))
    assert not found.effects[0].moved


def test_a_degradation_moves_no_packets_whatever_it_costs() -> None:
    found = entries(
        line('at = "2s"\nkind = "degrade"\nlink = "bundle"\nextra_delay = "40ms"\nfrom = "near"')
    )[0]
    effect = found.effects[0]
    assert (effect.after.rtt_ms, effect.moved, found.causes) == (48.0, False, ("level",))
    assert found.subject == "near > far (bundle)"


def test_one_sick_member_loses_a_share_of_all() -> None:
    world = line('at = "2s"\nkind = "degrade"\nlink = "bundle"\nmember = 2\nloss = 0.03')
    found = entries(world)[0]
    assert found.causes == ("member",)
    assert found.effects[0].after.loss == pytest.approx(1 - 0.99**2)
    after = at_time(world, 3 * SECOND)
    assert [forth.loss for forth, _ in after.links[1].members] == [0.0, 0.03, 0.0]
    told = list(changes(world, after, 0))
    assert [(one.link, one.source, len(one.models)) for one in told] == [
        (1, "near", 3),
        (1, "far", 3),
    ]


def test_a_queue_swells_and_the_ledger_has_its_peak() -> None:
    world = line(
        'at = "2s"\nkind = "queue"\nfor = "10s"\nlink = "bundle"\nfrom = "far"\npeak = "6ms"'
    )
    found = entries(world)[0]
    assert (found.effects[0].after.rtt_ms, found.causes) == (14.0, ("queue",))


def test_limits_and_silence_are_nothing_to_be_alarmed_about() -> None:
    for kind in ('"icmp_rate"\nrate = "1s"', '"silent"'):
        found = entries(line(f'at = "2s"\nnode = "near"\nkind = {kind}'))[0]
        assert (found.causes, found.effects) == ((), ())


def test_a_delay_gets_there_at_an_even_pace() -> None:
    direction = Direction(DirectionModel(delay_ns=10 * MS), "seed")
    direction.change(DirectionModel(delay_ns=30 * MS), now=SECOND, over_ns=2 * SECOND)
    delays = [
        (direction.due(at, 100, b"") or 0) - at
        for at in (SECOND, 3 * SECOND // 2, 2 * SECOND, 3 * SECOND, 9 * SECOND)
    ]
    assert delays == [10 * MS, 15 * MS, 20 * MS, 30 * MS, 30 * MS]
    direction.change(DirectionModel(delay_ns=5 * MS), now=10 * SECOND)
    assert direction.due(10 * SECOND, 100, b"") == 10 * SECOND + 5 * MS


def test_a_swelling_queue_is_highest_in_the_middle_and_ends() -> None:
    swell = Swell(8 * MS, 100 * SECOND)
    direction = Direction(DirectionModel(delay_ns=MS), "seed")
    direction.change(DirectionModel(delay_ns=MS, swell=swell), now=0)

    def mean_ms(second: int) -> float:
        at = second * SECOND
        taken = [(direction.due(at, 100, bytes([n])) or 0) - at for n in range(200)]
        return sum(taken) / len(taken) / MS

    assert mean_ms(0) == 1.0
    assert mean_ms(25) == pytest.approx(5.0, abs=0.5)
    assert mean_ms(50) == pytest.approx(9.0, abs=0.8)
    assert mean_ms(100) == mean_ms(500) == 1.0


def test_large_packets_vanish_in_a_black_hole() -> None:
    direction = Direction(DirectionModel(largest_octets=1400), "seed")
    assert direction.due(0, 14 + 1400, b"") == 0
    assert direction.due(0, 14 + 1401, b"") is None
    assert direction.dropped == 1


def test_a_ledger_comes_back_as_it_was() -> None:
    found = entries(line('at = "2s"\nkind = "link_down"\nlink = "bundle"'))
    ledger = Ledger(1, 5, 6, tuple(found))
    assert Ledger.decode(ledger.encode()) == ledger
    assert Happening(1, 2).settled_unix_ns is None


def test_the_scripted_week_does_what_its_comments_say() -> None:
    found = entries(load_world(ROUTES))
    kinds = [entry.kind for entry in found]
    assert kinds == [
        "link_down", "link_down", "icmp_rate", "prefer", "queue", "withdraw", "degrade",
        "feed_dead", "session_down",
    ]  # fmt: skip
    shift = {(e.region, e.site): e for e in found[3].effects}["east", "paris"]
    assert shift.moved
    assert (shift.after.rtt_ms or 0) - (shift.before.rtt_ms or 0) == pytest.approx(12, abs=0.05)
    assert (shift.before.as_path, shift.after.as_path) == ((65010, 64702), (65030, 65010, 64702))
    assert all(effect.after.rtt_ms is None for effect in found[5].effects)
    assert {effect.site for effect in found[5].effects} == {"tokyo"}
    assert found[6].causes == ("member",)


@pytest.mark.parametrize("seed", range(1))
def test_random_weeks_repeat_by_seed_and_have_something_to_find(seed: int) -> None:
    world = load_world(ROUTES)
    week = random_week(world, seed)
    assert random_week(world, seed).events == week.events
    assert random_week(world, seed + 100).events != week.events
    spans = sorted((event.at_ns, event.ends_ns or 0) for event in week.events)
    assert spans[0][0] >= CALM_NS
    sick = [event for event in week.events if event.member is not None]
    assert all((event.for_ns or 0) > SICK_NS for event in sick)
    assert spans[-1][1] <= LENGTH_NS + len(sick) * SICK_NS - CALM_NS
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert begin - end >= CALM_NS // 2
    for moment in timeline(week):
        for number in moment.begins:
            felt = list(changed_pairs(moment.before, moment.after))
            assert felt or week.events[number].kind in HARMLESS


def test_too_many_events_for_a_week_are_refused() -> None:
    with pytest.raises(LabError, match="do not go into"):
        random_week(load_world(ROUTES), 1, kinds=(EventKind.ICMP_RATE,) * 40)


FAULTS = [
    ('kind = "link_down"\nlink = "bundle"', "at", "is missing"),
    ('at = "1s"\nlink = "bundle"', "kind", "is missing"),
    ('at = "1s"\nkind = "link_dow"', "kind", "link_down"),
    ('at = 1\nkind = "silent"\nnode = "near"', "at", "12s"),
    ('at = "1s"\nfor = "0s"\nkind = "silent"\nnode = "near"', "for", "no such duration"),
    ('at = "1s"\nkind = "silent"\nnode = "nar"', "node", '"near"'),
    ('at = "1s"\nkind = "silent"\nnode = "site"', "node", "no router"),
    ('at = "1s"\nkind = "link_down"\nlink = "bndle"', "link", '"bundle"'),
    ('at = "1s"\nkind = "link_down"\nlink = ["near", "site"]', "link", "is no link"),
    ('at = "1s"\nkind = "link_down"\nlink = "spare"\nmtu = 3', "mtu", "unknown key"),
    ('at = "1s"\nkind = "degrade"\nlink = "spare"', "extra_delay", "nothing gets worse"),
    ('at = "1s"\nkind = "degrade"\nlink = "spare"\nmember = 1\nloss = 1', "member", "no member 1"),
    ('at = "1s"\nkind = "degrade"\nlink = "bundle"\nmember = 4\nloss = 1', "member", "1 to 3"),
    ('at = "1s"\nkind = "degrade"\nlink = "spare"\nloss = 2', "loss", "out of range"),
    ('at = "1s"\nkind = "degrade"\nlink = "spare"\nloss = 1\nfrom = "site"', "from", "no end"),
    ('at = "1s"\nkind = "queue"\nlink = "spare"', "for", "is missing"),
    ('at = "1s"\nkind = "queue"\nfor = "9s"\nlink = "spare"', "peak", "is missing"),
    ('at = "1s"\nkind = "mtu"\nlink = "spare"\nmtu = 900', "mtu", "1280 to 1500"),
    ('at = "1s"\nkind = "icmp_rate"\nnode = "near"', "rate", "is missing"),
    ('at = "1s"\nkind = "withdraw"\nnode = "site"', "kind", "without BGP"),
    ('at = "1s"\nkind = "prefer"\nnode = "near"', "local_preference", "local_pref".upper()),
    ('at = "1s"\nkind = "feed_dead"\nlistener = "x"', "listener", "is no listener"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "words"), FAULTS, ids=[f"{at}-{f[1]}" for at, f in enumerate(FAULTS)]
)
def test_faults_of_events(text: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        line(text)
    found = {fault.where: f"{fault.problem}; {fault.expected}" for fault in caught.value.faults}
    assert words in found[f"event[1].{key}"]


HOPS = [
    ("silent = 1", "silent", "true or false"),
    ('icmp_rate = "10us"', "icmp_rate", "1ms"),
    ("mpls = 5", "mpls", "list of labels"),
    ("mpls = []", "mpls", "list of labels"),
    ("mpls = [2000000]", "mpls[1]", "out of range"),
    ("mpls = [{ label = 5, ttl = 300 }]", "mpls[1].ttl", "0 to 255"),
    ('mpls = ["x"]', "mpls[1]", "no label"),
    ('nat = "maybe"', "nat", "unknown"),
    ("nat = 3", "nat", "restore"),
    ('balancing = "port"', "balancing", '"ports"'),
]


@pytest.mark.parametrize(("text", "key", "words"), HOPS, ids=[f"{at}" for at in range(len(HOPS))])
def test_faults_of_hops(text: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_world(LINE.replace('name = "near"', f'name = "near"\n{text}'))
    found = {fault.where: f"{fault.problem}; {fault.expected}" for fault in caught.value.faults}
    assert words in found[f"router[1].{key}"]


LINKS = [
    ("members = 3", "members = 1", "link[2].members", "2 to 64"),
    ("members = 3", "members = [{}]", "link[2].members", "a list of 1"),
    ("members = 3", "members = [{}, 3]", "link[2].members[2]", "no table"),
    ("members = 3", "members = [{}, { loss = 2 }]", "link[2].members[2].loss", "out of range"),
    ("members = 3", "members = [{}, { mtu = 2 }]", "link[2].members[2].mtu", "unknown key"),
    ("members = 3", "mtu = 9000", "link[2].mtu", "1280 to 1500"),
    ("members = 3", "silent_mtu = 1", "link[2].silent_mtu", "68 to 1500"),
    ('"spare"', '"bundle"', "link[3].name", "link[2] already"),
    ('name = "near"', 'name = "near"\nnat = true', "", ""),
    ('name = "far"', 'name = "far"\nnat = true', "router[2].nat", "no region"),
]


@pytest.mark.parametrize(
    ("old", "new", "where", "words"), LINKS, ids=[f"{at}" for at in range(len(LINKS))]
)
def test_faults_of_links(old: str, new: str, where: str, words: str) -> None:
    text = LINE.replace(old, new)
    if not where:
        assert parse_world(text).nodes["near"].hop.translation
        return
    with pytest.raises(ConfigError) as caught:
        parse_world(text)
    found = {fault.where: f"{fault.problem}; {fault.expected}" for fault in caught.value.faults}
    assert words in found[where]


def test_members_differ_by_their_own_keys() -> None:
    own = 'members = [{}, { loss = 0.5 }, { reverse = { delay = "7ms" } }]'
    members = parse_world(LINE.replace("members = 3", own)).links[1].members
    assert [forth.loss for forth, _ in members] == [0.0, 0.5, 0.0]
    assert [back.delay_ns for _, back in members] == [2 * MS, 2 * MS, 7 * MS]


def test_events_need_not_begin_in_the_order_of_the_file() -> None:
    first = Event(EventKind.LINK_DOWN, 5 * SECOND, SECOND, links=(1,))
    second = Event(EventKind.SILENT, 2 * SECOND, node="near")
    world = dataclasses.replace(line(), events=(first, second))
    assert [moment.begins for moment in timeline(world)] == [(1,), (0,), ()]


ODD = ("true", "-1", "1.5", "1e400", '"word"', "[]", "[[]]", "{}", "[{}, 3]", "nan")


@pytest.mark.parametrize("odd", ODD)
def test_no_odd_value_of_any_key_crashes_the_reader(odd: str) -> None:
    """Each key of the example once, wherever it comes first."""
    lines = ROUTES.read_text().splitlines()
    first = {text.partition(" = ")[0]: at for at, text in enumerate(lines) if " = " in text}
    for key, at in first.items():
        if not key.startswith("#"):
            changed = [*lines[:at], f"{key} = {odd}", *lines[at + 1 :]]
            with contextlib.suppress(ConfigError):
                parse_world("\n".join(changed))
