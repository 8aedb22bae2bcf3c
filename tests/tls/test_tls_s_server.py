"""Against ``openssl s_server``: retries, flights beyond the initial window, tickets taken once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tls.servers import Server

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import ConnectionMode, FailureKind, Flag, Sample
from pathbudget.probes.tls.probe import TLS

pytestmark = pytest.mark.needs("openssl")

MS = 1_000_000
Start = Callable[..., Server]
EARLY, COLD = ConnectionMode.EARLY_DATA, ConnectionMode.COLD


async def shoot(collector: Collector, port: int, shots: int = 1, **options: Any) -> list[Sample]:
    probe = collector.open(TLS, options)
    for seq in range(shots):
        shot = shot_at("127.0.0.1", seq=seq, port=port, host="localhost", timeout_ns=5_000 * MS)
        probe.fire(shot)
        await probe.drain()
    probe.close()
    return collector.of("tls_handshake")


@pytest.mark.parametrize("groups", ["", "X25519MLKEM768:P-384"])
@pytest.mark.parametrize(("server", "retried"), [("P-384", True), ("X25519", False)])
async def test_a_group_that_was_not_sent_costs_a_hello_retry(
    collector: Collector, s_server: Start, ca_file: str, groups: str, server: str, retried: bool
) -> None:
    options = ("-groups", server)
    (sample,) = await shoot(
        collector, s_server(*options).port, ca_file=ca_file, groups=groups or "X25519:P-384"
    )
    if groups and server == "X25519":
        assert sample.failure is not None
        assert sample.failure.kind is FailureKind.PROTOCOL
        return
    assert sample.notes is not None
    assert sample.notes["group"] == server
    assert (Flag.HELLO_RETRY in sample.flags) == retried
    hello = sample.notes["hello_bytes"]
    assert isinstance(hello, int)
    assert (hello > 1_300) == bool(groups)


async def test_pythons_own_library_sees_the_retry_too(
    collector: Collector, s_server: Start, ca_file: str
) -> None:
    (sample,) = await shoot(
        collector, s_server("-groups", "P-384").port, ca_file=ca_file, library="ssl"
    )
    assert sample.flags == (Flag.HELLO_RETRY,)
    assert (sample.notes or {})["group"] == "P-384"
    assert collector.only("setup").flags == (Flag.HELLO_RETRY,)


async def test_a_chain_past_the_initial_window_is_marked(
    collector: Collector,
    s_server: Start,
    relay: Callable[..., int],
    large_certificate_folder: Path,
    library: str,
) -> None:
    server = s_server(folder=large_certificate_folder)
    ca_file = str(large_certificate_folder / "certificate.pem")
    port = relay([server.port], 14_600)
    (sample,) = await shoot(collector, port, ca_file=ca_file, library=library)
    assert sample.flags == (Flag.SECOND_FLIGHT,)
    assert sample.notes is not None
    flight, certificates = sample.notes["flight_bytes"], sample.notes["certificate_bytes"]
    assert isinstance(flight, int)
    assert isinstance(certificates, int)
    assert 14_600 < certificates < flight < certificates + 2_000


async def test_a_small_flight_is_not(
    collector: Collector, s_server: Start, relay: Callable[..., int], ca_file: str, library: str
) -> None:
    """Held back in the middle too, but ten segments would have held it: lost or slow, not long."""
    server = s_server()
    (sample,) = await shoot(collector, relay([server.port], 500), ca_file=ca_file, library=library)
    assert sample.flags == ()
    assert (sample.value_ns or 0) > 60 * MS


async def test_the_server_takes_a_ticket_once(
    collector: Collector, s_server: Start, ca_file: str
) -> None:
    """Its replay protection: the second time it makes a full handshake, and drops early data."""
    server = s_server("-early_data", "-max_early_data", "4096")
    handshakes = await shoot(
        collector, server.port, 4, mode="early_data", ca_file=ca_file, ticket_reuse=True
    )
    assert [sample.mode for sample in handshakes] == [COLD, EARLY, EARLY, EARLY]
    _, second, third, fourth = handshakes
    assert second.failure is None
    assert third.failure is not None
    assert third.failure.kind is FailureKind.EARLY_DATA_REJECTED
    assert third.failure.detail == "the server did not accept the session ticket"
    assert (third.notes or {})["ticket"] == "refused by the server"
    assert fourth.failure is None  # with the ticket of the full handshake
    assert server.count("Early data received", 2) == 2


async def test_a_certificate_of_ours_that_is_missing_shows_after_the_handshake(
    collector: Collector, s_server: Start, ca_file: str, library: str
) -> None:
    """Our side is done a round trip before the server has looked at it: told by a count."""
    server = s_server("-Verify", "1", "-verify_return_error")
    await shoot(collector, server.port, mode="resumed", ca_file=ca_file, library=library)
    assert collector.only("setup").failure is None
    assert collector.counted("failed_after_handshake") == 1
