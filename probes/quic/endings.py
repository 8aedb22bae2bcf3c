"""Why a QUIC connection is not, or no longer: error codes and ICMP errors as failures."""

from pathbudget.probes.channels import QueuedError
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import closed, from_icmp, timed_out
from pathbudget.probes.quic.inside import Closing
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

CONNECTION_REFUSED = 0x2
CRYPTO_ERROR = 0x100
"""Plus the TLS alert (RFC 9001, 4.8)."""
GOOD_ORDER = frozenset({0x0, 0x100})
"""Codes of applications: of DNS over QUIC (RFC 9250) and HTTP/3 (RFC 9114, 8.1)."""
LONGEST_REASON = 120
IDLE = "Idle timeout"
_PORT_UNREACHABLE = {AddressFamily.IPV4: (3, 3), AddressFamily.IPV6: (1, 4)}
_CERTIFICATE_ALERTS = frozenset({41, 42, 43, 44, 45, 46, 48, 49, 113, 114, 116})
_ALERTS = {
    40: "handshake failure",
    42: "bad certificate",
    43: "unsupported certificate",
    44: "certificate revoked",
    45: "certificate expired",
    46: "certificate unknown",
    47: "illegal parameter",
    48: "unknown ca",
    49: "access denied",
    50: "decode error",
    51: "decrypt error",
    70: "protocol version",
    71: "insufficient security",
    80: "internal error",
    86: "inappropriate fallback",
    109: "missing extension",
    110: "unsupported extension",
    112: "unrecognized name",
    116: "certificate required",
    120: "no application protocol",
}


def from_close(closing: Closing, stage: Stage) -> Failure:
    """A connection that either side has closed (RFC 9000, 20)."""
    code, said = closing.code, printable(closing.reason)
    if closing.reason == IDLE:
        return Failure(FailureKind.TIMEOUT, stage, detail="nothing came for the idle timeout")
    if closing.application:
        return _by_application(closing, said, stage)
    if code == CONNECTION_REFUSED:
        return Failure(FailureKind.REFUSED, stage, detail=said or "the server refuses connections")
    if CRYPTO_ERROR <= code < CRYPTO_ERROR + 0x100:
        alert = code - CRYPTO_ERROR
        word = _ALERTS.get(alert, f"alert {alert}")
        kind = FailureKind.CERTIFICATE if alert in _CERTIFICATE_ALERTS else FailureKind.PROTOCOL
        return Failure(kind, stage, detail=f"{word}: {said}" if said else word)
    if code == 0:
        return closed(stage)
    detail = said or f"closed with error {code:#x}"
    return Failure(FailureKind.PROTOCOL, stage, detail=detail)


def _by_application(closing: Closing, said: str, stage: Stage) -> Failure:
    if closing.ours:
        detail = said or f"broke the rules of the protocol (code {closing.code:#x})"
        return Failure(FailureKind.PROTOCOL, Stage.PARSE, detail=detail)
    if closing.code in GOOD_ORDER:
        return closed(stage)
    detail = f"closed by the other side with code {closing.code:#x}"
    return Failure(FailureKind.CLOSED, stage, detail=f"{detail}: {said}" if said else detail)


def printable(text: str) -> str:
    """Foreign words, fit for a line on a terminal."""
    return "".join(one if one.isprintable() else "?" for one in text[:LONGEST_REASON])


def from_error_queue(shot: Shot, error: QueuedError, port: int) -> Failure | None:
    """What an ICMP error about our datagrams means; None for a message that is no error."""
    failure = from_icmp(shot.family, error.icmp_type, error.icmp_code, Stage.HANDSHAKE)
    if failure is None:
        return None
    kind, detail = failure.kind, f"{failure.detail}: nothing came back over UDP"
    from_there = error.responder in ("", shot.address)
    if from_there and (error.icmp_type, error.icmp_code) == _PORT_UNREACHABLE[shot.family]:
        kind, detail = FailureKind.REFUSED, f"port unreachable: nothing listens on UDP port {port}"
    return Failure(
        kind,
        Stage.HANDSHAKE,
        detail=detail,
        icmp_type=error.icmp_type,
        icmp_code=error.icmp_code,
    )


def from_deadline(stage: Stage, timeout_ns: int, datagrams: int) -> Failure:
    """The deadline struck; `datagrams` had come by then."""
    failure = timed_out(stage, timeout_ns)
    if stage is not Stage.HANDSHAKE:
        return failure
    more = f"{datagrams} datagrams came" if datagrams else "nothing came back over UDP"
    return Failure(failure.kind, stage, detail=f"{failure.detail}: {more}")
