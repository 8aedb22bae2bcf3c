"""The loopback world as a plain client sees it."""

import asyncio
import contextlib
import math
import os
import signal
import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathbudget.agents.loopback.geography import PathModel, Place, pair_delay, truth_of
from pathbudget.agents.loopback.world import LoopbackWorld
from pathbudget.probes.errors import LabError
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms

REGIONS: list[Place] = [("london", 51.51, -0.13), ("madrid", 40.42, -3.70)]
SITES: list[Place] = [("frankfurt", 50.11, 8.68), ("dallas", 32.78, -96.80)]
SAMPLES = 20
MODEL = PathModel(variation_ms=1.0, loss=0.0)


def flight_ms(
    world: LoopbackWorld, context: ssl.SSLContext, source: str, site: str, timeout: float = 5
) -> float:
    """ClientHello sent to the first byte of the answer, in ms."""
    address = world.address(site)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=address)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    with socket.create_connection((address, world.tls_port), timeout, (source, 0)) as plain:
        begun = time.perf_counter()
        plain.sendall(outgoing.read())
        incoming.write(plain.recv(65536))
        taken = time.perf_counter() - begun
    client.do_handshake()  # raises when the certificate does not fit
    return 1000 * taken


@pytest.fixture(scope="module")
def world() -> Iterator[LoopbackWorld]:
    with LoopbackWorld(REGIONS, SITES, model=MODEL, seed=3) as running:
        yield running


@pytest.fixture(scope="module")
def context(world: LoopbackWorld) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=world.authority)


def test_a_client_sees_the_round_trips_of_the_model(
    world: LoopbackWorld, context: ssl.SSLContext
) -> None:
    """Never less than the minimum; the median no further off than this host explains.

    The median of n draws has a standard error of about variation / sqrt(n). How busy the host is
    shows in flights of a source that the world does not know, which it does not delay.
    """
    for region in world.regions:
        for site in world.sites:
            truth = world.truth(region, site)
            source = world.source_address(region)
            taken = [flight_ms(world, context, source, site) for _ in range(SAMPLES)]
            host = [flight_ms(world, context, "127.3.0.1", site) for _ in range(SAMPLES)]
            spread = 4 * world.pair(region, site).variation_ms / math.sqrt(SAMPLES)
            median = statistics.median(taken)
            assert min(taken) >= truth.minimum_ms
            assert truth.median_ms - spread < median
            assert median < truth.median_ms + spread + 5 + 2 * statistics.quantiles(host, n=10)[-1]


def test_pairs_differ_as_the_map_says(world: LoopbackWorld) -> None:
    near = world.truth("london", "frankfurt")
    far = world.truth("london", "dallas")
    assert far.minimum_ms > 5 * near.minimum_ms
    assert near.minimum_ms < near.median_ms < near.p95_ms


def test_a_connect_is_not_delayed_and_the_plain_port_is_silent(world: LoopbackWorld) -> None:
    begun = time.perf_counter()
    with socket.create_connection((world.address("dallas"), world.tcp_port), 5) as plain:
        assert 1000 * (time.perf_counter() - begun) < world.truth("london", "dallas").minimum_ms
        plain.settimeout(0.2)
        with pytest.raises(TimeoutError):
            plain.recv(1)


def test_targets_are_addresses_that_the_certificate_covers(world: LoopbackWorld) -> None:
    target = world.target("dallas")
    assert (target.name, target.site, target.port) == ("dallas", "dallas", world.tls_port)
    assert target.host == world.address("dallas")
    assert target.host.startswith("127.2.")
    assert world.source_address("madrid").startswith("127.1.")


def test_two_worlds_live_beside_each_other(world: LoopbackWorld) -> None:
    with LoopbackWorld(REGIONS, SITES, seed=3) as second:
        assert second.address("dallas") != world.address("dallas")
        assert second.truth("london", "dallas").minimum_ms == (
            world.truth("london", "dallas").minimum_ms
        )
        second.check()
    world.check()


def test_losses_are_connections_that_are_never_answered() -> None:
    with LoopbackWorld(REGIONS[:1], SITES[:1], model=PathModel(loss=1.0)) as lossy:
        context = ssl.create_default_context(cafile=lossy.authority)
        with pytest.raises(TimeoutError):
            flight_ms(lossy, context, lossy.source_address("london"), "frankfurt", 0.5)
        assert lossy.truth("london", "frankfurt").loss == 1.0


def test_the_share_of_lost_connections_is_that_of_the_model() -> None:
    """200 connections at once; the share lies within 4 standard errors of 30 %."""
    with LoopbackWorld(REGIONS[:1], SITES[:1], model=PathModel(loss=0.3), seed=5) as lossy:
        context = ssl.create_default_context(cafile=lossy.authority)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname=lossy.address("frankfurt"))
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()
        answered = asyncio.run(_answered(lossy, hello, 200))
    assert abs((200 - answered) / 200 - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 200)


async def _answered(world: LoopbackWorld, hello: bytes, n: int) -> int:
    async def one() -> bool:
        local = (world.source_address("london"), 0)
        reader, writer = await asyncio.open_connection(
            world.address("frankfurt"), world.tls_port, local_addr=local
        )
        writer.write(hello)
        try:
            async with asyncio.timeout(3):
                return (await reader.read(1)) != b""
        except TimeoutError:
            return False
        finally:
            writer.transport.abort()

    return sum(await asyncio.gather(*(one() for _ in range(n))))


def test_nothing_is_left_behind() -> None:
    with LoopbackWorld(REGIONS, SITES) as brief:
        address, folder = brief.address("dallas"), brief.authority.parent
        assert brief.authority.exists()
    assert not folder.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, brief.tls_port), 5)
    with pytest.raises(LabError, match="not running"):
        brief.check()


def test_a_responder_that_was_killed_is_noticed() -> None:
    with LoopbackWorld(REGIONS, SITES) as brief:
        brief.check()
        assert brief.pid is not None
        os.kill(brief.pid, signal.SIGKILL)
        os.waitid(os.P_PID, brief.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(LabError, match="died"):
            brief.check()


def test_a_world_that_cannot_start_says_why() -> None:
    broken = LoopbackWorld(REGIONS, SITES, tls_port=9443, tcp_port=9443)
    with (
        pytest.raises(LabError, match=r"cannot start: .*--tcp-port: 9443; expected another"),
        broken,
    ):
        pass


def test_places_make_the_same_delays_every_time_and_alone() -> None:
    def delay(site: Place, seed: int) -> float:
        return pair_delay(REGIONS[0], site, "a", "b", MODEL, seed).minimum_ms

    assert delay(SITES[0], 1) == delay(SITES[0], 1)
    assert delay(SITES[0], 1) != delay(SITES[0], 2)


def test_no_pair_is_faster_than_light_in_fibre() -> None:
    for region in REGIONS:
        for site in SITES:
            floor = floor_rtt_ms(distance_km(region[1], region[2], site[1], site[2]))
            pair = pair_delay(region, site, "a", "b", MODEL, 1)
            assert floor * MODEL.inflation_low < truth_of(pair).minimum_ms
            assert pair.minimum_ms <= floor * MODEL.inflation_high + MODEL.access_ms + 0.001


@pytest.mark.parametrize(
    ("regions", "sites", "message"),
    [
        ([], SITES, "1 to 100"),
        (REGIONS, SITES * 2, "same name: dallas, frankfurt"),
        ([("x", 0.0, 0.0)] * 101, SITES, "1 to 100"),
        ([("x", 91.0, 0.0)], SITES, "latitude 91"),
    ],
)
def test_places_that_make_no_world_are_refused(
    regions: list[Place], sites: list[Place], message: str
) -> None:
    with pytest.raises(ValueError, match=message), LoopbackWorld(regions, sites):
        pass


def test_the_folder_of_a_world_is_private(world: LoopbackWorld) -> None:
    assert Path(world.authority.parent).stat().st_mode & 0o077 == 0
