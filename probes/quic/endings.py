"""Why a QUIC connection is not, or no longer: error codes and ICMP errors as failures."""

from pathbudget.probes.channels import QueuedError
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

CONNECTION_REFUSED = 0x2
CRYPTO_ERROR = 0x100
"""Plus the TLS alert (RFC 9001, 4.8)."""
NO_ERROR = frozenset({0x0, 0x100 << 8})
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


def from_close(code: int, reason: str, stage: Stage) -> Failure:
    """A connection that either side has closed with this error code (RFC 9000, 20)."""
    said = "".join(one if one.isprintable() else "?" for one in reason[:120])
    if reason == IDLE:
        return Failure(FailureKind.TIMEOUT, stage, detail="nothing came for the idle timeout")
    if code == CONNECTION_REFUSED:
        return Failure(FailureKind.REFUSED, stage, detail=said or "the server refuses connections")
    if CRYPTO_ERROR <= code < CRYPTO_ERROR + 0x100:
        alert = code - CRYPTO_ERROR
        word = _ALERTS.get(alert, f"alert {alert}")
        kind = FailureKind.CERTIFICATE if alert in _CERTIFICATE_ALERTS else FailureKind.PROTOCOL
        return Failure(kind, stage, detail=f"{word}: {said}" if said else word)
    if code == 0 and not said:
        return Failure(FailureKind.CLOSED, stage, detail="closed by the other side")
    kind = FailureKind.CLOSED if code == 0 or code >= 0x100 else FailureKind.PROTOCOL
    return Failure(
        kind, stage, detail=f"closed with error {code:#x}" + (f": {said}" if said else "")
    )


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
