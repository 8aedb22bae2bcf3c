"""What a look prints of handshakes that failed, and of too little."""

import io

import msgspec
from rich.console import Console
from tests.request_lines.parts import echoes, evaluated, sample, setups
from tests.request_lines.parts import measurement as measured

from pathbudget.agents.quick.show import show
from pathbudget.probes.record import (
    AddressFamily,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Stage,
    Transport,
)

TLS, QUIC, COLD = Transport.TLS, Transport.QUIC, ConnectionMode.COLD
UNTRUSTED = Failure(FailureKind.CERTIFICATE, Stage.HANDSHAKE, "unable to get local issuer")


def printed(*measurements: Measurement) -> str:
    sheet = io.StringIO()
    show(evaluated(measurements), ["alpha"], Console(file=sheet, width=80, markup=False))
    assert max(map(len, sheet.getvalue().splitlines())) <= 80
    return " ".join(sheet.getvalue().split())


def over_ipv6(one: Measurement) -> Measurement:
    changes = {"family": AddressFamily.IPV6, "address": "2001:db8::1", "id": f"{one.id}-6"}
    return msgspec.structs.replace(one, **changes)


def test_a_certificate_that_is_not_trusted_names_the_options_of_this_command() -> None:
    lost: list[float | None] = [None] * 3
    path = [echoes(), *(setups(one, COLD, lost, failure=UNTRUSTED) for one in (TLS, QUIC))]
    text = printed(*path, *map(over_ipv6, path))
    for over in ("TLS and IPv4", "QUIC and IPv4", "TLS and IPv6", "QUIC and IPv6"):
        assert text.count(f"over {over} was not trusted in 3 of 3 handshakes") == 1
    assert text.count("--ca-file FILE") == text.count("--insecure") == 4
    assert "verify = false" not in text
    assert "(unable to get local issuer)" in text
    assert "lost" not in text
    assert "UDP is filtered" not in text


def test_notes_of_two_families_are_told_apart() -> None:
    """A middlebox on both: two notes that are not the same."""
    path = [
        measured((sample(i, Metric.CONNECT, 1.0) for i in range(100)), "tcp"),
        measured((sample(i, Metric.TLS_HANDSHAKE, 60.0, COLD) for i in range(100)), "tls", TLS),
    ]
    text = printed(*path, *map(over_ipv6, path))
    assert "alpha-edge over IPv4: the fastest TCP connect" in text
    assert "alpha-edge over IPv6: the fastest TCP connect" in text


def test_no_number_is_cut_where_many_fail_in_the_longest_row() -> None:
    """Counts, a p95 that there is not, an interval without limit, and the longest names."""
    some: list[float | None] = [118.0] * 120 + [None] * 12
    quic = setups(QUIC, ConnectionMode.RESUMED, some)
    plain = measured((sample(i, Metric.CONNECT, x) for i, x in enumerate(some)), "tls", TLS)
    text = printed(echoes(), *map(over_ipv6, (quic, plain)))
    assert "QUIC set-up resumed v6 132 12 118.0 118.0 none 118.0..no limit" in text
    assert "…" not in text


def test_too_few_samples_set_no_interval() -> None:
    text = printed(echoes(n=2))
    assert "too few" in text
    assert "0.00.." not in text
