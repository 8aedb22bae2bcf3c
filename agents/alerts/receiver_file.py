"""The tables [[receiver]] of a file of rules."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pathbudget.agents.alerts.receivers import Alertmanager, EveryReceiver, Mail, Webhook
from pathbudget.agents.campaign.entry_values import duration_ns, texts
from pathbudget.sites.entry import Entry, Interval, show

KINDS = ("webhook", "alertmanager", "email")
KEYS = ("name", "kind", "timeout", "authority")
HTTP_KEYS = (*KEYS, "url", "token_env", "token_file")
MAIL_KEYS = (
    *(*KEYS, "host", "port", "security", "from", "recipients"),
    *("user", "password_env", "password_file"),
)
PORTS = {"starttls": 587, "tls": 465, "none": 25}
LARGEST_SECRET = 64 * 1024
LONGEST_WAIT_NS = 60_000_000_000
_ADDRESS = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
_MINUTE_NS = 60_000_000_000


def read_receiver(entry: Entry, folder: Path) -> EveryReceiver | None:
    """One table; None where it has a fault, which is noted."""
    kind = entry.word("kind", KINDS, "")
    if not kind:
        entry.fault("kind", "is missing", "one of " + ", ".join(KINDS))
    read: dict[str, Callable[[Entry, Path, str, float], EveryReceiver]] = {
        "webhook": _webhook,
        "alertmanager": _alertmanager,
        "email": _mail,
    }
    if kind not in read:
        return None
    name = entry.text("name", None)
    found = read[kind](entry, folder, name, _timeout_s(entry))
    return found if entry.sound else None


def _webhook(entry: Entry, folder: Path, name: str, timeout_s: float) -> Webhook:
    entry.only((*HTTP_KEYS, "secret_env", "secret_file"))
    return Webhook(
        name=name,
        timeout_s=timeout_s,
        url=_url(entry),
        authority=_file(entry, "authority", folder),
        token=_secret(entry, "token", folder),
        secret=_secret(entry, "secret", folder),
    )


def _alertmanager(entry: Entry, folder: Path, name: str, timeout_s: float) -> Alertmanager:
    entry.only((*HTTP_KEYS, "holds"))
    return Alertmanager(
        name=name,
        timeout_s=timeout_s,
        url=_url(entry),
        authority=_file(entry, "authority", folder),
        token=_secret(entry, "token", folder),
        holds_ns=duration_ns(entry, "holds", "5m", shortest_ns=_MINUTE_NS) or 0,
    )


def _mail(entry: Entry, folder: Path, name: str, timeout_s: float) -> Mail:
    entry.only(MAIL_KEYS)
    security = entry.word("security", PORTS, "starttls")
    user, password = entry.text("user"), _secret(entry, "password", folder)
    if bool(user) != bool(password) and entry.sound:
        entry.fault("user", "a user without password, or the reverse", "both, or neither")
    if password and security == "none":
        entry.fault("security", "a password would go in the clear", '"starttls" or "tls"')
    recipients = texts(entry, "recipients")
    if not recipients and "recipients" not in entry.values:
        entry.fault("recipients", "is missing", 'addresses, like ["oncall@example.org"]')
    for number, one in enumerate(recipients):
        _check_address(entry, f"recipients[{number}]", one)
    sender = entry.text("from", None)
    if sender:
        _check_address(entry, "from", sender)
    port = entry.whole_number("port", Interval(1, 65535, "a port, 1 to 65535"))
    return Mail(
        name=name,
        timeout_s=timeout_s,
        host=entry.text("host", None),
        port=port or PORTS.get(security, 0),
        security=security,
        sender=sender,
        recipients=recipients,
        user=user,
        password=password,
        authority=_file(entry, "authority", folder),
    )


def _check_address(entry: Entry, key: str, address: str) -> None:
    if not _ADDRESS.fullmatch(address) or not address.isascii():
        entry.fault(key, f"{show(address)} is no address", "one such as oncall@example.org")


def _timeout_s(entry: Entry) -> float:
    value = duration_ns(entry, "timeout", "10s") or 0
    if value > LONGEST_WAIT_NS:
        entry.fault("timeout", f"{show(entry.values['timeout'])} is long", "at most 60s")
    return value / 1e9


def _url(entry: Entry) -> str:
    url = entry.text("url", None)
    expected = "https://host[:port]/path, or http:// where nobody listens in"
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        entry.fault("url", f"{show(url)} is no URL", expected)
        return ""
    if url and not good:
        entry.fault("url", f"{show(url)} is no URL of HTTP", expected)
    elif url and (parts.username or parts.password):
        entry.fault("url", "has a user or password in it", "token_env or token_file")
    return url


def _file(entry: Entry, key: str, folder: Path) -> str:
    name = entry.text(key)
    if name and not (folder / name).is_file():
        entry.fault(key, f"{show(name)} is no file", "a file of certificates (PEM)")
    return str(folder / name) if name else ""


def _secret(entry: Entry, key: str, folder: Path) -> str:
    """Out of a variable of the environment, or of a file that is its owner's alone."""
    variable, name = entry.text(f"{key}_env"), entry.text(f"{key}_file")
    if variable and name:
        entry.fault(f"{key}_file", f"stands beside {key}_env", "one of them")
    elif variable:
        if not os.environ.get(variable):
            entry.fault(f"{key}_env", f"{show(variable)} is not set", "a variable with the secret")
        return os.environ.get(variable, "")
    elif name:
        return _of_file(entry, f"{key}_file", folder / name)
    return ""


def _of_file(entry: Entry, key: str, path: Path) -> str:
    try:
        mode = path.stat().st_mode
        with path.open("rb") as file:
            text = file.read(LARGEST_SECRET).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        entry.fault(key, f"{show(path.name)} cannot be read: {why}", "a file with the secret")
        return ""
    if mode & 0o077:
        entry.fault(key, f"{show(path.name)} is open to others (mode {mode & 0o777:o})", "mode 600")
    elif not text or not text.isprintable():
        entry.fault(key, f"{show(path.name)} holds no secret", "one line of text")
    return text
