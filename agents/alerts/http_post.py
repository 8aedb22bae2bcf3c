"""One HTTP POST, as far as alerts need one: no redirect is followed, no answer read for long."""

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from pathbudget.agents.alerts.delivery import Answer, Receipt, Refusal
from pathbudget.agents.alerts.receivers import HttpReceiver
from pathbudget.agents.version import software_name

MOST_READ = 512
TRY_AGAIN = (408, 425, 429)
"""Codes below 500 after which the same message may be taken later (RFC 9110, RFC 6585)."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the message and the token to somebody else, or as a GET."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """None: the redirect is the answer."""


def post(
    receiver: HttpReceiver, url: str, body: bytes, headers: Mapping[str, str] | None = None
) -> Answer:
    """Post JSON. Whatever goes wrong is an answer, too."""
    sent = {
        "Content-Type": "application/json",
        "User-Agent": software_name().replace(" ", "/"),
        **(headers or {}),
    }
    if receiver.token:
        sent["Authorization"] = f"Bearer {receiver.token}"
    request = urllib.request.Request(url, body, sent, method="POST")  # noqa: S310 - checked: http
    try:
        secure = urllib.request.HTTPSHandler(context=_context(receiver.authority))
        opener = urllib.request.build_opener(_NoRedirect, secure)
        with opener.open(request, timeout=receiver.timeout_s) as response:
            return Receipt(f"{response.status} {response.reason}".strip())
    except urllib.error.HTTPError as error:
        return _refused(error)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Refusal(_words(error))


def _context(authority: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _refused(error: urllib.error.HTTPError) -> Refusal:
    with error:
        try:
            text = error.read(MOST_READ).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            text = ""
    said = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    final = error.code < 500 and error.code not in TRY_AGAIN
    why = f"{error.code} {error.reason}" + (f": {said[:200]}" if said else "")
    return Refusal(why, final)


def _words(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
