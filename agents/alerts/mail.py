"""Messages by e-mail: SMTP (RFC 5321) with STARTTLS or TLS, and a password where there is one."""

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from pathbudget.agents.alerts.delivery import Answer, Receipt, Refusal
from pathbudget.agents.alerts.message import Message, text_of
from pathbudget.agents.alerts.receivers import Mail

LONGEST_SUBJECT = 200


def send(receiver: Mail, message: Message) -> Answer:
    """Hand it to the server. Whatever goes wrong is an answer, too."""
    try:
        context = ssl.create_default_context(cafile=receiver.authority or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with _connected(receiver, context) as server:
            if receiver.security == "starttls":
                server.starttls(context=context)
            if receiver.user:
                server.login(receiver.user, receiver.password)
            refused = server.send_message(mail_of(receiver, message))
    except smtplib.SMTPRecipientsRefused as error:
        return _all_refused(error)
    except smtplib.SMTPResponseException as error:
        return Refusal(_said(error.smtp_code, error.smtp_error), _is_final(error))
    except (OSError, smtplib.SMTPException) as error:
        return Refusal(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    if refused:  # the others have it: sending again would tell them twice
        names = ", ".join(sorted(refused))
        return Receipt(f"accepted, but refused for {names}")
    return Receipt(f"accepted for {', '.join(receiver.recipients)}")


def mail_of(receiver: Mail, message: Message) -> EmailMessage:
    """The mail. Answering machines are told not to answer it (RFC 3834)."""
    mail = EmailMessage()
    mail["From"] = receiver.sender
    mail["To"] = ", ".join(receiver.recipients)
    mail["Subject"] = _line(f"[pathbudget] {message.title}")[:LONGEST_SUBJECT]
    when = datetime.fromtimestamp(message.at_unix_ns // 1_000_000_000, UTC)
    mail["Date"] = format_datetime(when)
    mail["Message-ID"] = f"<{message.id}@{receiver.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text_of(message))
    return mail


def _connected(receiver: Mail, context: ssl.SSLContext) -> smtplib.SMTP:
    if receiver.security == "tls":
        return smtplib.SMTP_SSL(
            receiver.host, receiver.port, timeout=receiver.timeout_s, context=context
        )
    return smtplib.SMTP(receiver.host, receiver.port, timeout=receiver.timeout_s)


def _all_refused(error: smtplib.SMTPRecipientsRefused) -> Refusal:
    code, said = next(iter(error.recipients.values()))
    return Refusal(f"all recipients are refused: {_said(code, said)}", 500 <= code < 600)


def _is_final(error: smtplib.SMTPResponseException) -> bool:
    """Wrong passwords and the like may be mended while the message waits; a refused mail not."""
    return isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPDataError) and (
        500 <= error.smtp_code < 600
    )


def _said(code: int, said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"{code} {_line(text)}"[:300]


def _line(text: str) -> str:
    """On one line: names out of the store, and what servers say, may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
