"""A POST of a CloudEvent in structured JSON, to any HTTP server."""

from datetime import UTC, datetime
from typing import Literal, Self

import orjson
import requests
from cloudevents.core.bindings.http import HTTPMessage, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from pydantic import Field, model_validator

from jobs.notifier.channels.channel import ANSWER_SECONDS, CONNECT_SECONDS, Channel, DeliveryError
from jobs.notifier.declared import Variable, secret
from jobs.notifier.delivery import Content, Delivery


class WebhookChannel(Channel):
    """An HTTP server that takes CloudEvents; its answer must be 2xx."""

    kind: Literal["webhook"]
    url: str | None = Field(None, pattern=r"^https?://\S+$")
    url_env: Variable | None = None  # where the address itself is a secret
    token_env: Variable | None = None  # sent as `Authorization: Bearer ...`

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("give either url, or url_env: the environment variable that has it")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """Of address and token, as far as they are given so."""
        return tuple(filter(None, (self.url_env, self.token_env)))

    def send(self, delivery: Delivery) -> None:
        """Post the event; what fails is named by its kind alone, as its text may hold the address."""
        message = event_of(delivery)
        headers = {**message.headers, **self._authorization()}
        try:
            answer = requests.post(
                self.url or secret(self.url_env or ""),
                data=message.body,
                headers=headers,
                timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
            )
        except (requests.RequestException, ValueError) as error:
            raise DeliveryError(type(error).__name__) from None
        if not 200 <= answer.status_code < 300:
            raise DeliveryError(f"HTTP {answer.status_code}")

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {secret(self.token_env)}"} if self.token_env else {}


def event_of(delivery: Delivery) -> HTTPMessage:
    """The CloudEvent of a delivery. By `source` and `id` a receiver knows one that comes twice."""
    content = delivery.content or Content("", "", "", "null")
    attributes = {
        "id": delivery.id,
        "source": f"/kappa/{delivery.source.topic}",
        "type": f"kappa.notification.{delivery.phase}",
        "subject": delivery.thread,
        "time": datetime.fromtimestamp(delivery.time_unix_nano / 10**9, UTC),
        "datacontenttype": "application/json",
        "severity": delivery.severity,
    }
    data = {
        "thread": delivery.thread,
        "phase": delivery.phase,
        "severity": delivery.severity,
        "title": content.title,
        "text": content.text,
        "link": content.link,
        "record": orjson.loads(content.record),
    }
    return to_structured(CloudEvent(attributes, data), JSONFormat())
