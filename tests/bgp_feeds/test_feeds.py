"""Each kind of feed against a peer on loopback: it hears, is cut off, and comes back."""

import asyncio
import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from pathbudget.agents.bgp.bmp_feed import BmpFeed
from pathbudget.agents.bgp.mrt_feed import MrtFeed, collector_of
from pathbudget.agents.bgp.plans import BmpPlan, Endpoint, MrtPlan, RisLivePlan
from pathbudget.agents.bgp.ris_feed import RisLiveFeed
from pathbudget.probes.bgp.record import UpdateKind
from pathbudget.probes.errors import PathbudgetError

Running = Callable[..., Any]
MESSAGE = {
    "timestamp": 1_700_000_000.5,
    "peer": "192.0.2.1",
    "peer_asn": "64500",
    "host": "rrc00",
    "type": "UPDATE",
    "path": [64500, 65201],
    "announcements": [{"next_hop": "192.0.2.1", "prefixes": ["203.0.113.0/24"]}],
}
LINE = json.dumps({"type": "ris_message", "data": MESSAGE})


@pytest.mark.usefixtures("hurried")
async def test_ris_live_is_asked_again_after_the_connection_is_lost(
    kept: Any, running: Running
) -> None:
    asked: list[list[Any]] = []

    async def service(socket: ServerConnection) -> None:
        asked.append([json.loads(await socket.recv()) for _ in range(2)])
        await socket.send("nonsense")
        await socket.send(LINE)  # and then the service hangs up

    async with serve(service, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        plan = RisLivePlan(f"ws://127.0.0.1:{port}/v1/ws/", ("rrc00",))
        feed = RisLiveFeed("ris", plan, ("203.0.113.0/24", "198.51.100.7"))
        async with running(feed, kept):
            await kept.until(lambda: len(kept.updates) >= 2)
    first, second = (one["data"] for one in asked[0])
    assert (first["prefix"], first["lessSpecific"], first["host"]) == (
        "203.0.113.0/24",
        False,
        "rrc00",
    )
    assert (second["prefix"], second["lessSpecific"]) == ("198.51.100.7/32", True)
    assert kept.news[0] == ("connected", "subscribed to 2 prefixes")
    assert kept.news[1][0] == "lost"
    assert kept.updates[0].as_path == "64500 65201"
    assert kept.updates[0].id == kept.updates[1].id
    assert kept.bad >= 1


@pytest.mark.usefixtures("hurried")
async def test_ris_live_that_is_not_there_is_tried_again(
    kept: Any, running: Running, closed_port: int
) -> None:
    feed = RisLiveFeed("ris", RisLivePlan(f"ws://127.0.0.1:{closed_port}/"), ("203.0.113.0/24",))
    async with running(feed, kept):
        await kept.until(lambda: len(kept.news) >= 2)
    assert {kind for kind, _ in kept.news} == {"lost"}


async def test_a_file_of_ris_live_messages_is_followed(
    kept: Any, running: Running, tmp_path: Path
) -> None:
    path = tmp_path / "ris.jsonl"
    path.write_text(f"{LINE}\n{LINE[:20]}")
    async with running(RisLiveFeed("ris", RisLivePlan(file=path), ()), kept):
        await kept.until(lambda: len(kept.updates) == 1)
        with path.open("a") as file:
            file.write(f"{LINE[20:]}\n")
        await kept.until(lambda: len(kept.updates) == 2)
    assert kept.updates[0].arrived_unix_ns == kept.updates[0].time_unix_ns
    assert kept.bad == 0


async def test_an_mrt_file_is_followed_as_it_grows_and_is_replaced(
    kept: Any, running: Running, tmp_path: Path, wire: Any
) -> None:
    path, table = tmp_path / "updates.mrt", tmp_path / "rrc04" / "table.mrt"
    table.parent.mkdir()
    table.write_bytes(wire.mrt(1_600_000_000))
    async with running(MrtFeed("bird", MrtPlan(path, table, "bird-1")), kept):
        await kept.until(lambda: bool(kept.news))
        assert kept.news[0][0] == "lost"  # it is not there yet
        path.write_bytes(wire.mrt() + wire.mrt(1_700_000_001)[:30])
        await kept.until(lambda: len(kept.updates) == 2)
        with path.open("ab") as file:
            file.write(wire.mrt(1_700_000_001)[30:])
        await kept.until(lambda: len(kept.updates) == 3)
        path.rename(tmp_path / "updates.1.mrt")
        path.write_bytes(wire.mrt(1_700_000_002))
        await kept.until(lambda: len(kept.updates) == 4)
    seconds = [update.time_unix_ns // 10**9 for update in kept.updates]
    assert seconds == [1_600_000_000, 1_700_000_000, 1_700_000_001, 1_700_000_002]
    assert {update.collector for update in kept.updates} == {"bird-1"}
    assert kept.bad == 0


async def test_a_table_that_is_no_mrt_ends_the_feed(kept: Any, tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"\x7fELF" + bytes(100))
    feed = MrtFeed("bird", MrtPlan(tmp_path / "updates", tmp_path / "table"))
    with pytest.raises(PathbudgetError, match="table: no MRT file"):
        await feed.run(kept)


def test_collectors_are_named_by_their_archives() -> None:
    assert collector_of(Path("ris/rrc21/2026.01/updates.20260101.0000.gz")) == "rrc21"
    assert collector_of(Path("ripe_rrc00__2000.03__updates.gz")) == "rrc00"
    assert collector_of(Path("/srv/route-views.sydney/bview.bz2")) == "route-views.sydney"
    assert collector_of(Path("/var/log/bird/updates.mrt")) == ""


async def test_routers_connect_to_the_bmp_feed_and_their_end_is_noticed(
    kept: Any, running: Running, closed_port: int, wire: Any
) -> None:
    plan = BmpPlan(Endpoint("127.0.0.1", closed_port), (ipaddress.ip_network("127.0.0.0/8"),))
    async with running(BmpFeed("core", plan), kept):
        writer = await connected(closed_port)
        writer.write(wire.bmp())
        await kept.until(lambda: len(kept.updates) == 2)
        writer.close()
        await writer.wait_closed()
        await kept.until(lambda: len(kept.updates) == 3)
        await kept.until(lambda: kept.news[-1][0] == "lost")
    assert [update.kind for update in kept.updates] == [
        UpdateKind.PEER_UP,
        UpdateKind.ANNOUNCE,
        UpdateKind.PEER_DOWN,
    ]
    assert kept.updates[2].detail == "the router closed the connection"


async def test_routers_that_may_not_are_not_heard(
    kept: Any, running: Running, closed_port: int, wire: Any
) -> None:
    plan = BmpPlan(Endpoint("127.0.0.1", closed_port), (ipaddress.ip_network("192.0.2.0/24"),))
    feed = BmpFeed("core", plan)
    async with running(feed, kept):
        writer = await connected(closed_port)
        writer.write(wire.bmp())
        await kept.until(lambda: feed.refused == 1)
        writer.close()
    assert kept.updates == []
    assert feed.allows("::ffff:192.0.2.7")


async def connected(port: int) -> asyncio.StreamWriter:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            return writer
    raise TimeoutError


async def test_a_port_that_is_taken_is_said(kept: Any, closed_port: int) -> None:
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", closed_port)
    plan = BmpPlan(Endpoint("127.0.0.1", closed_port), ())
    async with taken:
        with pytest.raises(PathbudgetError, match="somebody listens there already"):
            await BmpFeed("core", plan).run(kept)
