"""Results on their way from agents to a store: once, in any order, and nothing else."""

import asyncio
import random
from pathlib import Path

import pytest
from tests.collector.fleet_run import OFFICE, FleetRun
from tests.fleet.conftest import entered, until

from pathbudget.agents.bus.packing import DEFLATE, ENCODING, packed
from pathbudget.agents.bus.subjects import RESULTS
from pathbudget.agents.bus.uplink import MESSAGE_ID
from pathbudget.probes.codec import encode_line
from pathbudget.probes.record import Measurement, Metric, Sample, Target, Vantage

pytestmark = [pytest.mark.needs("nats-server")]

DAY_NS = 86_400_000_000_000
BEGAN = 1_790_000_000_000_000_000


def measured(name: str, samples: int = 3, vantage: str = OFFICE, at: int = BEGAN) -> Measurement:
    rows = tuple(
        Sample(seq=n, metric=Metric.RTT, sent_unix_ns=at + n, value_ns=1000) for n in range(samples)
    )
    return Measurement(
        id=name, vantage=Vantage(vantage, "here"), target=Target("lo", "127.0.0.1", "loop"),
        probe="icmp", started_unix_ns=at, samples=rows,
    )  # fmt: skip


async def publish(run: FleetRun, rows: list[tuple[str, bytes, dict[str, str]]]) -> None:
    """As the agent of the office: message id, content and more headers."""
    async with entered(run.served.member(OFFICE)) as agent:
        stream = agent.client.jetstream()
        for name, content, headers in rows:
            await stream.publish(
                f"{RESULTS}.{OFFICE}", content, headers={MESSAGE_ID: name, **headers}
            )


def as_message(one: Measurement) -> tuple[str, bytes, dict[str, str]]:
    return one.id, packed(encode_line(one)), {ENCODING: DEFLATE}


def test_what_an_agent_measures_is_in_the_store_once(run: FleetRun) -> None:
    run.start_collector()
    run.start_agent()
    until(lambda: "has no plan for office yet" in run.log(OFFICE), lambda: run.log(OFFICE))
    run.push()
    run.await_samples(50)
    run.end_agents()
    run.await_drained()
    assert run.accounts_for_all() >= 50
    (sent,) = run.lives().values()
    assert sent == list(range(len(sent)))


def test_results_of_a_day_without_a_collector_wait_and_come_then(run: FleetRun) -> None:
    """1,440 minutes of a series, out of order, a third of them again under another message id."""
    rng = random.Random(5)
    day = [measured(f"minute-{n:04}", at=BEGAN + n * 60_000_000_000) for n in range(1_440)]
    rows = [as_message(one) for one in day]
    again = [(f"again-{name}", content, headers) for name, content, headers in rows[::3]]
    rows += again
    rng.shuffle(rows)
    asyncio.run(publish(run, rows))
    run.start_collector()
    run.start_collector()
    until(lambda: len(run.stored()) >= 1_440, lambda: run.log("collector"))
    run.await_drained()
    stored = run.stored()
    assert sorted(one.id for one in stored) == sorted(one.id for one in day)


def test_two_collectors_with_stores_of_their_own_share_the_work(run: FleetRun) -> None:
    rows = [as_message(measured(f"m-{n:03}")) for n in range(1_200)]
    run.start_collector("one")
    run.start_collector("two")
    asyncio.run(publish(run, rows))
    both = ("one", "two")
    until(
        lambda: len(run.stored(*both)) >= 1_200,
        lambda: run.log("collector"),
    )
    assert sorted(one.id for one in run.stored(*both)) == sorted(name for name, _, _ in rows)


def test_what_is_no_result_is_kept_apart_and_holds_nothing_up(run: FleetRun) -> None:
    good = measured("good")
    asyncio.run(
        publish(
            run,
            [
                ("garbage", b"\x00\xff" * 500, {}),
                ("damaged", packed(encode_line(measured("damaged")))[:-4], {ENCODING: DEFLATE}),
                ("unknown", encode_line(measured("unknown")), {ENCODING: "zstd"}),
                ("bomb", packed(b" " * (65 << 20)), {ENCODING: DEFLATE}),
                as_message(measured("of-another", vantage="elsewhere")),
                ("../../../etc/passwd", b"{}", {}),
                as_message(good),
            ],
        )
    )
    run.start_collector()
    until(lambda: run.collected().get("measurements") == 1, lambda: run.log("collector"))
    run.await_drained()
    assert [one.id for one in run.stored()] == ["good"]
    assert run.collected()["rejected"] == {"packing": 3, "unreadable": 2, "other_agent": 1}
    kept = list((run.folder / "store" / "rejected").iterdir())
    assert len(kept) == 6
    assert all(path.suffix == ".message" for path in kept)
    assert not (run.folder.parent / "etc").exists()


def test_a_store_that_takes_nothing_is_waited_for(run: FleetRun, tmp_path: Path) -> None:
    """Nothing is acknowledged meanwhile; the folder is a file for a time."""
    run.start_collector()
    asyncio.run(publish(run, [as_message(measured("first"))]))
    until(lambda: run.collected().get("measurements") == 1, lambda: run.log("collector"))
    tables = tmp_path / "store" / "measurements"
    away = tmp_path / "away"
    tables.rename(away)
    tables.write_text("no folder")
    asyncio.run(publish(run, [as_message(measured("second"))]))
    until(lambda: bool(run.collected().get("trouble")), lambda: run.log("collector"))
    tables.unlink()
    away.rename(tables)
    until(lambda: run.collected().get("measurements") == 2, lambda: run.log("collector"))
    assert sorted(one.id for one in run.stored()) == ["first", "second"]
