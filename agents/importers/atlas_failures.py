"""Words of the probes' error messages as kinds of failure.

The messages are C library and libevent texts, prefixed by the call that failed; the list is what
the probe's source can print. An unknown message keeps its words, with the kind `other`.
"""

from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage

_LONGEST_DETAIL = 200

_KINDS: tuple[tuple[FailureKind, tuple[str, ...]], ...] = (
    (FailureKind.NAME_NOT_FOUND, ("nodename nor servname", "not known", "does not exist")),
    (FailureKind.NO_ADDRESS, ("no address associated", "out of addresses")),
    (FailureKind.RESOLVER, ("name resolution", "resolution failed", "resolver")),
    (FailureKind.TIMEOUT, ("timeout", "timed out")),
    (FailureKind.REFUSED, ("refused",)),
    (FailureKind.RESET, ("reset by peer", "connection reset")),
    (FailureKind.CLOSED, ("eof", "broken pipe", "closed")),
    (FailureKind.NO_ROUTE, ("network is unreachable", "network unreachable")),
    (FailureKind.UNREACHABLE, ("no route to host", "unreachable", "host is down")),
    (FailureKind.PERMISSION, ("not permitted", "permission denied", "not allowed")),
    (FailureKind.PROTOCOL, ("server hello", "bad type", "bad len", "bad amount", "alert")),
    (
        FailureKind.LOCAL,
        ("bind", "socket", "setting", "address already in use", "cannot assign", "buffer space",
         "invalid argument", "address family", "too long"),
    ),
)  # fmt: skip

_STAGES: tuple[tuple[Stage, tuple[str, ...]], ...] = (
    (Stage.RESOLVE, ("name resolution", "dns resolution", "nodename", "out of addresses")),
    (Stage.HANDSHAKE, ("timeout reading", "server hello", "bad type", "bad len", "bad amount")),
)

_UNREACHABLE = {
    AddressFamily.IPV4: (3, {"N": 0, "H": 1, "P": 2, "p": 3, "A": 13}),
    AddressFamily.IPV6: (1, {"N": 0, "A": 1, "h": 2, "H": 3, "p": 4}),
}
"""Letter of ``err`` to ICMP code (RFC 792, RFC 4443), with the type of "unreachable"."""


def failure_of(message: str, otherwise: Stage) -> Failure:
    """What `message` means; `otherwise` is the stage when the message does not say it."""
    text = message.casefold()
    kind = next((kind for kind, words in _KINDS if _has(text, words)), FailureKind.OTHER)
    stage = next((stage for stage, words in _STAGES if _has(text, words)), otherwise)
    return Failure(kind, stage, message[:_LONGEST_DETAIL])


def unreachable(err: str | int, family: AddressFamily | None) -> Failure:
    """ICMP "destination unreachable": `err` is a letter of the firmware or a bare ICMP code."""
    icmp_type, codes = _UNREACHABLE[family or AddressFamily.IPV4]
    code = codes.get(err) if isinstance(err, str) else err
    return Failure(
        FailureKind.UNREACHABLE, Stage.WAIT, f"err {str(err)[:20]}",
        icmp_type=None if code is None else icmp_type,
        icmp_code=code if code is not None and 0 <= code <= 255 else None,
    )  # fmt: skip


TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)
NO_RECORD = Failure(FailureKind.OTHER, Stage.WAIT, "sent, and the result has no record of it")
NO_MEANING = Failure(FailureKind.CORRUPT, Stage.PARSE, "neither a round trip nor a reason")
BAD_NUMBER = Failure(FailureKind.CORRUPT, Stage.PARSE, "a time that cannot be")
NO_ADDRESS = Failure(FailureKind.NAME_NOT_FOUND, Stage.RESOLVE, "the result has no address")


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)
