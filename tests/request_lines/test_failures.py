"""What failed throughout is told by its true cause, and by no other."""

import pytest
from tests.request_lines.parts import (
    N,
    echoes,
    evaluated,
    findings,
    measurement,
    sample,
    setups,
    tier,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Metric,
    Stage,
    Transport,
)

TLS, QUIC = Transport.TLS, Transport.QUIC
COLD = ConnectionMode.COLD
LOST: list[float | None] = [None, None, None]
UNTRUSTED = Failure(FailureKind.CERTIFICATE, Stage.HANDSHAKE, "self-signed certificate")


@pytest.mark.parametrize(
    ("failure", "blocked"),
    [
        (Failure(FailureKind.TIMEOUT, Stage.HANDSHAKE, "nothing came back over UDP"), True),
        (Failure(FailureKind.REFUSED, Stage.CONNECT), True),
        (Failure(FailureKind.UNREACHABLE, Stage.HANDSHAKE), True),
        (Failure(FailureKind.TIMEOUT, Stage.HANDSHAKE, "no answer: 4 datagrams came"), False),
        (Failure(FailureKind.PROTOCOL, Stage.HANDSHAKE, "no application protocol"), False),
        (Failure(FailureKind.TIMEOUT, Stage.RESOLVE), False),
        (UNTRUSTED, False),
    ],
    ids=["silence", "refused", "unreachable", "stuck", "protocol", "resolver", "certificate"],
)
def test_quic_is_blocked_only_where_nothing_came_back(failure: Failure, blocked: bool) -> None:
    both = [echoes(), setups(TLS, COLD, [80.0] * N), setups(QUIC, COLD, LOST, failure=failure)]
    assert (FindingKind.QUIC_BLOCKED in findings(evaluated(both, tier("warm", "quic")))) is blocked


@pytest.mark.parametrize(("transport", "word"), [(TLS, "TLS"), (QUIC, "QUIC")])
def test_a_certificate_that_is_not_trusted_is_told_with_what_to_do(
    transport: Transport, word: str
) -> None:
    told = findings(evaluated([echoes(), setups(transport, COLD, LOST, failure=UNTRUSTED)]))
    text = told[FindingKind.CERTIFICATE_NOT_TRUSTED]
    assert f"alpha-edge over {word} and IPv4 was not trusted in 3 of 3 handshakes" in text
    assert "(self-signed certificate)" in text
    assert "ca_file" in text
    assert "verify = false" in text
    assert FindingKind.UNREACHABLE not in told


def test_one_certificate_among_many_is_no_finding() -> None:
    few = [80.0] * 20 + LOST
    told = findings(evaluated([echoes(), setups(TLS, COLD, few, failure=UNTRUSTED)]))
    assert FindingKind.CERTIFICATE_NOT_TRUSTED not in told


@pytest.mark.parametrize("answered", [0, 1])
def test_requests_that_all_had_an_unexpected_status(answered: int) -> None:
    status = Failure(FailureKind.STATUS, Stage.WAIT, "status 404")
    values = LOST + [50.0] * answered
    shots = [sample(i, Metric.FIRST_BYTE, x, COLD, failure=status) for i, x in enumerate(values)]
    told = findings(evaluated([echoes(), measurement(shots, "http", TLS)]))
    assert (FindingKind.STATUS_UNEXPECTED in told) is not answered
    if not answered:
        text = told[FindingKind.STATUS_UNEXPECTED]
        assert "every one of 3 HTTP requests to alpha-edge" in text
        assert "(status 404)" in text


@pytest.mark.parametrize("answered", [0, 1])
def test_questions_that_all_failed(answered: int) -> None:
    refused = Failure(FailureKind.STATUS, Stage.WAIT, "REFUSED")
    values = LOST + [50.0] * answered
    shots = [sample(i, Metric.DNS_HIT, x, failure=refused) for i, x in enumerate(values)]
    asked = measurement(shots, "dns", TLS, options={"transport": "dot"})
    told = findings(evaluated([echoes(), asked]))
    assert (FindingKind.LOOK_UPS_FAILED in told) is not answered
    if not answered:
        text = told[FindingKind.LOOK_UPS_FAILED]
        assert text == (
            "every one of 3 DNS questions to alpha-edge over TLS (DoT) failed (REFUSED)."
        )
