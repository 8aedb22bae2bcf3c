"""What is remembered of a path, and what counts as a change of it."""

from collections.abc import Sequence

import pytest
from tests.trace_command.conftest import LOST, MS, START_UNIX_NS, TARGET, Walk, plain, state_of

from pathbudget.agents.trace.changes import Change, change_at, changed_hops, gone_at
from pathbudget.agents.trace.hop_rows import hop_rows, judged
from pathbudget.agents.trace.path_state import MOST_ADDRESSES, MOST_OPEN, OTHERS, Round
from pathbudget.analysis.hop_loss import HopVerdict
from pathbudget.probes.record import Failure, FailureKind, Sample, Stage


def a_round(*paths: Sequence[str | None]) -> Round:
    """One flow per path."""
    flows = {flow: dict(enumerate(hops, 1)) for flow, hops in enumerate(paths)}
    return Round(0, flows)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("ab", "ab", Change.NONE),
        ("ab", "ba", Change.FLUTTER),
        ("aabb", "abab", Change.FLUTTER),
        ("ab", "aa", Change.FLUTTER),  # one that was not met again is a load balancer's doing
        ("aab", "aabc", Change.NEW),
        ("ab", "ac", Change.MOVED),
        ("ab", "cd", Change.MOVED),
        ("a", "b", Change.MOVED),
        ("a*", "ab", Change.NEW),
        ("a", "*", Change.NONE),  # silence is equal to any address
        ("*", "a", Change.NONE),
    ],
)
def test_a_change_of_path_is_told_from_what_load_balancers_do(
    before: str, after: str, change: Change
) -> None:
    def one(letters: str) -> Round:
        return a_round(*(["x", None if letter == "*" else letter] for letter in letters))

    assert change_at(2, one(before), one(after)) is change
    assert change_at(1, one(before), one(after)) is Change.NONE


def test_what_is_gone_is_named_and_silence_says_nothing() -> None:
    assert gone_at(1, a_round("a", "b"), a_round("b", "c")) == ("a",)
    assert gone_at(1, a_round("a"), a_round([None])) == ()


def test_a_longer_path_moves_the_hops_behind_it() -> None:
    first, now = a_round(["a", "b", "t"]), a_round(["a", "c", "d", "t"])
    assert changed_hops(first, now, Change.MOVED) == (2, 3)


def test_hops_branches_and_links() -> None:
    state = state_of(Walk(plain), rounds=2)
    rows = hop_rows(state, judged(state))
    assert [len(row.branches) for row in rows] == [1, 2, 2, 1, 1]
    assert [(one.address, one.letter, one.comes_from, one.flows) for one in rows[2].branches] == [
        ("10.1.1.1", "a", "a", 3),
        ("10.1.1.2", "b", "b", 3),
    ]
    assert rows[-1].branches[0].destination
    assert [row.state.sent for row in rows] == [12] * 5
    assert {row.judged.verdict for row in rows if row.judged} == {HopVerdict.CLEAN}
    assert (state.rounds, state.reached, state.protocol, state.port) == (2, 2, "udp", 33434)


def test_every_link_of_a_mesh_is_kept_and_all_of_them_need_no_word() -> None:
    def mesh(trace: int, flow: int) -> Sequence[str | None]:
        return (f"10.1.0.{flow % 2}", f"10.1.1.{flow // 2 % 3}", TARGET)

    rows = hop_rows(state_of(Walk(mesh, flows=12)), {})
    assert [one.comes_from for one in rows[1].branches] == ["", "", ""]
    state = state_of(Walk(lambda trace, flow: mesh(trace, min(flow, 4)), flows=5))
    assert [one.comes_from for one in hop_rows(state, {})[1].branches] == ["a", "", ""]


def test_a_rate_limit_is_no_loss_and_loss_that_lasts_is() -> None:
    def limited(who: str, trace: int, flow: int) -> bool:
        return who == "10.2.0.1" and flow > 0

    state = state_of(Walk(plain, silent=limited), rounds=10)
    assert judged(state)[4].verdict is HopVerdict.RATE_LIMITED

    def lossy(who: str, trace: int, flow: int) -> bool:
        return who in ("10.2.0.1", TARGET) and (trace + flow) % 3 == 0

    state = state_of(Walk(plain, silent=lossy), rounds=20)
    found = judged(state)
    assert [found[n].verdict for n in (1, 4, 5)] == [
        HopVerdict.CLEAN,
        HopVerdict.LOSS,
        HopVerdict.LOSS,
    ]
    assert 0.15 < found[4].lost_at_least < 1 / 3


def test_silence_beyond_the_last_answer_is_one_row() -> None:
    state = state_of(Walk(lambda trace, flow: ("10.0.0.1", "10.0.0.2", *[None] * 6)))
    rows = hop_rows(state, judged(state))
    assert [row.limit for row in rows] == [1, 2, 3]
    assert rows[-1].silent_flows == 6
    assert state.latest is not None
    assert (state.latest.reached, state.latest.stopped) == (False, "gap")


def test_a_silent_hop_before_the_target_is_silent() -> None:
    state = state_of(Walk(lambda trace, flow: ("10.0.0.1", None, TARGET)))
    rows = hop_rows(state, judged(state))
    assert rows[1].branches == ()
    assert rows[1].judged is not None
    assert rows[1].judged.verdict is HopVerdict.SILENT


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 3, 2, 1), (3, 1, 4, 2)])
def test_probes_beyond_the_destination_are_no_hops(order: Sequence[int]) -> None:
    state = state_of(Walk(plain), rounds=0)
    for limit in order:
        responder = "10.0.0.1" if limit == 1 else None
        state.take(
            Sample(
                seq=0,
                metric="hop_rtt",
                sent_unix_ns=START_UNIX_NS,
                value_ns=MS,
                flow=1,
                part=limit,
                responder=responder,
            )
        )
    assert [row.branches[0].address for row in hop_rows(state, {})] == ["10.0.0.1", TARGET]


def test_the_first_round_shows_before_it_has_ended() -> None:
    state = state_of(Walk(plain), rounds=0)
    for sample in list(Walk(plain).samples(0, START_UNIX_NS))[:3]:
        state.take(sample)
    assert [row.branches[0].address for row in hop_rows(state, {})] == [
        "10.0.0.1",
        "10.1.0.1",
        "10.1.1.1",
    ]


def test_a_round_that_never_began_is_none_and_is_counted() -> None:
    state = state_of(Walk(plain), rounds=1)
    busy = Failure(FailureKind.LOCAL, Stage.SEND, "not sent: 2 traces are still under way")
    assert state.take(Sample(1, "rtt", START_UNIX_NS, failure=busy)) is None
    assert (state.rounds, state.left_out) == (1, 1)
    assert state.latest is state.first


def test_rounds_may_end_in_another_order_than_they_began() -> None:
    state = state_of(Walk(plain), rounds=0)
    for trace in (2, 1, 0):
        for sample in Walk(plain).samples(trace, START_UNIX_NS):
            state.take(sample)
    assert state.first is not None
    assert state.latest is not None
    assert (state.first.number, state.latest.number) == (0, 2)


def test_what_was_seen_before_the_path_changed_under_way_is_no_path() -> None:
    state = state_of(Walk(plain), rounds=0)

    def hop(flow: int, part: int, who: str, at: int) -> Sample:
        return Sample(
            0,
            "hop_rtt",
            START_UNIX_NS + at,
            value_ns=MS,
            flow=flow,
            part=part,
            responder=who,
        )

    for sample in (
        hop(1, 1, "a", 0),
        hop(1, 2, "old", 1),
        hop(1, 2, "new", 9),
        hop(2, 2, "old", 2),
        hop(1, 1, "a", 8),
        Sample(
            0,
            "rtt",
            START_UNIX_NS,
            value_ns=MS,
            notes={"changed_unix_ns": START_UNIX_NS + 5, "per_packet": "2 3"},
        ),
    ):
        state.take(sample)
    assert state.latest is not None
    assert state.latest.flows == {1: {1: "a", 2: "new"}}
    assert (state.latest.changed, state.latest.per_packet) == (True, "2 3")


def test_memory_is_bounded_whatever_answers() -> None:
    state = state_of(Walk(plain), rounds=1)
    for number in range(500):
        state.take(
            Sample(
                seq=number,
                metric="hop_rtt",
                sent_unix_ns=START_UNIX_NS,
                value_ns=MS,
                flow=1,
                part=2,
                responder=f"10.9.{number // 250}.{number % 250}",
            )
        )
    assert len(state.hops[2].routers) == MOST_ADDRESSES + 1
    assert OTHERS in state.hops[2].routers
    assert len(state._open) == MOST_OPEN


def test_a_trace_that_could_not_be_sent_counts_as_a_round_without_a_path() -> None:
    state = state_of(Walk(plain), rounds=0)
    state.take(Sample(seq=0, metric="rtt", sent_unix_ns=START_UNIX_NS, failure=LOST))
    assert (state.rounds, state.reached, state.latest) == (1, 0, None)
    assert state.failures == {"timeout": 1}


@pytest.mark.parametrize(
    ("responder", "icmp", "refusal"),
    [
        ("10.0.0.1", "11/0", ""),
        ("10.0.0.1", "3/13", "3/13"),
        ("2001:db8::1", "3/0", ""),  # time exceeded, in IPv6
        ("2001:db8::1", "1/1", "1/1"),
        (None, "3/3", ""),  # the destination itself
    ],
)
def test_a_refusal_is_told_from_used_up_hops_in_each_family(
    responder: str | None, icmp: str, refusal: str
) -> None:
    state = state_of(Walk(plain), rounds=0)
    state.take(
        Sample(
            seq=0,
            metric="hop_rtt",
            sent_unix_ns=START_UNIX_NS,
            value_ns=MS,
            flow=1,
            part=1,
            responder=responder,
            notes={"icmp": icmp},
        )
    )
    assert next(iter(state.hops[1].routers.values())).refusal == refusal
