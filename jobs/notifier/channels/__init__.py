"""The kinds of channels: a kind is a class with its fields, checked when the file of routes is read, and `send`."""

from typing import Annotated

from pydantic import Field

from jobs.notifier.channels.mail import MailChannel
from jobs.notifier.channels.service import ServiceChannel
from jobs.notifier.channels.webhook import WebhookChannel

AnyChannel = Annotated[MailChannel | ServiceChannel | WebhookChannel, Field(discriminator="kind")]
