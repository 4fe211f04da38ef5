"""Everything that apprise reaches by a URL: Slack, Teams, PagerDuty, Opsgenie, ntfy, SMS and a hundred more."""

import logging
from collections.abc import Iterator
from typing import Any, Literal

import apprise

from jobs.notifier.channels.channel import Channel, DeliveryError
from jobs.notifier.declared import Variable, secret
from jobs.notifier.delivery import Content, Delivery

TYPES = {
    "info": apprise.NotifyType.INFO,
    "warning": apprise.NotifyType.WARNING,
    "critical": apprise.NotifyType.FAILURE,
}


class ServiceChannel(Channel):
    """A service by its apprise URL, which holds the credentials, so that only its variable is in the file."""

    kind: Literal["apprise"]
    url_env: Variable

    @property
    def variables(self) -> tuple[str, ...]:
        """Of the URL."""
        return (self.url_env,)

    def faults(self) -> Iterator[str]:
        """The variable is not set, or has no URL that apprise knows."""
        yield from super().faults()
        if secret(self.url_env) and self._service() is None:
            yield f"{self.url_env}: no URL that apprise knows (https://github.com/caronc/apprise/wiki)"

    def _service(self) -> Any:
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may hold the URL
        return apprise.Apprise.instantiate(secret(self.url_env), suppress_exceptions=True)

    def send(self, delivery: Delivery) -> None:
        """Hand it to apprise, which says no more than whether it was taken."""
        content, service = delivery.content or Content("", "", "", ""), self._service()
        if service is None:
            raise DeliveryError(f"{self.url_env}: no URL that apprise knows")
        # PagerDuty's own deduplication and resolving: all of a thread is one incident there.
        if getattr(service, "dedup", "") is None:
            service.dedup = delivery.thread
        kind = apprise.NotifyType.SUCCESS if delivery.phase == "end" else TYPES[delivery.severity]
        if not service.notify(title=content.title, body=content.text, notify_type=kind):
            raise DeliveryError(f"not taken by {service.service_name}")
