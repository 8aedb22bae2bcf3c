"""Webhooks and mails that really go: to an HTTP server and an SMTP server on loopback."""

import ssl
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message as Mime
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.alerts.conftest import AT, MINUTE, Hook, a_signal, free_port

from pathbudget.agents.alerts import mail, webhook
from pathbudget.agents.alerts.delivery import Receipt, Refusal
from pathbudget.agents.alerts.message import Message, message_of, schema, text_of
from pathbudget.agents.alerts.receivers import Mail, Webhook
from pathbudget.analysis.alerts.model import AlertState, News, Notice, Phase

SECRET = "an example of a secret"


def a_message(news: News = News.FIRING, **values: Any) -> Message:
    state = AlertState(
        a_signal(**values), Phase.FIRING, AT, AT, fired_unix_ns=AT, over_unix_ns=AT + MINUTE
    )
    return message_of("r", [Notice(news, AT, state)], AT)


def to(hook: Hook, **values: object) -> Webhook:
    return msgspec.convert({"name": "hook", "url": hook.url, **values}, Webhook)


def test_a_message_comes_as_its_schema_says_and_signed(hook: Hook) -> None:
    message = a_message(numbers={"silent_s": 301.5, "nothing": None}, labels={"agent": "one"})
    answer = webhook.send(to(hook, secret=SECRET, token="t"), message, AT)
    assert answer == Receipt("200 OK")
    (post,) = hook.posts
    jsonschema.validate(post.json, schema())
    assert msgspec.json.decode(post.body, type=Message) == message
    at = post.headers[webhook.TIME_HEADER]
    assert at == str(AT // 1_000_000_000)
    signed = webhook.signature(SECRET, at, post.body)
    assert post.headers[webhook.SIGNATURE_HEADER] == signed
    assert signed != webhook.signature(SECRET, at, post.body + b" ")
    assert post.headers["Authorization"] == "Bearer t"
    assert SECRET not in repr(to(hook, secret=SECRET))


def test_without_a_secret_nothing_is_signed(hook: Hook) -> None:
    webhook.send(to(hook), a_message(), AT)
    assert webhook.SIGNATURE_HEADER not in hook.posts[0].headers


@pytest.mark.parametrize(
    ("code", "final"),
    [(500, False), (503, False), (429, False), (400, True), (404, True), (301, True), (307, True)],
)
def test_what_is_no_success_is_a_refusal_and_no_redirect_is_followed(
    hook: Hook, code: int, final: bool
) -> None:
    hook.codes = [code]
    answer = webhook.send(to(hook, token="t"), a_message(), AT)
    assert isinstance(answer, Refusal)
    assert answer.final is final
    assert str(code) in answer.why
    assert len(hook.posts) == 1


def test_one_that_is_not_there_or_no_host_is_a_refusal(closed_port: int) -> None:
    for url in (f"http://127.0.0.1:{closed_port}/", "http://no-such-host.invalid/"):
        answer = webhook.send(Webhook(name="x", url=url), a_message(), AT)
        assert isinstance(answer, Refusal)
        assert not answer.final


def test_the_text_of_a_message_says_what_since_when_and_how_many_more() -> None:
    signals = [AlertState(a_signal(key=f"r/{n}"), Phase.FIRING, AT, AT) for n in range(60)]
    message = message_of("r", [Notice(News.FIRING, AT, one) for one in signals], AT)
    text = text_of(message)
    assert text.startswith("ticket: 60 firing: agent silent (r)\n")
    assert text.endswith("and 10 more\n")
    assert text_of(a_message(News.RESOLVED)).count("RESOLVED  agent one is silent.") == 1


class Inbox:
    """Mails that came, to an SMTP server that wants a password."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []

    async def handle_RCPT(  # noqa: N802 - what the server looks for
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("unknown"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.mails.append(envelope)
        return "250 taken"

    def mail(self) -> Mime:
        (envelope,) = self.mails
        assert isinstance(envelope.content, bytes)
        return message_from_bytes(envelope.content)


def password(
    server: SMTP, session: Session, envelope: Envelope, how: str, data: object
) -> AuthResult:
    assert isinstance(data, LoginPassword)
    good = (data.login, data.password) == (b"user", SECRET.encode())
    return AuthResult(success=good, handled=False)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def server(inbox: Inbox, certificates: Path) -> Iterator[Controller]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    found = Controller(
        inbox,
        hostname="127.0.0.1",
        port=free_port(),
        tls_context=context,
        require_starttls=True,
        auth_required=True,
        authenticator=password,
    )
    found.start()
    yield found
    found.stop()


def by(server: Controller, certificates: Path, **values: object) -> Mail:
    given = {
        "name": "mail",
        "host": "127.0.0.1",
        "port": server.port,
        "security": "starttls",
        "sender": "pathbudget@example.org",
        "recipients": ("a@example.org", "b@example.org"),
        "user": "user",
        "password": SECRET,
        "authority": str(certificates / "ca.pem"),
        **values,
    }
    return msgspec.convert(given, Mail)


def test_a_mail_goes_over_starttls_with_a_password(
    server: Controller, certificates: Path, inbox: Inbox
) -> None:
    message = a_message(summary="agent one\nBcc: eve@example.org is silent.")
    answer = mail.send(by(server, certificates), message)
    assert answer == Receipt("accepted for a@example.org, b@example.org")
    mime = inbox.mail()
    assert mime["Subject"] == "[pathbudget] ticket: 1 firing: agent silent (r)"
    assert mime["Message-ID"] == f"<{message.id}@example.org>"
    assert mime["Auto-Submitted"] == "auto-generated"
    assert "Bcc" not in mime
    assert "agent one" in str(mime.get_payload())


def test_a_recipient_that_is_refused_is_named_and_the_others_have_it(
    server: Controller, certificates: Path, inbox: Inbox
) -> None:
    both = by(server, certificates, recipients=("unknown@example.org", "b@example.org"))
    answer = mail.send(both, a_message())
    assert answer == Receipt("accepted, but refused for unknown@example.org")
    alone = by(server, certificates, recipients=("unknown@example.org",))
    assert mail.send(alone, a_message()) == Refusal(
        "all recipients are refused: 550 no such user", final=True
    )
    assert len(inbox.mails) == 1


def test_a_wrong_password_or_authority_is_a_refusal_that_may_be_mended(
    server: Controller, certificates: Path, inbox: Inbox
) -> None:
    for wrong in ({"password": "wrong"}, {"authority": ""}, {"security": "tls"}):
        answer = mail.send(by(server, certificates, **wrong), a_message())
        assert isinstance(answer, Refusal)
        assert not answer.final
        assert SECRET not in answer.why
    assert inbox.mails == []
