"""What the payload of a UDP or ICMP probe begins with: secret (8), token (2), balance (2).

The secret makes an answer ours, not the port or identifier that somebody else may use as well.
"""

SECRET_BYTES = 8
TOKEN_AT = SECRET_BYTES
PAYLOAD_BYTES = SECRET_BYTES + 4
NO_SECRET = bytes(SECRET_BYTES)
_PATTERN = bytes(range(256)) * 256


def pattern(length: int) -> bytes:
    """What fills a probe up to the size asked for."""
    return _PATTERN[: max(0, length)]


def payload_token(payload: bytes) -> int | None:
    """Token in a payload of ours; None where it was not quoted. A quote that ends within it and was
    filled up with zeros has no balance either.
    """
    if len(payload) < PAYLOAD_BYTES or payload[TOKEN_AT + 2 : PAYLOAD_BYTES] == b"\0\0":
        return None
    return int.from_bytes(payload[TOKEN_AT : TOKEN_AT + 2], "big") or None


def quoted_secret(payload: bytes) -> bytes:
    """As much of the secret as was quoted. Routers fill short quotes with zeros up to 128 octets
    (RFC 4884, 5.1): zeros at the end of one without token are no part of it.
    """
    if payload_token(payload) is not None:
        return payload[:SECRET_BYTES]
    return payload[:PAYLOAD_BYTES].rstrip(b"\0")[:SECRET_BYTES]
