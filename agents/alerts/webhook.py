"""Messages by HTTP, signed where the receiver has a secret.

The signature is HMAC-SHA256 (RFC 2104) of the time of sending, a dot and the body, so that an old
message cannot be sent again by somebody else.
"""

import hashlib
import hmac

import msgspec

from pathbudget.agents.alerts.delivery import Answer
from pathbudget.agents.alerts.http_post import post
from pathbudget.agents.alerts.message import Message
from pathbudget.agents.alerts.receivers import Webhook

TIME_HEADER, SIGNATURE_HEADER = "Pathbudget-Time", "Pathbudget-Signature"


def send(receiver: Webhook, message: Message, now_unix_ns: int) -> Answer:
    """Post it."""
    body = msgspec.json.encode(message)
    headers: dict[str, str] = {}
    if receiver.secret:
        at = str(now_unix_ns // 1_000_000_000)
        headers = {TIME_HEADER: at, SIGNATURE_HEADER: signature(receiver.secret, at, body)}
    return post(receiver, receiver.url, body, headers)


def signature(secret: str, at: str, body: bytes) -> str:
    """``sha256=...`` of a body sent at a time (whole seconds since 1970)."""
    found = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256)
    return f"sha256={found.hexdigest()}"
