"""Who is told, as the file of rules says. Secrets are read when the file is."""

from dataclasses import dataclass, field

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """What all of them have. `timeout_s`: for each step of a delivery."""

    name: str
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReceiver(Receiver):
    """One that is told by HTTP."""

    url: str
    authority: str = ""
    """File of certificates to trust in place of the system's."""
    token: str = field(default="", repr=False)
    """Bearer token (RFC 6750)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(HttpReceiver):
    """Gets messages as JSON (docs/alerts-schema.json)."""

    secret: str = field(default="", repr=False)
    """Key of the signature; empty: messages are not signed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager(HttpReceiver):
    """Gets all that fires again and again, and groups, silences and repeats by itself.

    `url` is where its web page is. Alerts end by themselves there after `holds_ns` without news.
    """

    holds_ns: int = 300 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail(Receiver):
    """Gets messages by SMTP."""

    host: str
    port: int
    security: str
    """``starttls``, ``tls``, or ``none``."""
    sender: str
    recipients: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    authority: str = ""


EveryReceiver = Webhook | Alertmanager | Mail
