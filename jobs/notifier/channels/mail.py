"""Mail by SMTP. Message-ID and References are made from ids: a repeat has the same, and mail clients show threads.

Not by apprise, which gives each mail a new Message-ID.
"""

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from infra.settings import Port
from jobs.notifier.channels.channel import ANSWER_SECONDS, Channel, DeliveryError
from jobs.notifier.declared import Variable, secret
from jobs.notifier.delivery import Content, Delivery


def _checked_address(address: str) -> str:
    _, plain = parseaddr(address)
    local, _, domain = plain.rpartition("@")
    if not local or not domain or any(character in address for character in "\r\n"):
        raise ValueError("write an address as ops@example.net or Ops <ops@example.net>")
    return address


Address = Annotated[str, AfterValidator(_checked_address)]


class MailChannel(Channel):
    """A mail to one or more addresses."""

    kind: Literal["mail"]
    host: str = Field(min_length=1)
    port: Port = 587
    encryption: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_env: Variable | None = None
    sender: Address = Field(alias="from")
    to: tuple[Address, ...] = Field(min_length=1)

    @property
    def variables(self) -> tuple[str, ...]:
        """Of the password, if it needs one."""
        return (self.password_env,) if self.password_env else ()

    def send(self, delivery: Delivery) -> None:
        """Hand the mail to the server; it is delivered once that has taken it for every address."""
        try:
            with self._server() as server:
                if refused := server.send_message(self.mail(delivery)):
                    raise DeliveryError(f"refused for {len(refused)} of {len(self.to)} addresses")
        except smtplib.SMTPResponseException as error:
            raise DeliveryError(f"SMTP {error.smtp_code}: {_text(error.smtp_error)}") from None
        except smtplib.SMTPRecipientsRefused as error:
            code, text = next(iter(error.recipients.values()))
            raise DeliveryError(f"SMTP {code}: {_text(text)}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryError(f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}") from None

    def mail(self, delivery: Delivery) -> EmailMessage:
        """The mail of a delivery."""
        content = delivery.content or Content("", "", "", "")
        domain = parseaddr(self.sender)[1].rpartition("@")[2]
        mail = EmailMessage()
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Date"] = format_datetime(datetime.fromtimestamp(delivery.time_unix_nano // 10**9, UTC))
        mail["Message-ID"] = f"<{delivery.id}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Kappa-Severity"] = delivery.severity
        if delivery.id == delivery.thread:
            mail["Subject"] = content.title
        else:
            mail["In-Reply-To"] = mail["References"] = f"<{delivery.thread}@{domain}>"
            # Some clients thread by the subject, too.
            mail["Subject"] = content.title if delivery.subject == content.title else f"Re: {delivery.subject}"
        mail.set_content(f"{content.title}\n\n{content.text}\n")
        return mail

    @contextmanager
    def _server(self) -> Iterator[smtplib.SMTP]:
        context = ssl.create_default_context()
        if self.encryption == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=ANSWER_SECONDS, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=ANSWER_SECONDS)
        try:
            if self.encryption == "starttls":
                server.starttls(context=context)
            if self.user:
                server.login(self.user, secret(self.password_env or ""))
            yield server
        finally:
            _leave(server)


def _leave(server: smtplib.SMTP) -> None:
    """Say goodbye. What the server has taken is delivered, whatever it answers now."""
    try:
        server.quit()
    except (OSError, smtplib.SMTPException):
        server.close()


def _text(answer: bytes | str) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer
