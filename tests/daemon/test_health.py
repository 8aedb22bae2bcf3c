"""What an agent measures of itself, as records and as the queries of its page."""

import itertools
import re
from pathlib import Path

import duckdb
from msgspec import structs
from tests.faults.one_agent import plan_of

from pathbudget.agents.daemon.day_bytes import DAY_NS, DayBytes
from pathbudget.agents.daemon.health import Health
from pathbudget.agents.spool.entry import SpoolState
from pathbudget.agents.store.parquet import Store
from pathbudget.analysis.evaluate import evaluate
from pathbudget.probes.agent_health import HealthMetric
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import ClockQuality, ClockSource, Measurement, NoiseFloor
from pathbudget.sites.catalogue import Catalogue

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
SECOND = 1_000_000_000
NOISE = NoiseFloor(
    4000, ClockSource.KERNEL, 50_000, 90_000, send_lateness_p99_ns=700_000, receive_lag_p99_ns=30
)
BEFORE = SpoolState(made_samples=10, acknowledged_samples=10)


def two_pieces() -> tuple[Measurement, Measurement]:
    clock, numbers = FakeClock(), itertools.count()
    health = Health(clock, lambda _: f"h{next(numbers)}", BEFORE)
    plan = plan_of(SECOND)
    for late_ns in (700_000, 9_000_000, 100_000):
        health.look(structs.replace(NOISE, send_lateness_p99_ns=late_ns))
    clock.advance(60 * SECOND)
    state = SpoolState(
        waiting_entries=2, waiting_bytes=900, waiting_samples=30, made_samples=110,
        acknowledged_samples=40, dropped_samples={"bytes": 40},
        oldest_unix_ns=clock.unix_ns() - 7 * SECOND,
    )  # fmt: skip
    first = health.measured(plan, state, ClockQuality(offset_bound_ns=2_000_000), NOISE)
    clock.advance(60 * SECOND)
    after = structs.replace(state, made_samples=111, dropped_samples={"bytes": 41})
    return first, health.measured(plan, after, ClockQuality(), NOISE)


def values(one: Measurement) -> dict[str, int | None]:
    return {sample.metric: sample.value_ns for sample in one.samples}


def test_a_piece_has_the_worst_of_its_time_and_what_became_of_samples() -> None:
    first, second = two_pieces()
    said = values(first)
    assert said[HealthMetric.SEND_LATENESS] == 9_000_000
    assert said[HealthMetric.CLOCK_BOUND] == 2_000_000
    assert said[HealthMetric.SPOOL_AGE] == 7 * SECOND
    assert first.counters == {"made": 100, "acknowledged": 30, "dropped_bytes": 40}
    assert (first.duration_ns, second.duration_ns) == (60 * SECOND, 60 * SECOND)
    assert second.counters == {"made": 1, "dropped_bytes": 1}
    assert HealthMetric.SEND_LATENESS not in values(second)
    assert values(second)[HealthMetric.CLOCK_BOUND] is None
    assert second.started_unix_ns == first.started_unix_ns + 60 * SECOND


def test_the_queries_of_the_page_find_it_in_a_store(tmp_path: Path) -> None:
    Store(tmp_path / "pathbudget-store").write(two_pieces())
    queries = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    hours, drops = (
        duckdb.execute(query.replace("pathbudget-store", f"{tmp_path}/pathbudget-store")).fetchall()
        for query in queries
    )
    (hour,) = hours
    assert hour[0] == "office"
    assert hour[2:5] == (9.0, 0.004, 2.0)
    assert hour[-1] == 30
    assert [row[2:] for row in drops] == [("dropped_bytes", 41)]


def test_it_is_in_no_evaluation() -> None:
    found = evaluate(two_pieces(), Catalogue({}, {}, {}))
    assert found.provenance.samples == 0
    assert found.regions == ()


def test_bytes_of_a_day_end_with_it_and_a_clock_that_is_set_back_begins_none(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    today = DayBytes(tmp_path / "bytes.json", clock)
    today.add(100)
    today.save()
    assert DayBytes(tmp_path / "bytes.json", clock).spent() == 100
    clock.step(-3 * DAY_NS)
    assert today.spent() == 100
    clock.step(DAY_NS)
    assert today.spent() == 0
    (tmp_path / "bytes.json").write_text("{")
    assert DayBytes(tmp_path / "bytes.json", clock).spent() == 0
