"""A store that is watched while a campaign writes into it: samples come once, traces whole."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from pathbudget.agents.routes.evaluation import RouteWish
from pathbudget.agents.routes.following import OVERLAP_NS, Known, Looks
from pathbudget.agents.routes.time_order import in_order_of_time
from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.reading import Selection
from pathbudget.agents.store.update_files import UpdateSelection
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.codec import encode_line, encode_sample
from pathbudget.probes.record import Measurement, Sample, Target, Vantage

AT = 1_790_000_000_000_000_000
SECOND = 1_000_000_000


def envelope(name: str, probe: str, site: str = "frankfurt") -> Measurement:
    return Measurement(
        id=name,
        vantage=Vantage(name="tokyo-1", region="tokyo"),
        target=Target(name="t", host="192.0.2.1", site=site),
        probe=probe,
        started_unix_ns=AT,
        samples=(),
        address="192.0.2.1",
    )


def hop(seq: int, part: int) -> Sample:
    return Sample(seq, "hop_rtt", AT + seq, value_ns=1, flow=7, part=part)


def end(seq: int) -> Sample:
    return Sample(seq, "rtt", AT + seq, value_ns=1)


@dataclass
class GrowingFolder:
    """The tables as lists, the spool as a folder."""

    spool: Path
    measurements: list[Measurement] = field(default_factory=list[Measurement])
    news: list[RouteUpdate] = field(default_factory=list[RouteUpdate])
    asked: list[int | None] = field(default_factory=list[int | None])

    def select(self, selection: Selection) -> Iterable[Measurement]:
        self.asked.append(selection.since_unix_ns)
        return [one for one in self.measurements if selection.takes(one)]

    def updates(self, selection: UpdateSelection) -> Iterable[RouteUpdate]:
        del selection
        return iter(self.news)


@pytest.fixture
def folder(tmp_path: Path) -> GrowingFolder:
    return GrowingFolder(tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.create(tmp_path / "run.jsonl", reserve_bytes=4096) as one:
        one.begin(1, envelope("m1", "icmp"))
        one.begin(2, envelope("m2", "trace"))
        yield one


def samples(looks: Looks) -> Counter[tuple[str, str, int, int | None]]:
    return Counter(
        (one.id, sample.metric, sample.seq, sample.part)
        for one in looks.look()
        if isinstance(one, Measurement)
        for sample in one.samples
    )


def test_every_sample_comes_once_whether_from_the_journal_or_the_tables(
    folder: GrowingFolder, journal: Journal
) -> None:
    looks = Looks(folder, RouteWish())
    written: list[Sample] = []
    seen: Counter[tuple[str, str, int, int | None]] = Counter()
    for seq in range(10):
        written.append(end(seq))
        journal.append(1, written[-1])
        if seq % 3 == 0:
            seen += samples(looks)
    journal.close()
    journal.path.unlink()
    folder.measurements.append(
        msgspec.structs.replace(envelope("m1", "icmp"), samples=tuple(written))
    )
    seen += samples(looks)
    seen += samples(looks)
    assert seen == Counter(("m1", "rtt", seq, None) for seq in range(10))


def test_a_trace_comes_whole_and_none_is_lost_at_the_end(
    folder: GrowingFolder, journal: Journal
) -> None:
    looks = Looks(folder, RouteWish())
    order = [hop(0, 1), hop(1, 1), hop(0, 2), end(0), hop(1, 2), end(1)]
    seen: Counter[tuple[str, str, int, int | None]] = Counter()
    for sample in order[:5]:
        journal.append(2, sample)
        seen += samples(looks)
    assert seen == Counter(
        {("m2", "hop_rtt", 0, 1): 1, ("m2", "hop_rtt", 0, 2): 1, ("m2", "rtt", 0, None): 1}
    )
    journal.close()
    journal.path.unlink()
    folder.measurements.append(
        msgspec.structs.replace(envelope("m2", "trace"), samples=tuple(order))
    )
    seen += samples(looks)
    assert seen == Counter(("m2", one.metric, one.seq, one.part) for one in order)


def test_a_line_that_is_being_written_waits_and_a_damaged_one_is_passed_over(
    folder: GrowingFolder, tmp_path: Path
) -> None:
    begin = b'{"begin":1,"measurement":%b}' % encode_line(envelope("m", "icmp")).rstrip()
    good = [b'{"in":1,"sample":%b}' % encode_sample(end(seq)) for seq in range(2)]
    path = tmp_path / "run.jsonl"
    path.write_bytes(begin + b"\n{broken\n" + good[0] + b"\n" + good[1][:10])
    looks = Looks(folder, RouteWish())
    assert sum(samples(looks).values()) == 1
    path.write_bytes(begin + b"\n{broken\n" + good[0] + b"\n" + good[1] + b"\n\0\0\0")
    assert [seq for _, _, seq, _ in samples(looks)] == [1]
    assert not samples(looks)


def test_only_what_was_asked_for(folder: GrowingFolder) -> None:
    folder.measurements = [
        msgspec.structs.replace(envelope("a", "icmp"), samples=(end(0),)),
        msgspec.structs.replace(envelope("b", "icmp", site="london"), samples=(end(0),)),
    ]
    looks = Looks(folder, RouteWish(series=("LONDON", "nowhere")))
    assert [name for name, *_ in samples(looks)] == ["b"]


def test_updates_come_once_and_not_where_they_are_unwanted(folder: GrowingFolder) -> None:
    folder.news = [
        RouteUpdate(
            id=f"u{n}",
            feed="ris",
            feed_kind=FeedKind.RIS_LIVE,
            peer_address="192.0.2.9",
            peer_asn=65_001,
            kind=UpdateKind.ANNOUNCE,
            time_unix_ns=AT + n,
            arrived_unix_ns=AT + n,
            prefix="192.0.2.0/24",
        )
        for n in range(3)
    ]
    looks = Looks(folder, RouteWish())
    assert [len(list(looks.look())) for _ in range(2)] == [3, 0]
    assert not list(Looks(folder, RouteWish(updates=False)).look())


def test_memory_holds_an_hour_of_ids() -> None:
    known = Known()
    assert all(known.meet(str(n), AT + n * 60 * SECOND) for n in range(600))
    known.forget()
    assert len(known._met) == OVERLAP_NS // (60 * SECOND) + 1
    assert not known.meet("599", AT)


def test_later_looks_ask_for_the_last_hour_only(folder: GrowingFolder) -> None:
    folder.measurements = [msgspec.structs.replace(envelope("a", "icmp"), samples=(end(0),))]
    looks = Looks(folder, RouteWish())
    samples(looks)
    samples(looks)
    assert folder.asked == [None, AT - OVERLAP_NS]


def test_measurements_come_side_by_side_in_order_of_time_and_traces_whole() -> None:
    slice_ns = 10 * SECOND
    whole = [
        msgspec.structs.replace(
            envelope("a", "icmp"),
            samples=tuple(Sample(n, "rtt", AT + n * SECOND, value_ns=1) for n in range(100)),
        ),
        msgspec.structs.replace(
            envelope("b", "trace"),
            samples=tuple(
                Sample(n, metric, AT + n * 25 * SECOND + after, value_ns=1, part=1)
                for n in range(4)
                for metric, after in (("rtt", 0), ("hop_rtt", 9 * SECOND))
            ),
        ),
        msgspec.structs.replace(
            envelope("c", "icmp"),
            samples=tuple(Sample(n, "rtt", AT + (200 + n) * SECOND, value_ns=1) for n in range(5)),
        ),
    ]
    pieces = list(in_order_of_time(whole, slice_ns))
    ends = [one.until_unix_ns for one in pieces]
    assert ends == sorted(ends)
    for one in whole:
        mine = [piece.measurement for piece in pieces if piece.measurement.id == one.id]
        assert Counter(s for m in mine for s in m.samples) == Counter(one.samples)
        if one.probe == "trace":
            assert [len(m.samples) for m in mine] == [2, 2, 2, 2]
    names = [piece.measurement.id for piece in pieces]
    assert names.index("b") < len(names) - 1 - names[::-1].index("a")
    assert set(names[-1:]) == {"c"}
