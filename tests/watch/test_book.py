"""What is counted, how it is written, and that there is an end to it; read by another reader."""

import itertools
import random

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.watch.conftest import BEGAN, MS, request_of, sample, whole_request

from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.watch import outcomes
from pathbudget.agents.watch.book import FORGET_NS, MeterBook
from pathbudget.agents.watch.buckets import BOUNDS_NS, BOUNDS_S, RELATIVE_ERROR, Distribution
from pathbudget.agents.watch.tee import Tee
from pathbudget.agents.watch.text import pieces
from pathbudget.analysis import series
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.record import (
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Stage,
    Target,
)


def read(book: MeterBook) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every line of a scrape, as the library of Prometheus reads it."""
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families("".join(pieces(book)))
        for one in family.samples
    }


def total(book: MeterBook, name: str, **labels: str) -> float:
    return sum(
        value
        for (found, has), value in read(book).items()
        if found == name and labels.items() <= dict(has).items()
    )


def book_of(*samples: object, **more: object) -> MeterBook:
    book = MeterBook()
    book.add(request_of(*samples, **more), 0)  # type: ignore[arg-type]
    return book


def test_rules_are_those_of_the_evaluation() -> None:
    assert outcomes.NOT_SENT == series.NOT_SENT
    assert outcomes.NO_NAME == series.NO_NAME
    assert set(series.OTHER_MODE) == outcomes.OTHER_MODE
    assert outcomes.WALL_CLOCKS == series.WALL_CLOCKS
    assert series.APART - {Metric.DELIVERY_GAP} == outcomes.NO_DELAY


def test_a_value_is_in_the_bucket_whose_end_it_does_not_pass() -> None:
    rng = random.Random(5)
    for _ in range(2_000):
        value = round(10 ** rng.uniform(3, 11.5))
        one = Distribution()
        one.note(value)
        place = one.counts.index(1)
        assert place == len(BOUNDS_NS) or value <= BOUNDS_NS[place]
        assert place == 0 or value > BOUNDS_NS[place - 1]
    for lower, upper in itertools.pairwise(BOUNDS_S):
        assert upper / lower - 1 == pytest.approx(RELATIVE_ERROR)
    beyond = Distribution()
    beyond.note(-1)
    assert sum(beyond.counts) == 0


def test_a_request_is_in_the_distribution_of_each_of_its_steps() -> None:
    book = MeterBook()
    book.add(whole_request(), 0)
    for metric, value in (("connect", 0.020), ("tls_handshake", 0.021), ("first_byte", 0.076)):
        assert total(book, f"pathbudget_{metric}_seconds_count", site="loop", probe="http") == 1
        assert total(book, f"pathbudget_{metric}_seconds_sum") == pytest.approx(value)
    assert total(book, "pathbudget_first_byte_seconds_bucket", le="0.0625", mode="cold") == 0
    assert total(book, "pathbudget_first_byte_seconds_bucket", le="0.0883883476") == 1
    assert total(book, "pathbudget_first_byte_seconds_bucket", le="+Inf") == 1
    assert total(book, "pathbudget_probes_total", outcome="answered", variant="1.1") == 1
    assert total(book, "pathbudget_probes_total") == 1
    assert total(book, "pathbudget_send_lateness_seconds_count", agent="office") == 1
    assert not [name for name, _ in read(book) if "variation" in name]


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (FailureKind.TIMEOUT, "lost"),
        (FailureKind.RESET, "lost"),
        (FailureKind.LOCAL, "not_measured"),
        (FailureKind.NAME_NOT_FOUND, "not_measured"),
        (FailureKind.NOT_RESUMED, "not_measured"),
    ],
)
def test_failures_are_counted_by_kind_and_stage_and_in_no_distribution(
    kind: FailureKind, outcome: str
) -> None:
    book = book_of(sample(Metric.FIRST_BYTE, 0, None, failure=Failure(kind, Stage.WAIT)))
    assert total(book, "pathbudget_probe_failures_total", kind=kind, stage="wait") == 1
    assert total(book, "pathbudget_probes_total", outcome=outcome) == 1
    assert total(book, "pathbudget_first_byte_seconds_count") == 0


@pytest.mark.parametrize("flag", [Flag.REFUSED, Flag.SYN_RETRANSMITTED, Flag.LATE])
def test_timers_and_refusals_are_no_round_trips(flag: Flag) -> None:
    book = book_of(sample(Metric.CONNECT, 0, 5, flags=(flag,)), probe="tcp")
    assert total(book, "pathbudget_connect_seconds_count") == 0
    assert total(book, "pathbudget_probes_total", outcome="lost") == 1
    assert total(book, "pathbudget_probe_failures_total", kind=str(flag)) == 1
    assert total(book, "pathbudget_samples_flagged_total", flag=str(flag)) == 1


def test_a_clock_step_spoils_what_the_wall_clock_measured_alone() -> None:
    for source, count in ((ClockSource.KERNEL, 0), (ClockSource.USER, 1)):
        one = sample("rtt", 0, 5, flags=(Flag.CLOCK_STEP,), clock_source=source)
        assert total(book_of(one, probe="icmp"), "pathbudget_rtt_seconds_count") == count


@pytest.mark.parametrize(
    "name", ['a"b', "a\\", "a\nb", "a\\nb", 'a{b="c"}', "\N{SNOWMAN}", "a,b", "\t", "a\rb"]
)
def test_whatever_a_site_is_called_its_label_says_so(name: str) -> None:
    book = MeterBook()
    book.add(request_of(sample("rtt", 0, 5), probe="icmp", target=Target("lo", "h", name)), 0)
    assert total(book, "pathbudget_rtt_seconds_count", site=name) == 1


def test_words_of_third_parties_share_one_metric() -> None:
    book = book_of(sample("half life\n", 0, 5), sample("echo2", 0, 6), probe="theirs")
    assert total(book, "pathbudget_other_seconds_count", metric="half life\n") == 1
    assert total(book, "pathbudget_other_seconds_count") == 2


def test_ids_addresses_and_ports_are_in_no_label() -> None:
    book = MeterBook()
    for number in range(50):
        book.add(
            request_of(
                sample(Metric.FIRST_BYTE, 0, 5, seq=number, flow=number),
                id=f"id-{number}",
                address=f"192.0.2.{number}",
                target=Target("lo", "h", "loop", port=1000 + number),
                campaign=f"c{number}",
            ),
            0,
        )
    assert len([1 for name, _ in read(book) if name == "pathbudget_first_byte_seconds_count"]) == 1


def test_more_series_than_are_shown_are_counted_and_take_no_memory() -> None:
    book, samples = MeterBook(most=10), whole_request().samples
    for number in range(200):
        one = request_of(*samples, target=Target(f"t{number}", "h", "loop"), probe=f"p{number}")
        book.add(one, 0)
    found = read(book)
    histograms = [name for name, _ in found if name.endswith("_count")]
    assert len(histograms) <= 10 + 1
    assert total(book, "pathbudget_samples_left_out_total") > 190 * len(samples)
    assert len(book.pages()) == 10
    size = len("".join(pieces(book)))
    for number in range(200, 400):
        book.add(request_of(sample("rtt", 0, 1), probe=f"p{number}"), 0)
    assert len("".join(pieces(book))) - size < 10


def test_a_series_that_ended_goes_and_makes_room() -> None:
    book = MeterBook(most=3)
    one = book.begin(request_of(probe="icmp"), 0)
    book.note(one, sample("rtt", 0, 5))
    book.end(one, 5)
    again = book.begin(request_of(probe="icmp"), FORGET_NS)
    assert again is one, "the same series goes on where it was"
    book.end(again, FORGET_NS + 5)
    other = book.begin(request_of(probe="tcp"), 2 * FORGET_NS + 6)
    assert book.pages() == [other]
    for number in range(3):
        book.note(other, sample(f"m{number}", 0, 5))
    assert book.left_out == 0


def test_a_tee_hands_on_all_that_it_counts() -> None:
    book, sink = MeterBook(), MemorySink()
    tee = Tee(sink, book, SystemClock())
    tee.begin(3, request_of(probe="icmp"))
    tee.append(3, sample("rtt", 0, 5))
    tee.append(3, sample("rtt", 1, None))
    tee.count(3, "late")
    tee.end(3, clock=None, noise=None, duration_ns=MS)
    (whole,) = sink.measurements()
    assert len(whole.samples) == 2
    assert whole.counters == {"late": 1}
    assert total(book, "pathbudget_probes_total") == 2
    assert total(book, "pathbudget_last_sample_timestamp_seconds") == (BEGAN + MS) / 1e9
