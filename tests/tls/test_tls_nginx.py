"""Every mode against nginx: Nginx, checked against what nginx says of it in its own log."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.tls.servers import Nginx

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import ConnectionMode, FailureKind, Flag, Sample
from pathbudget.probes.tls.probe import TLS

pytestmark = pytest.mark.needs("nginx")

MS = 1_000_000
COLD, RESUMED, EARLY = ConnectionMode.COLD, ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA


async def shoot(
    collector: Collector, port: int, shots: int, **options: str | bool | float
) -> list[Sample]:
    """One after the other; the samples of the handshakes."""
    probe = collector.open(TLS, options)
    for seq in range(shots):
        shot = shot_at("127.0.0.1", seq=seq, port=port, host="localhost", timeout_ns=5_000 * MS)
        probe.fire(shot)
        await probe.drain()
    probe.close()
    return collector.of("tls_handshake")


async def test_early_data_is_accepted_and_costs_no_handshake(
    collector: Collector, nginx: Nginx, relay: Callable[..., int], ca_file: str
) -> None:
    # nginx says early only of requests that it reads before the handshake is complete, so our
    # Finished must not be there at once: the relay holds back what it answers.
    port = relay([nginx.early] * 4, 64)
    handshakes = await shoot(collector, port, 4, mode="early_data", ca_file=ca_file)
    assert [sample.failure for sample in handshakes] == [None] * 4
    assert [sample.mode for sample in handshakes] == [COLD, EARLY, EARLY, EARLY]
    # The server's own word: resumed, and the request came as early data.
    assert nginx.said(nginx.early, 4) == [
        [".", "-", "NONE", "HEAD"],
        *[["r", "1", "NONE", "HEAD"]] * 3,
    ]
    setups, connects = collector.of("setup"), collector.of("connect")
    for setup, connect, shaken in zip(setups[1:], connects[1:], handshakes[1:], strict=True):
        assert setup.value_ns == connect.value_ns
        assert setup.mode is EARLY
        assert shaken.notes is not None
        assert shaken.notes["ticket"] == "accepted"
        assert shaken.notes["early_bytes"] == len(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    first = setups[0]
    assert first.value_ns == (connects[0].value_ns or 0) + (handshakes[0].value_ns or 0)


async def test_resumed_by_either_library(
    collector: Collector, nginx: Nginx, ca_file: str, library: str
) -> None:
    handshakes = await shoot(
        collector, nginx.plain, 3, mode="resumed", ca_file=ca_file, library=library
    )
    assert [sample.mode for sample in handshakes] == [COLD, RESUMED, RESUMED]
    notes = [sample.notes or {} for sample in handshakes]
    assert [note["ticket"] for note in notes] == ["none at hand", "accepted", "accepted"]
    assert [note["certificate_bytes"] == 0 for note in notes] == [False, True, True]
    assert {note["group"] for note in notes} == {"X25519"}
    assert all(isinstance(note.get("ticket_age_ms"), int) for note in notes[1:])


async def test_a_server_whose_tickets_allow_no_early_data(
    collector: Collector, nginx: Nginx, ca_file: str
) -> None:
    """It would resume: that is not what was asked for, and it is said."""
    handshakes = await shoot(collector, nginx.plain, 3, mode="early_data", ca_file=ca_file)
    assert [sample.mode for sample in handshakes] == [COLD, EARLY, EARLY]
    for sample in (*handshakes[1:], *collector.of("setup")[1:]):
        assert sample.failure is not None
        assert sample.failure.kind is FailureKind.UNAVAILABLE
        assert sample.failure.detail == "the server's tickets allow no early data"
    assert nginx.said(nginx.plain, 1) == [[".", "-", "NONE", "HEAD"]]


async def test_early_data_that_the_server_does_not_take(
    collector: Collector, nginx: Nginx, relay: Callable[..., int], ca_file: str
) -> None:
    """Another machine behind the address knows the ticket, and takes no early data."""
    port = relay([nginx.early, nginx.plain])
    handshakes = await shoot(collector, port, 2, mode="early_data", ca_file=ca_file)
    failure = handshakes[1].failure
    assert failure is not None
    assert failure.kind is FailureKind.EARLY_DATA_REJECTED
    assert failure.detail == "the server resumed, and did not accept the early data"
    assert handshakes[1].notes is not None
    assert handshakes[1].notes["ticket"] == "accepted"
    assert collector.of("setup")[1].failure == failure


async def test_a_request_larger_than_the_ticket_allows(
    collector: Collector, nginx: Nginx, ca_file: str
) -> None:
    line = f"GET /{'x' * 20_000} HTTP/1.1"
    handshakes = await shoot(
        collector, nginx.early, 2, mode="early_data", ca_file=ca_file, early_request=line
    )
    failure = handshakes[1].failure
    assert failure is not None
    assert failure.kind is FailureKind.UNAVAILABLE
    assert "the ticket allows 16384 bytes of early data" in failure.detail


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("resumed", FailureKind.NOT_RESUMED), ("early_data", FailureKind.EARLY_DATA_REJECTED)],
)
async def test_a_server_that_gives_tickets_and_forgets_them(
    collector: Collector, nginx: Nginx, ca_file: str, mode: str, kind: FailureKind
) -> None:
    handshakes = await shoot(collector, nginx.forgets, 2, mode=mode, ca_file=ca_file)
    assert [sample.mode for sample in handshakes] == [COLD, ConnectionMode(mode)]
    failure = handshakes[1].failure
    assert failure is not None
    assert (failure.kind, failure.detail) == (
        kind,
        "the server did not accept the session ticket",
    )
    assert (handshakes[1].notes or {})["ticket"] == "refused by the server"
    reused = [line[0] for line in nginx.said(nginx.forgets, 0)]
    assert set(reused) <= {"."}


async def test_one_ticket_may_be_offered_again_and_again(
    collector: Collector, nginx: Nginx, ca_file: str
) -> None:
    """Four at once on one ticket. nginx takes it each time; by default only one would resume."""
    shots = [shot_at("127.0.0.1", seq=seq, port=nginx.plain, host="localhost") for seq in range(5)]
    for reuse, resumed in ((False, 1), (True, 4)):
        collector.emitted.clear()
        options: dict[str, Any] = {"mode": "resumed", "ticket_reuse": reuse, "ca_file": ca_file}
        probe = collector.open(TLS, options)
        probe.fire(shots[0])
        await probe.drain()
        for shot in shots[1:]:
            probe.fire(shot)
        await probe.drain()
        probe.close()
        modes = [sample.mode for sample in collector.of("tls_handshake")]
        assert modes.count(RESUMED) == resumed


async def test_tickets_ripen(collector: Collector, nginx: Nginx, ca_file: str) -> None:
    options: dict[str, Any] = {"mode": "resumed", "ticket_age": 0.3, "ca_file": ca_file}
    probe = collector.open(TLS, options)
    for seq in range(6):
        probe.fire(shot_at("127.0.0.1", seq=seq, port=nginx.plain, host="localhost"))
        await probe.drain()
        await asyncio.sleep(0.1)
    probe.close()
    notes = [sample.notes or {} for sample in collector.of("tls_handshake")]
    assert notes[1]["ticket"] == "too young"
    ages = [note["ticket_age_ms"] for note in notes if "ticket_age_ms" in note]
    assert ages
    assert all(isinstance(age, int) and age >= 300 for age in ages)


@pytest.mark.parametrize("mode", ["cold", "early_data"])
async def test_our_own_certificate(
    collector: Collector, nginx: Nginx, ca_file: str, mode: str
) -> None:
    key = ca_file.replace("certificate.pem", "key.pem")
    own = {"client_certificate": ca_file, "client_key": key}
    await shoot(collector, nginx.mutual, 2, mode=mode, ca_file=ca_file, **own)
    assert [sample.failure for sample in collector.of("setup")] == [None, None]
    if mode == "early_data":
        verified = [line[2] for line in nginx.said(nginx.mutual, 2)]
        assert verified == ["SUCCESS", "SUCCESS"]


@pytest.mark.parametrize("mode", ["cold", "resumed", "early_data"])
async def test_every_sample_of_an_unchecked_certificate_is_marked(
    collector: Collector, nginx: Nginx, mode: str
) -> None:
    await shoot(collector, nginx.early, 2, mode=mode, verify=False)
    for _, sample in collector.emitted:
        assert sample.failure is None
        assert Flag.UNVERIFIED in sample.flags


async def test_what_a_server_speaks(collector: Collector, nginx: Nginx, ca_file: str) -> None:
    (sample,) = await shoot(collector, nginx.early, 1, alpn="h2, http/1.1", ca_file=ca_file)
    assert sample.notes is not None
    assert sample.notes["alpn"] == "h2"
