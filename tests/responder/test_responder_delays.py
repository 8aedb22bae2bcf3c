"""Round trips made in user space: what is drawn, and what a client sees of it."""

import asyncio
import math
import socket
import ssl
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.responder.delays import DelayFile, Delays, PairDelay, read_delays
from pathbudget.agents.responder.server import Responder
from pathbudget.probes.errors import ConfigError

Listen = Callable[..., AbstractAsyncContextManager[Responder]]
HERE = "127.0.0.1"


def pair(**changed: float) -> PairDelay:
    values = {"minimum_ms": 20.0, "variation_ms": 2.0, "loss": 0.0} | changed
    return PairDelay(source=HERE, destination=HERE, **values)


def delays(seed: int = 7, **changed: float) -> Delays:
    return Delays(DelayFile((pair(**changed),), seed))


@given(st.floats(0, 1000), st.floats(0, 100), st.floats(0, 0.999))
def test_a_quantile_is_never_below_the_minimum(minimum: float, variation: float, p: float) -> None:
    model = pair(minimum_ms=minimum, variation_ms=variation)
    assert model.quantile_ms(p) >= minimum
    assert model.quantile_ms(0) == minimum


def test_the_draws_follow_the_quantiles_that_the_model_states() -> None:
    source = delays()
    drawn = sorted(1000 * source.seconds(HERE, HERE) for _ in range(4000))
    assert drawn[0] >= 20
    for p in (0.5, 0.95):
        below = sum(value <= pair().quantile_ms(p) for value in drawn) / len(drawn)
        assert abs(below - p) < 4 * math.sqrt(p * (1 - p) / len(drawn))


def test_the_seed_decides_and_pairs_do_not_disturb_each_other() -> None:
    other = PairDelay(source="127.0.0.2", destination=HERE, minimum_ms=1, variation_ms=1)
    alone = Delays(DelayFile((pair(),), 7))
    together = Delays(DelayFile((pair(), other), 7))
    drawn: list[float] = []
    for _ in range(5):
        together.seconds("127.0.0.2", HERE)
        drawn.append(together.seconds(HERE, HERE))
    assert drawn == [alone.seconds(HERE, HERE) for _ in range(5)]
    assert drawn != [delays(seed=8).seconds(HERE, HERE) for _ in range(5)]


def test_a_pair_that_the_file_does_not_know_is_not_delayed() -> None:
    assert delays().seconds("127.0.0.3", HERE) == 0
    assert not delays(loss=1.0).lost("127.0.0.3", HERE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "truncated"),
        ('{"pairs": [{"source": "a"}]}', "destination"),
        ('{"pairs": [], "sede": 1}', "sede"),
        (
            '{"pairs": [{"source": "a", "destination": "b", "minimum_ms": 1, "loss": 2}]}',
            "loss is 2.0; expected 0 to 1",
        ),
    ],
)
def test_a_faulty_file_is_a_config_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "delays.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_delays(path)


def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_delays(tmp_path / "nowhere.json")


def test_a_file_survives_the_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "delays.json"
    path.write_bytes(msgspec.json.encode(DelayFile((pair(),), 7)))
    assert read_delays(path).seconds(HERE, HERE) == delays().seconds(HERE, HERE)


class Client:
    """A TLS client by hand: times each flight of the server."""

    def __init__(self, context: ssl.SSLContext, address: tuple[str, int]) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=address[0])
        self.plain = socket.create_connection(address, timeout=5)

    def step(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()

    def flight(self) -> float:
        """Send what is pending; seconds until the answer."""
        begun = time.perf_counter()
        self.plain.sendall(self.outgoing.read())
        self.incoming.write(self.plain.recv(65536))
        return time.perf_counter() - begun

    def close(self) -> None:
        self.plain.close()


async def test_both_flights_take_one_round_trip_each(
    listen: Listen, client_context: ssl.SSLContext
) -> None:
    def flights(address: tuple[str, int]) -> tuple[list[float], list[float]]:
        first: list[float] = []
        second: list[float] = []
        for _ in range(10):
            client = Client(client_context, address)
            client.step()
            first.append(client.flight())
            client.step()
            second.append(client.flight())  # Finished up, tickets down
            client.close()
        return first, second

    async with listen(delays=delays(minimum_ms=60.0, variation_ms=0.0)) as responder:
        first, second = await asyncio.to_thread(flights, responder.tls_addresses[0])
    for taken in (first, second):
        assert min(taken) >= 0.06
        assert statistics.median(taken) < 0.11


async def test_a_lost_connection_is_never_answered(
    listen: Listen, client_context: ssl.SSLContext
) -> None:
    def wait(address: tuple[str, int]) -> None:
        client = Client(client_context, address)
        client.plain.settimeout(0.4)
        client.step()
        try:
            client.flight()
        finally:
            client.close()

    async with listen(delays=delays(loss=1.0)) as responder:
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(wait, responder.tls_addresses[0])


class Listed(Delays):
    """Delays in seconds, in the order of a list."""

    def __init__(self, seconds: list[float]) -> None:
        super().__init__(DelayFile(()))
        self._seconds = seconds

    def seconds(self, source: str, destination: str) -> float:
        return self._seconds.pop(0)


@pytest.mark.parametrize("last", [0.0, 0.15, 0.3])
async def test_a_flight_never_overtakes_the_one_before(
    listen: Listen, client_context: ssl.SSLContext, last: float
) -> None:
    """Tickets wait 0.3 s, the goodbye less: neither comes early, and both decrypt."""

    def goodbye(address: tuple[str, int]) -> float:
        client = Client(client_context, address)
        client.step()
        client.flight()
        client.step()
        begun = time.perf_counter()
        client.plain.sendall(client.outgoing.read())  # Finished
        time.sleep(0.05)  # so that the goodbye is a flight of its own
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.flight()
        taken = time.perf_counter() - begun
        while rest := client.plain.recv(65536):
            client.incoming.write(rest)
        client.tls.unwrap()
        client.close()
        return taken

    async with listen(delays=Listed([0.0, 0.3, last])) as responder:
        assert await asyncio.to_thread(goodbye, responder.tls_addresses[0]) >= 0.3


async def test_a_client_that_leaves_before_its_flight_is_due_disturbs_nobody(
    listen: Listen, client_context: ssl.SSLContext
) -> None:
    def leave(address: tuple[str, int]) -> None:
        client = Client(client_context, address)
        client.step()
        client.plain.sendall(client.outgoing.read())
        client.close()

    async with listen(delays=delays(minimum_ms=100.0)) as responder:
        await asyncio.to_thread(leave, responder.tls_addresses[0])
        await asyncio.sleep(0.2)
        client = await asyncio.to_thread(Client, client_context, responder.tls_addresses[0])
        client.step()
        assert await asyncio.to_thread(client.flight) > 0.09
        client.close()
