"""Which lines a pipeline gets, and the verdict of all together."""

from collections.abc import Callable

import msgspec

from pathbudget.analysis.report.lookup import Lookup, chosen
from pathbudget.analysis.report.selection import Sites, Wanted, select
from pathbudget.analysis.results import Direction, Evaluation, Mode, Verdict

EvaluationFactory = Callable[..., Evaluation]


def test_default_is_the_headline_line_of_each_recommended_site(evaluation: Evaluation) -> None:
    lookup = Lookup(evaluation)
    found = select(lookup, Wanted(tiers=("voice-ai",)))
    choice = lookup.chosen("voice-ai")
    assert choice is not None
    assert {(x.region, x.site) for x in found.lines} == {
        (a.region, a.site) for a in choice.assignments
    }
    assert all(line.headline for line in found.lines)
    assert not found.missing


def test_best_never_costs_more_than_recommended(evaluation: Evaluation) -> None:
    lookup = Lookup(evaluation)
    recommended = select(lookup, Wanted(tiers=("chat",))).lines
    best = select(lookup, Wanted(tiers=("chat",), which=Sites.BEST)).lines
    for one, other in zip(best, recommended, strict=True):
        assert one.region == other.region
        assert (one.high_ms or 1e9) <= (other.high_ms or 1e9)


def test_all_lines_has_both_directions_and_they_do_not_vote(evaluation: Evaluation) -> None:
    found = select(
        Lookup(evaluation),
        Wanted(
            tiers=("rag",),
            regions=("us-south",),
            sites=("dallas",),
            which=Sites.ALL,
            percentiles=(95.0,),
            all_lines=True,
        ),
    )
    assert {line.direction for line in found.lines} == set(Direction) - {Direction.STREAM}
    assert found.verdict is Verdict.PASS


def test_mode_and_percentile_replace_the_headline(evaluation: Evaluation) -> None:
    wanted = Wanted(tiers=("rag",), which=Sites.ALL, modes=(Mode.COLD,), percentiles=(50.0,))
    found = select(Lookup(evaluation), wanted).lines
    assert {(x.mode, x.percentile, x.direction) for x in found} == {
        (Mode.COLD, 50.0, Direction.NETWORK)
    }
    assert len(found) == 24


def test_a_region_that_nobody_serves_is_missing_not_passed(evaluation: Evaluation) -> None:
    lines = tuple(x for x in evaluation.lines if (x.region, x.site) != ("us-south", "dallas"))
    found = select(
        Lookup(msgspec.structs.replace(evaluation, lines=lines)),
        Wanted(tiers=("voice-ai",), regions=("us-south",)),
    )
    assert [(gap.region, gap.site) for gap in found.missing] == [("us-south", "dallas")]
    assert found.verdict is Verdict.UNDECIDED


def test_one_failing_line_outweighs_missing_ones(evaluation: Evaluation) -> None:
    found = select(Lookup(evaluation), Wanted(which=Sites.ALL))
    assert found.counts[Verdict.UNDECIDED]
    assert found.verdict is Verdict.FAIL


def test_nothing_selected_is_no_pass(evaluation_of: EvaluationFactory) -> None:
    assert select(Lookup(evaluation_of(0, 0, 2)), Wanted()).verdict is Verdict.UNDECIDED


def test_the_choice_shown_is_the_smallest_that_covers_most(evaluation: Evaluation) -> None:
    lookup = Lookup(evaluation)
    every = lookup.recommendations("voice-ai")
    shown = chosen(every, evaluation.regions)
    assert shown is not None
    assert shown.k == 3
    equal = tuple(msgspec.structs.replace(choice, assignments=()) for choice in every)
    smallest = chosen(equal, evaluation.regions)
    assert smallest is not None
    assert smallest.k == 1


def test_a_choice_without_sites_is_shown_only_when_there_is_no_other(
    evaluation: Evaluation,
) -> None:
    every = Lookup(evaluation).recommendations("voice-ai")
    empty = msgspec.structs.replace(every[0], sites=(), assignments=(), uncovered=())
    assert chosen((empty, every[1]), evaluation.regions) == every[1]
    assert chosen((empty,), evaluation.regions) == empty
